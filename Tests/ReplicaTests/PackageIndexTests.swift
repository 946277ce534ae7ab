import Replica
import Testing
import UbiquityModel

@Suite struct PackageIndexTests {
    private func path(_ text: String) throws -> ItemPath { try ItemPath(parsing: text) }

    private func sample() throws -> PackageIndex {
        PackageIndex([
            .init(path: try path("b/c"), kind: .file(size: 7, modified: Timestamp(nanoseconds: 5)), mode: 0o640),
            .init(path: try path("b"), kind: .folder, mode: 0o755, extended: [Array("user.x".utf8): [1, 2]]),
            .init(path: try path("b.txt"), kind: .file(size: 3, modified: Timestamp(nanoseconds: 9)), mode: 0o644),
            .init(path: try path("a"), kind: .symlink(target: Array("b/c".utf8)), mode: 0),
        ])
    }

    @Test func `it is the same in whatever order its elements were found, and comes back as it was`() throws {
        let index = try sample()
        #expect(index.elements.map(\.path.description) == ["a", "b", "b/c", "b.txt"])
        #expect(PackageIndex(index.elements.reversed()).encoded == index.encoded)
        #expect(index.contentSize == Int64(index.encoded.count) + 10)
        #expect(index.modified == Timestamp(nanoseconds: 9))
        #expect(index.files.map(\.offset) == [Int64(index.encoded.count), Int64(index.encoded.count) + 7])
        #expect(try PackageIndex.length(header: index.encoded.prefix(PackageIndex.headerSize)) == index.encoded.count)
        #expect(try PackageIndex(encoded: index.encoded, contentSize: index.contentSize) == index)
        let empty = PackageIndex([])
        #expect(try PackageIndex(encoded: empty.encoded, contentSize: empty.contentSize) == empty)
    }

    @Test func `folders as deep as a path can say are read, and what is deeper is known before it is sent`() throws {
        func nested(_ depth: Int) throws -> PackageIndex {
            let names = [Name](repeating: try Name("a"), count: depth)
            return PackageIndex(
                (1...depth).map { .init(path: ItemPath(Array(names[..<$0])), kind: .folder, mode: 0o755) }
            )
        }
        let index = try nested(1500)
        #expect(index.isReadable)
        #expect(try PackageIndex(encoded: index.encoded, contentSize: index.contentSize) == index)
        let deeper = try nested(2049)
        #expect(!deeper.isReadable)
        #expect(throws: PackageIndex.Fault.self) {
            try PackageIndex(encoded: deeper.encoded, contentSize: deeper.contentSize)
        }
    }

    @Test func `sizes that do not add up, a newer format and what is cut off are refused`() throws {
        let index = try sample()
        #expect(throws: PackageIndex.Fault.self) {
            try PackageIndex(encoded: index.encoded, contentSize: index.contentSize + 1)
        }
        var newer = index.encoded
        newer[5] = 2
        #expect(throws: PackageIndex.Fault.tooNew(version: 2)) {
            try PackageIndex(encoded: newer, contentSize: index.contentSize)
        }
        #expect(throws: PackageIndex.Fault.noIndex) { try PackageIndex.length(header: Array("no index at all".utf8)) }
        for count in 0..<index.encoded.count {
            #expect(throws: PackageIndex.Fault.self) {
                try PackageIndex(encoded: Array(index.encoded.prefix(count)), contentSize: index.contentSize)
            }
        }
    }

    /// Whatever another device sends: nothing leads out of the package, and no element has another's path.
    @Test(arguments: [
        "../x", "/etc/passwd", "a/../../x", "a//b", ".", "x/.", "missing/file", "a/b", "",
    ])
    func `paths that lead elsewhere are refused`(bad: String) throws {
        // A path of the same length is made the bad one in the encoded form, as no index can be made with it.
        let good = String(repeating: "z", count: bad.utf8.count)
        let first = PackageIndex.Element(
            path: try path("a"),
            kind: .file(size: 0, modified: Timestamp(nanoseconds: 0)),
            mode: 0o644
        )
        var elements = [first]
        if !good.isEmpty {
            elements.append(
                .init(path: try path(good), kind: .file(size: 0, modified: Timestamp(nanoseconds: 0)), mode: 0o644)
            )
        } else {
            elements.append(.init(path: .root, kind: .folder, mode: 0o755))
        }
        let index = PackageIndex(elements)
        var encoded = index.encoded
        if let place = encoded.indices.first(where: { encoded[$0...].starts(with: good.utf8) && !good.isEmpty }) {
            encoded.replaceSubrange(place..<place + good.utf8.count, with: bad.utf8)
        }
        #expect(throws: PackageIndex.Fault.self) {
            try PackageIndex(encoded: encoded, contentSize: index.contentSize)
        }
    }

    @Test func `bytes of any kind are read or refused, and what is read is written the same`() throws {
        let index = try sample()
        var random = SeededGenerator(seed: 42)
        for _ in 0..<20_000 {
            var bytes = index.encoded
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            guard let read = try? PackageIndex(encoded: bytes, contentSize: index.contentSize) else { continue }
            #expect(read.encoded == bytes)
            #expect(PackageIndex(read.elements).elements == read.elements)
        }
    }
}
