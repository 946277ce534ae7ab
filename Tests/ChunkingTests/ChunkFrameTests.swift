import Chunking
import Testing
import UbiquityModel

@Suite struct ChunkFrameTests {
    let key: ContainerKey

    init() throws { key = try #require(ContainerKey(bytes: [UInt8](repeating: 9, count: 32))) }

    private func frame(_ plain: [UInt8]) -> ChunkFrame {
        plain.withUnsafeBytes { ChunkFrame.encode($0, as: chunkID(of: $0, key: key)) }
    }

    private var text: [UInt8] {
        Array(String(repeating: "all work and no play makes jack a dull boy\n", count: 3000).utf8)
    }
    private var noise: [UInt8] {
        var generator = SeededGenerator(seed: 3)
        return generator.bytes(100_000)
    }

    @Test func `text is compressed, noise is not, and both come back`() throws {
        let compressed = frame(text)
        #expect(compressed.isCompressed)
        #expect(compressed.data.count < text.count / 10)
        #expect(try compressed.decoded(key: key) == text[...])
        let plain = frame(noise)
        #expect(!plain.isCompressed)
        #expect(try plain.decoded(key: key) == noise[...])
    }

    @Test(arguments: [1, 2, 15, 16, 17, 100])
    func `the shortest chunks come back`(count: Int) throws {
        for byte in [UInt8(0), 255] {
            let plain = [UInt8](repeating: byte, count: count)
            #expect(try frame(plain).decoded(key: key) == plain[...])
        }
    }

    /// Everything that a broken disk or a forger may do to a frame.
    @Test(arguments: Damage.allCases)
    func `a damaged frame is refused`(damage: Damage) throws {
        for original in [frame(text), frame(noise)] {
            let damaged = damage.applied(to: original)
            #expect(throws: ChunkError.corrupted(damaged.chunk)) { _ = try damaged.decoded(key: key) }
        }
    }

    enum Damage: CaseIterable {
        case flippedBit, shortened, lengthened, emptied, lengthTooSmall, lengthTooBig, lengthBeyondLimit, lengthZero,
            otherName
        case otherEncoding

        func applied(to original: ChunkFrame) -> ChunkFrame {
            var frame = original
            switch self {
            case .flippedBit: frame.data[frame.data.count / 2] ^= 4
            case .shortened: frame.data.removeLast()
            case .lengthened: frame.data.append(0)
            case .emptied: frame.data = []
            case .lengthTooSmall: frame.length -= 1
            case .lengthTooBig: frame.length += 1
            case .lengthBeyondLimit: frame.length = .max
            case .lengthZero: frame.length = 0
            case .otherName: frame.chunk = ChunkID(bytes: [UInt8](repeating: 1, count: 32)) ?? frame.chunk
            case .otherEncoding: frame.isCompressed.toggle()
            }
            return frame
        }
    }

    @Test func `another container's key gives another name`() throws {
        let other = try #require(ContainerKey(bytes: [UInt8](repeating: 8, count: 32)))
        #expect(throws: ChunkError.self) { _ = try frame(text).decoded(key: other) }
    }
}
