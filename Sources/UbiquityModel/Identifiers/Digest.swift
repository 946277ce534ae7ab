/// A 32-byte keyed digest. The parameter keeps chunk and content names apart.
package struct Digest<Kind>: Hashable, Sendable, Comparable {
    package let words: (UInt64, UInt64, UInt64, UInt64)

    /// `nil` if there are not exactly 32 bytes.
    package init?(bytes: some Collection<UInt8>) {
        guard bytes.count == 32 else { return nil }
        var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
        for (index, byte) in bytes.enumerated() {
            switch index / 8 {
            case 0: words.0 = words.0 << 8 | UInt64(byte)
            case 1: words.1 = words.1 << 8 | UInt64(byte)
            case 2: words.2 = words.2 << 8 | UInt64(byte)
            default: words.3 = words.3 << 8 | UInt64(byte)
            }
        }
        self.words = words
    }

    package var bytes: [UInt8] {
        var result = [UInt8]()
        result.reserveCapacity(32)
        for word in [words.0, words.1, words.2, words.3] {
            for shift in stride(from: 56, through: 0, by: -8) {
                result.append(UInt8(truncatingIfNeeded: word >> UInt64(shift)))
            }
        }
        return result
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
