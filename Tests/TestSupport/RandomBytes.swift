/// A generator whose sequence its seed decides (SplitMix64): a failed run can be repeated.
package struct SeededGenerator: RandomNumberGenerator, Sendable {
    private var state: UInt64

    package init(seed: UInt64) {
        state = seed
    }

    package mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var word = state
        word = (word ^ (word >> 30)) &* 0xbf58_476d_1ce4_e5b9
        word = (word ^ (word >> 27)) &* 0x94d0_49bb_1331_11eb
        return word ^ (word >> 31)
    }

    /// Bytes that no compressor makes smaller.
    package mutating func bytes(_ count: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            var offset = 0
            while offset + 8 <= count {
                UnsafeMutableRawBufferPointer(buffer).storeBytes(of: next(), toByteOffset: offset, as: UInt64.self)
                offset += 8
            }
            var rest = next()
            while offset < count {
                buffer[offset] = UInt8(truncatingIfNeeded: rest)
                rest >>= 8
                offset += 1
            }
            filled = count
        }
    }
}

/// Random bytes that belong to a seed.
package func randomBytes(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
    var generator = SeededGenerator(seed: seed)
    return generator.bytes(count)
}
