import Chunking
import Crypto
import Dispatch
import Testing
import UbiquityModel

@Suite struct ChunkerTests {
    let key: ContainerKey

    init() throws { key = try #require(ContainerKey(bytes: Array(0..<32))) }

    private struct Cut: Equatable {
        var chunks: [ChunkID] = []
        var lengths: [Int] = []
        var joined: [UInt8] = []
        var content: ContentID?
        var manifest = Manifest()
    }

    /// Feeds the content in pieces of these lengths, over and over.
    private func cut(_ content: [UInt8], pieces: [Int]) -> Cut {
        var result = Cut()
        var chunker = Chunker(key: key)
        func take(_ id: ChunkID, _ bytes: UnsafeRawBufferPointer) {
            result.chunks.append(id)
            result.lengths.append(bytes.count)
            result.joined.append(contentsOf: bytes)
        }
        content.withUnsafeBytes { all in
            var offset = 0
            var turn = 0
            while offset < all.count {
                let end = min(all.count, offset + pieces[turn % pieces.count])
                chunker.append(UnsafeRawBufferPointer(rebasing: all[offset..<end]), emit: take)
                offset = end
                turn += 1
            }
        }
        let (manifest, id) = chunker.finish(emit: take)
        result.content = id
        result.manifest = manifest
        return result
    }

    @Test(arguments: 1...3 as ClosedRange<UInt64>)
    func `chunks depend on the content, not on the pieces it comes in`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let content = generator.bytes(Int.random(in: 300_000...800_000, using: &generator))
        let whole = cut(content, pieces: [content.count])
        #expect(whole.joined == content)
        #expect(whole.manifest.size == Int64(content.count))
        let random = (0..<7).map { _ in Int.random(in: 1...200_000, using: &generator) }
        for pieces in [[4096], [65_537, 1], [262_144], [32_768, 32_767, 32_769], random] {
            #expect(cut(content, pieces: pieces) == whole, "pieces of \(pieces)")
        }
    }

    /// The same, with chunks named beside, read in pieces of these lengths.
    private func cutBeside(_ content: [UInt8], pieces: [Int]) throws -> Cut {
        var result = Cut()
        var chunker = ParallelChunker(key: key) { job in DispatchQueue.global().async { job() } }
        func take(_ id: ChunkID, _ bytes: UnsafeRawBufferPointer) {
            result.chunks.append(id)
            result.lengths.append(bytes.count)
            result.joined.append(contentsOf: bytes)
        }
        var offset = 0
        var turn = 0
        while offset < content.count {
            let wanted = pieces[turn % pieces.count]
            turn += 1
            offset += try chunker.append(
                read: { room in
                    #expect(room.count == ParallelChunker.blockSize)
                    let count = min(content.count - offset, wanted, room.count)
                    room.copyBytes(from: content[offset..<offset + count])
                    return count
                },
                emit: take
            )
        }
        let (manifest, id) = try chunker.finish(emit: take)
        result.content = id
        result.manifest = manifest
        return result
    }

    @Test(arguments: [0, 1, 32_768, 300_000, 2 << 20, (2 << 20) + 1, 40_000_000])
    func `what is named beside has the same chunks in the same order`(count: Int) throws {
        var generator = SeededGenerator(seed: 8)
        let content = generator.bytes(count)
        let whole = cut(content, pieces: [max(count, 1)])
        for pieces in [[Int.max], [65_537, 1], [262_144, Int.max]] {
            #expect(try cutBeside(content, pieces: pieces) == whole, "pieces of \(pieces)")
        }
        let zeros = [UInt8](repeating: 0, count: count)
        #expect(try cutBeside(zeros, pieces: [Int.max]) == cut(zeros, pieces: [max(count, 1)]))
    }

    @Test func `what reader or receiver throw ends what is named beside`() {
        struct Full: Error {}
        for throwsInRead in [false, true] {
            #expect(throws: Full.self) {
                var chunker = ParallelChunker(key: key) { job in DispatchQueue.global().async { job() } }
                for turn in 0..<20 {
                    _ = try chunker.append(
                        read: { room in
                            if throwsInRead, turn == 10 { throw Full() }
                            room.initializeMemory(as: UInt8.self, repeating: UInt8(turn))
                            return room.count
                        },
                        emit: { _, _ in if !throwsInRead { throw Full() } }
                    )
                }
            }
        }
    }

    @Test func `lengths stay within the limits and gather around the normal one`() {
        var generator = SeededGenerator(seed: 11)
        let lengths = cut(generator.bytes(5 << 20), pieces: [1 << 20]).lengths
        #expect(lengths.dropLast().allSatisfy { (32 * 1024...256 * 1024).contains($0) })
        #expect((96 * 1024...160 * 1024).contains(lengths.reduce(0, +) / lengths.count))
    }

    @Test func `content without any end in it is cut at the most length`() {
        let lengths = cut([UInt8](repeating: 0, count: 600_000), pieces: [10_000]).lengths
        #expect(lengths == [262_144, 262_144, 75_712])
    }

    @Test(arguments: [0, 1, 1000, 32_768])
    func `short content is one chunk, empty content none`(count: Int) {
        let result = cut([UInt8](repeating: 7, count: count), pieces: [333])
        #expect(result.lengths == (count == 0 ? [] : [count]))
        #expect(result.manifest.entries.count == result.lengths.count)
    }

    @Test func `an insertion changes only the chunks around it`() {
        var generator = SeededGenerator(seed: 5)
        let before = generator.bytes(3 << 20)
        var after = before
        after.insert(contentsOf: Array("a few bytes more".utf8), at: 1_500_000)
        let known = Set(cut(before, pieces: [1 << 20]).chunks)
        let new = cut(after, pieces: [1 << 20]).chunks.filter { !known.contains($0) }
        #expect((1...4).contains(new.count))
    }

    @Test func `names are HMACs over SHA-256, of chunks and of the list of their names`() throws {
        var generator = SeededGenerator(seed: 21)
        let content = generator.bytes(700_000)
        let result = cut(content, pieces: [content.count])
        let symmetric = SymmetricKey(data: key.bytes)
        func authenticated(_ bytes: [UInt8]) -> [UInt8] {
            Array(HMAC<SHA256>.authenticationCode(for: Array(SHA256.hash(data: bytes)), using: symmetric))
        }
        var offset = 0
        for (id, length) in zip(result.chunks, result.lengths) {
            #expect(id.bytes == authenticated(Array(content[offset..<offset + length])))
            offset += length
        }
        #expect(result.content?.bytes == authenticated(result.chunks.flatMap(\.bytes)))
        #expect(result.content == contentID(of: result.manifest, key: key))
    }

    /// What devices have stored depends on these: a failure here means that the format version must change.
    @Test func `the format is fixed`() {
        var generator = SeededGenerator(seed: 2026)
        let result = cut(generator.bytes(1_000_000), pieces: [1_000_000])
        #expect(result.lengths == pinnedLengths)
        #expect(result.content?.description == pinnedContent)
    }

    @Test func `what the receiver throws comes out`() {
        struct Full: Error {}
        #expect(throws: Full.self) {
            var chunker = Chunker(key: key)
            try [UInt8](repeating: 1, count: 300_000).withUnsafeBytes {
                try chunker.append($0) { _, _ in throw Full() }
            }
        }
    }

    @Test(arguments: [0, 31, 33])
    func `a key has 32 bytes`(count: Int) {
        #expect(ContainerKey(bytes: [UInt8](repeating: 0, count: count)) == nil)
    }

    @Test func `a key does not show itself`() { #expect("\(key)" == "ContainerKey") }
}

private let pinnedLengths = [152_136, 176_340, 166_418, 139_063, 158_796, 207_247]
private let pinnedContent = "cbe337cebae2655b8707ed4bfa4e900d348196790ca89047ed268832d2b57ad3"
