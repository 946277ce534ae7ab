import CDigests
import Chunking
import Crypto
import Testing
import UbiquityModel

/// What is computed here without swift-crypto.
@Suite struct DigestTests {
    private func crc32c(_ bytes: some Collection<UInt8>, after before: UInt32 = 0) -> UInt32 {
        Array(bytes).withUnsafeBytes { cdigests_crc32c(before, $0.baseAddress, $0.count) }
    }

    /// From RFC 3720, B.4, and the one by which the polynomial is known.
    @Test func `sums are those of the standard`() {
        #expect(crc32c([]) == 0)
        #expect(crc32c("123456789".utf8) == 0xE306_9283)
        #expect(crc32c([UInt8](repeating: 0, count: 32)) == 0x8A91_36AA)
        #expect(crc32c([UInt8](repeating: 255, count: 32)) == 0x62A8_AB43)
        #expect(crc32c(0..<32) == 0x46DD_794E)
    }

    /// Computed the slow way, with lengths about those at which the quick way changes its step.
    @Test(arguments: [1, 7, 8, 9, 4_095, 12_287, 12_288, 12_289, 24_576, 40_000])
    func `sums do not depend on how they are computed`(count: Int) {
        var generator = SeededGenerator(seed: UInt64(count))
        let bytes = generator.bytes(count)
        var expected = ~UInt32(0)
        for byte in bytes {
            expected ^= UInt32(byte)
            for _ in 0..<8 { expected = expected >> 1 ^ (expected & 1 == 1 ? 0x82F6_3B78 : 0) }
        }
        #expect(crc32c(bytes) == ~expected)
        for cut in [0, 1, count / 2, count] {
            #expect(crc32c(bytes[cut...], after: crc32c(bytes[..<cut])) == ~expected)
        }
    }

    /// Every length of an end, in company of every kind of other message: those that end sooner, later, and together.
    @Test func `names of many chunks are those of each`() throws {
        let key = try #require(ContainerKey(bytes: [UInt8](repeating: 9, count: 32)))
        var generator = SeededGenerator(seed: 7)
        let content = generator.bytes(300_000)
        for round in 0..<40 {
            let lengths: [Int] =
                switch round {
                case 0: Array(0...200)
                case 1: [64, 64, 64, 128, 128]
                case 2: [0]
                case 3: []
                default:
                    (0..<1 + round % 9).map { _ in
                        Int.random(in: 0...(round % 3 == 0 ? 200_000 : 300), using: &generator)
                    }
                }
            content.withUnsafeBytes { content in
                let plains = lengths.map { length in
                    let start = Int.random(in: 0...content.count - length, using: &generator)
                    return UnsafeRawBufferPointer(rebasing: content[start..<start + length])
                }
                #expect(chunkIDs(of: plains, key: key) == plains.map { chunkID(of: $0, key: key) })
            }
        }
    }

    @Test func `one damaged frame among many is found, and no other`() throws {
        let key = try #require(ContainerKey(bytes: [UInt8](repeating: 9, count: 32)))
        var generator = SeededGenerator(seed: 8)
        let plains = (0..<40).map { number in
            number % 3 == 0 ? [UInt8](repeating: UInt8(number), count: 5_000) : generator.bytes(1 + number * 100)
        }
        let frames = plains.map { plain in
            plain.withUnsafeBytes { ChunkFrame.encode($0, as: chunkID(of: $0, key: key)) }
        }
        #expect(ChunkFrame.decoded(frames, key: key).map { try? $0.get() } == plains.map { $0[...] })
        try ChunkFrame.verify(frames, key: key)
        for index in frames.indices {
            var damaged = frames
            damaged[index].data[damaged[index].data.startIndex] ^= 1
            let expected = frames.indices.map { $0 == index ? nil : plains[$0][...] }
            #expect(ChunkFrame.decoded(damaged, key: key).map { try? $0.get() } == expected)
            #expect(throws: ChunkError.corrupted(frames[index].chunk)) { try ChunkFrame.verify(damaged, key: key) }
        }
    }
}
