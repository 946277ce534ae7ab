import Foundation
import Replica
import Testing
import UbiquityModel

@Suite struct DeletionLogTests {
    let scratch: ScratchFolder
    let path: String

    init() throws {
        scratch = try ScratchFolder()
        path = scratch.appending("deletions.log")
    }

    /// Items and inodes in turn.
    private func entry(_ number: Int) -> DeletionLog.Entry {
        if number.isMultiple(of: 2) { return .item(ItemID(high: 7, low: UInt64(number))) }
        let bytes = [12, 1, 0, 0, 0, 0, 0, 0] + withUnsafeBytes(of: UInt64(number).littleEndian) { Array($0) }
        return InodeKey(bytes: bytes).map { .inode($0) } ?? .item(.root)
    }

    private func bytes() throws -> [UInt8] { Array(try Data(contentsOf: URL(filePath: path))) }

    private func replace(_ bytes: [UInt8]) throws { try Data(bytes).write(to: URL(filePath: path)) }

    @Test func `entries are there again after a restart, withdrawn ones are not`() throws {
        do {
            let log = try DeletionLog(path: path)
            for number in 1...5 { try log.append(entry(number)) }
            try log.append(entry(3))
            try log.remove([entry(2), entry(9)])
            try log.remove([entry(5)])
            try log.append(entry(5))
        }
        let log = try DeletionLog(path: path)
        #expect(log.entries() == [entry(1), entry(3), entry(4), entry(5)])
        #expect(log.contains(entry(4)) && !log.contains(entry(2)))
    }

    @Test func `wherever a crash cuts the file, whole records stay and new ones follow`() throws {
        let whole: [UInt8]
        do {
            let log = try DeletionLog(path: path)
            for number in 1...3 { try log.append(entry(number)) }
            whole = try bytes()
        }
        for length in 0...whole.count {
            try replace(Array(whole[..<length]))
            let expected = Set((1...3).filter { 8 + $0 * 36 <= length }.map(entry))
            do {
                let log = try DeletionLog(path: path)
                #expect(log.entries() == expected, "cut to \(length) bytes")
                try log.append(entry(8))
            }
            #expect(try DeletionLog(path: path).entries() == expected.union([entry(8)]), "cut to \(length) bytes")
        }
    }

    @Test func `damaged records and zeros are skipped`() throws {
        do {
            let log = try DeletionLog(path: path)
            for number in 1...3 { try log.append(entry(number)) }
        }
        var damaged = try bytes()
        damaged[50] ^= 1
        try replace(damaged + [UInt8](repeating: 0, count: 72))
        let log = try DeletionLog(path: path)
        #expect(log.entries() == [entry(1), entry(3)])
    }

    @Test func `a file of a newer version or of another kind is refused`() throws {
        try replace(Array("UBQD".utf8) + [0, 0, 0, 3])
        #expect(throws: ReplicaError.tooNew(what: path, version: 3)) { _ = try DeletionLog(path: path) }
        try replace(Array("something else".utf8))
        #expect(throws: ReplicaError.corrupted(path)) { _ = try DeletionLog(path: path) }
    }

    @Test func `it does not grow with deletions that are done`() throws {
        let log = try DeletionLog(path: path)
        for number in 0..<10_000 {
            try log.append(entry(number))
            if number >= 10 { try log.remove([entry(number - 10)]) }
        }
        #expect(try bytes().count < 128 * 1024)
        #expect(try DeletionLog(path: path).entries() == Set((9990..<10_000).map(entry)))
    }

    @Test func `a file of the first version is read, and goes on as one of this version`() throws {
        func record(_ number: UInt8, _ start: UInt32) -> [UInt8] {
            let id = [UInt8](repeating: 0, count: 15) + [number]
            let sum = id.reduce(start) { ($0 ^ UInt32($1)) &* 16_777_619 }
            return id + [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: sum >> UInt32($0)) }
        }
        let old = [record(1, 0x9E37_79B9), record(2, 0x9E37_79B9), record(1, 0x85EB_CA6B)].flatMap { $0 }
        try replace(Array("UBQD".utf8) + [0, 0, 0, 1] + old + [1, 2, 3])
        for _ in 0..<2 {
            #expect(try DeletionLog(path: path).entries() == [.item(ItemID(high: 0, low: 2))])
        }
        #expect(try bytes().count == 44)
    }
}
