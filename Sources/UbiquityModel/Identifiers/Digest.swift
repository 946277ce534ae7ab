/// A 32-byte keyed digest. The parameter keeps chunk and content names apart.
package struct Digest<Kind>: Hashable, Sendable, Comparable {
    package let words: (UInt64, UInt64, UInt64, UInt64)

    /// `nil` if there are not exactly 32 bytes.
    package init?(bytes: some Collection<UInt8>) {
        guard let digest = withContiguousBytes(bytes, Self.init(bytes:)) else { return nil }
        self = digest
    }

    // Without anything generic (see `Name`).

    package init?(bytes: [UInt8]) {
        guard let digest = bytes.withUnsafeBytes(Self.init(bytes:)) else { return nil }
        self = digest
    }

    package init?(bytes: UnsafeRawBufferPointer) {
        guard bytes.count == 32 else { return nil }
        func word(_ index: Int) -> UInt64 {
            UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8 * index, as: UInt64.self))
        }
        words = (word(0), word(1), word(2), word(3))
    }

    package var bytes: [UInt8] { withBytes { Array($0) } }

    /// The 32 bytes, without an array of them.
    package func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        withUnsafeBytes(of: (words.0.bigEndian, words.1.bigEndian, words.2.bigEndian, words.3.bigEndian), body)
    }

    package static func == (left: Self, right: Self) -> Bool { left.words == right.words }
    package static func < (left: Self, right: Self) -> Bool { left.words < right.words }
    package func hash(into hasher: inout Hasher) {
        // Digests are uniformly distributed already.
        hasher.combine(words.0)
        hasher.combine(words.1)
    }
}

extension Digest: CustomStringConvertible {
    package var description: String { Hexadecimal.encode(bytes) }
}

package enum ChunkKindTag {}
package enum ContentKindTag {}

/// HMAC-SHA256(container's key, SHA-256 of the plain chunk): nobody without the key can probe for another's content.
package typealias ChunkID = Digest<ChunkKindTag>
/// HMAC-SHA256(container's key, SHA-256 of the concatenated SHA-256 of the plain chunks): equal exactly for equal content.
package typealias ContentID = Digest<ContentKindTag>
