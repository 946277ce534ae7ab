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

    private func item(_ number: Int) -> ItemID { ItemID(high: 7, low: UInt64(number)) }

    private func bytes() throws -> [UInt8] { Array(try Data(contentsOf: URL(filePath: path))) }

    private func replace(_ bytes: [UInt8]) throws { try Data(bytes).write(to: URL(filePath: path)) }

    @Test func `entries are there again after a restart, withdrawn ones are not`() throws {
        do {
            let log = try DeletionLog(path: path)
            for number in 1...5 { try log.append(item(number)) }
            try log.append(item(3))
            try log.remove([item(2), item(9)])
            try log.remove([item(5)])
            try log.append(item(5))
        }
        let log = try DeletionLog(path: path)
        #expect(log.entries() == [item(1), item(3), item(4), item(5)])
        #expect(log.contains(item(4)) && !log.contains(item(2)))
    }

    @Test func `wherever a crash cuts the file, whole records stay and new ones follow`() throws {
        let whole: [UInt8]
        do {
            let log = try DeletionLog(path: path)
            for number in 1...3 { try log.append(item(number)) }
            whole = try bytes()
        }
        for length in 0...whole.count {
            try replace(Array(whole[..<length]))
            let expected = Set((1...3).filter { 8 + $0 * 20 <= length }.map(item))
            do {
                let log = try DeletionLog(path: path)
                #expect(log.entries() == expected, "cut to \(length) bytes")
                try log.append(item(8))
            }
            #expect(try DeletionLog(path: path).entries() == expected.union([item(8)]), "cut to \(length) bytes")
        }
    }

    @Test func `damaged records and zeros are skipped`() throws {
        do {
            let log = try DeletionLog(path: path)
            for number in 1...3 { try log.append(item(number)) }
        }
        var damaged = try bytes()
        damaged[30] ^= 1
        try replace(damaged + [UInt8](repeating: 0, count: 40))
        let log = try DeletionLog(path: path)
        #expect(log.entries() == [item(1), item(3)])
    }

    @Test func `a file of a newer version or of another kind is refused`() throws {
        try replace(Array("UBQD".utf8) + [0, 0, 0, 2])
        #expect(throws: ReplicaError.tooNew(what: path, version: 2)) { _ = try DeletionLog(path: path) }
        try replace(Array("something else".utf8))
        #expect(throws: ReplicaError.corrupted(path)) { _ = try DeletionLog(path: path) }
    }

    @Test func `compaction keeps what is asked for, and the log goes on`() throws {
        let log = try DeletionLog(path: path)
        for number in 1...100 { try log.append(item(number)) }
        try log.compact(keeping: [item(7), item(500)])
        #expect(try bytes().count == 28)
        try log.append(item(8))
        #expect(log.entries() == [item(7), item(8)])
        #expect(try DeletionLog(path: path).entries() == [item(7), item(8)])
    }

    @Test func `it does not grow with deletions that are done`() throws {
        let log = try DeletionLog(path: path)
        for number in 0..<10_000 {
            try log.append(item(number))
            if number >= 10 { try log.remove([item(number - 10)]) }
        }
        #expect(try bytes().count < 64 * 1024)
        #expect(try DeletionLog(path: path).entries() == Set((9990..<10_000).map(item)))
    }
}
