import Testing
import UbiquityModel

@Suite struct IdentifierTests {
    @Test func `an identifier comes back from its bytes and its digits`() throws {
        for id in [ItemID.root, ItemID(high: .max, low: 1), .random()] {
            #expect(ItemID(bytes: id.bytes) == id)
            #expect(ItemID(id.description) == id)
            #expect(id.description.utf8.count == 32)
        }
    }

    @Test(arguments: [0, 15, 17, 32])
    func `other lengths are none`(length: Int) {
        #expect(ItemID(bytes: [UInt8](repeating: 1, count: length)) == nil)
    }

    @Test func `the order is that of the bytes`() throws {
        let sorted = (0..<100).map { _ in ItemID.random() }.sorted()
        for (left, right) in zip(sorted, sorted.dropFirst()) {
            #expect(left.bytes.lexicographicallyPrecedes(right.bytes) || left == right)
        }
    }

    @Test func `those made later come later`() throws {
        let ids = [0, 5_000_000, 1_795_336_218_589_604_242, .max].map { ItemID.made(at: Timestamp(nanoseconds: $0)) }
        #expect(ids == ids.sorted())
        #expect(ids[2].bytes.prefix(6).reduce(0) { $0 << 8 | Int64($1) } == 1_795_336_218_589)
        let same = (0..<1000).map { _ in ItemID.made(at: Timestamp(nanoseconds: 7)) }
        #expect(Set(same).count == same.count)
        // A clock that was never set.
        #expect(ItemID.made(at: Timestamp(nanoseconds: -1)).bytes.prefix(6).allSatisfy { $0 == 0 })
    }

    @Test func `a digest comes back from its bytes`() throws {
        let bytes = (0..<32).map { UInt8($0 * 8) }
        let digest = try #require(ChunkID(bytes: bytes))
        #expect(digest.bytes == bytes)
        #expect(digest.description == Hexadecimal.encode(bytes))
        #expect(ChunkID(bytes: bytes.dropLast()) == nil)
    }

    @Test(arguments: ["0", "0g", "zz", "00 "])
    func `what is not hexadecimal is none`(text: String) {
        #expect(Hexadecimal.decode(text) == nil)
    }

    @Test(arguments: ["Documents", "a", "A.b_c-9", String(repeating: "x", count: 128)])
    func `a container's name`(text: String) {
        #expect(ContainerID(text)?.text == text)
    }

    @Test(arguments: ["", ".", "..", ".hidden", "a/b", "a b", "ü", String(repeating: "x", count: 129)])
    func `what is no container's name`(text: String) {
        #expect(ContainerID(text) == nil)
    }
}

@Suite struct ManifestTests {
    private func entry(_ byte: UInt8, _ length: UInt32) throws -> Manifest.Entry {
        Manifest.Entry(chunk: try #require(ChunkID(bytes: [UInt8](repeating: byte, count: 32))), length: length)
    }

    @Test func `a manifest comes back as it went`() throws {
        let manifest = Manifest(entries: [
            try entry(1, 1), try entry(2, UInt32(Manifest.maximumChunkSize)), try entry(1, 77),
        ])
        #expect(Manifest(encoded: manifest.encoded) == manifest)
        #expect(manifest.encoded.count == 3 * 36)
        #expect(manifest.size == Int64(1 + Manifest.maximumChunkSize + 77))
        #expect(Manifest(encoded: [UInt8]()) == Manifest())
    }

    @Test(arguments: [UInt32(0), UInt32(Manifest.maximumChunkSize + 1), .max])
    func `a chunk's length has its bounds`(length: UInt32) throws {
        #expect(Manifest(encoded: Manifest(entries: [try entry(1, length)]).encoded) == nil)
    }

    @Test func `a torn manifest is none`() throws {
        let encoded = Manifest(entries: [try entry(1, 5), try entry(2, 5)]).encoded
        for length in 1..<encoded.count where length != 36 { #expect(Manifest(encoded: encoded.prefix(length)) == nil) }
    }
}

@Suite struct TimestampTests {
    @Test(arguments: [
        (Int64(0), Int64(0)), (1, 999_999_999), (-1, 1), (-1, 999_999_999), (253_402_300, 5),
    ])
    func `seconds and nanoseconds come back`(seconds: Int64, nanoseconds: Int64) {
        let parts = Timestamp(seconds: seconds, nanoseconds: nanoseconds).parts
        #expect(parts.seconds == seconds)
        #expect(parts.nanoseconds == nanoseconds)
    }

    @Test func `times out of range become the nearest`() {
        #expect(Timestamp(seconds: .max, nanoseconds: 0).nanoseconds == .max)
        #expect(Timestamp(seconds: .min, nanoseconds: 0).nanoseconds == .min)
    }
}
