import Testing
import UbiquityModel

@Suite struct ManifestDifferenceTests {
    /// A change to a manifest of the chunks 1 to 100.
    struct Change: Sendable, CustomStringConvertible {
        let description: String
        let made: [UInt8]
        /// Of the encoded difference.
        let mostBytes: Int
    }

    private static func manifest(_ chunks: [UInt8]) throws -> Manifest {
        Manifest(
            entries: try chunks.map { number in
                let chunk = try #require(ChunkID(bytes: [UInt8](repeating: number, count: 32)))
                return Manifest.Entry(chunk: chunk, length: UInt32(number) + 1)
            }
        )
    }

    private static let base = [UInt8](1...100)

    @Test(arguments: [
        Change(description: "nothing", made: base, mostBytes: 10),
        Change(description: "the first chunk", made: [200] + base.dropFirst(), mostBytes: 60),
        Change(description: "the last chunk, and more", made: base.dropLast() + [200, 201], mostBytes: 100),
        Change(description: "one in the middle", made: base.prefix(50) + [200] + base.dropFirst(51), mostBytes: 70),
        Change(description: "halves that change places", made: base.suffix(50) + base.prefix(50), mostBytes: 20),
        Change(description: "one that comes again and again", made: [7, 7, 7, 8, 7], mostBytes: 40),
        Change(description: "all", made: [UInt8](101...200), mostBytes: 3606),
        Change(description: "emptied", made: [], mostBytes: 1),
    ]) func `a difference makes the new manifest of the old one`(change: Change) throws {
        let (base, made) = (try Self.manifest(Self.base), try Self.manifest(change.made))
        let difference = ManifestDifference(from: base, to: made)
        #expect(difference.count == made.entries.count)
        let encoded = difference.encoded
        #expect(encoded.count <= change.mostBytes)
        let decoded = try #require(ManifestDifference(encoded: encoded))
        #expect(decoded == difference)
        #expect(decoded.applied(to: base, limit: made.entries.count) == made)
        #expect(made.entries.isEmpty || decoded.applied(to: base, limit: made.entries.count - 1) == nil)
    }

    @Test func `a difference of the same chunks with other lengths copies nothing`() throws {
        let base = try Self.manifest([1, 2])
        var made = base
        made.entries[1].length = 9
        #expect(ManifestDifference(from: base, to: made).parts == [.copied(0..<1), .fresh([made.entries[1]])])
    }

    @Test func `a difference to another base is refused where it reaches beyond it, and every cut one`() throws {
        let (base, short) = (try Self.manifest(Self.base), try Self.manifest([1, 2, 3]))
        let made = try Self.manifest([UInt8](2...100) + [200])
        let difference = ManifestDifference(from: base, to: made)
        #expect(difference.applied(to: short, limit: 1000) == nil)
        let encoded = difference.encoded
        for count in 0..<encoded.count {
            let cut = ManifestDifference(encoded: encoded.prefix(count))
            #expect(cut == nil || cut?.parts.count ?? 0 < difference.parts.count)
        }
        #expect(ManifestDifference(encoded: [2] + encoded.dropFirst()) == nil)
        #expect(ManifestDifference(encoded: encoded + [3]) == nil)
    }
}
