import Dispatch
import Synchronization
import Testing
import UbiquityModel

@testable import Chunking

@Suite struct GuidedChunkerTests {
    let key: ContainerKey

    init() throws { key = try #require(ContainerKey(bytes: Array(0..<32))) }

    private struct Cut: Equatable {
        var manifest = Manifest()
        var content: ContentID?
        var joined: [UInt8] = []
    }

    private func cut(_ content: [UInt8]) -> Cut {
        var result = Cut()
        var chunker = Chunker(key: key)
        content.withUnsafeBytes { bytes in
            chunker.append(bytes) { _, chunk in result.joined.append(contentsOf: chunk) }
        }
        let (manifest, id) = chunker.finish { _, chunk in result.joined.append(contentsOf: chunk) }
        (result.manifest, result.content) = (manifest, id)
        return result
    }

    private func guided(_ content: [UInt8], former: Manifest) throws -> (cut: Cut, searched: Int64) {
        var result = Cut()
        var chunker = GuidedChunker(
            key: key,
            former: former,
            size: Int64(content.count),
            blocksAhead: 1,
            submit: { job in DispatchQueue.global().async { job() } },
            read: { room, offset in
                // Less than was asked for, now and then.
                let count = min(room.count, content.count - Int(offset), 700_001)
                room.copyBytes(from: content[Int(offset)..<Int(offset) + count])
                return count
            }
        )
        let (manifest, id) = try chunker.cut { _, chunk in result.joined.append(contentsOf: chunk) }
        (result.manifest, result.content) = (manifest, id)
        return (result, chunker.searched)
    }

    struct Edit: CustomTestStringConvertible, Sendable {
        var testDescription: String
        /// Of a content of `size` bytes.
        var make: @Sendable ([UInt8], inout SeededGenerator) -> [UInt8]
        /// Bytes in which ends may have to be searched.
        var mostSearched: Int
    }

    private static let size = 9_000_000
    /// What is cut ahead before it shows that a chunk is known.
    private static let ahead = 6 << 20

    static let edits = [
        Edit(testDescription: "nothing", make: { content, _ in content }, mostSearched: 0),
        Edit(testDescription: "an append", make: { $0 + $1.bytes(1 << 20) }, mostSearched: (1 << 20) + (1 << 18)),
        Edit(testDescription: "a byte at the start", make: { content, _ in [1] + content }, mostSearched: ahead),
        Edit(
            testDescription: "a byte in the middle",
            make: { content, _ in content[..<4_500_000] + [1] + content[4_500_000...] },
            mostSearched: ahead
        ),
        Edit(
            testDescription: "a part is missing",
            make: { content, _ in Array(content[..<2_000_000] + content[4_000_000...]) },
            mostSearched: ahead
        ),
        Edit(
            testDescription: "only the beginning",
            make: { content, _ in Array(content[..<3_777_777]) },
            mostSearched: 1 << 19
        ),
        Edit(
            testDescription: "two halves exchanged",
            make: { content, _ in Array(content[4_000_000...] + content[..<4_000_000]) },
            mostSearched: 2 * ahead
        ),
        Edit(
            testDescription: "all else",
            make: { content, generator in generator.bytes(content.count) },
            mostSearched: size
        ),
        Edit(
            testDescription: "many bytes here and there",
            make: { content, generator in
                var content = content
                for _ in 0..<8 { content[Int.random(in: content.indices, using: &generator)] ^= 1 }
                return content
            },
            mostSearched: 8 * size
        ),
        Edit(testDescription: "nothing is left", make: { _, _ in [] }, mostSearched: 0),
        Edit(
            testDescription: "zeros",
            make: { content, _ in [UInt8](repeating: 0, count: content.count) },
            mostSearched: 8 * size
        ),
    ]

    @Test(arguments: edits)
    func `along a former content the same chunks are found, and little is searched`(edit: Edit) throws {
        var generator = SeededGenerator(seed: 3)
        let former = generator.bytes(Self.size)
        let content = edit.make(former, &generator)
        let (found, searched) = try guided(content, former: cut(former).manifest)
        #expect(found == cut(content))
        #expect(searched <= edit.mostSearched)
    }

    @Test func `what repeats itself is cut alike, and not searched again and again`() throws {
        var generator = SeededGenerator(seed: 4)
        let zeros = [UInt8](repeating: 0, count: 2_000_000)
        let former = zeros + generator.bytes(300_000)
        let content = generator.bytes(100_000) + zeros + zeros + generator.bytes(300_000) + zeros
        let (found, searched) = try guided(content, former: cut(former).manifest)
        #expect(found == cut(content))
        #expect(searched <= 4 * content.count)
    }

    @Test func `chunks that nobody would have cut are no error`() throws {
        var generator = SeededGenerator(seed: 5)
        let content = generator.bytes(2_000_000)
        var strange = cut(content).manifest
        strange.entries = strange.entries.map { Manifest.Entry(chunk: $0.chunk, length: $0.length / 2 + 1) }
        #expect(try guided(content, former: strange).cut == cut(content))
    }

    @Test(arguments: [GuidedChunker.Failure.ended, .system(5)])
    func `what cannot be read ends it`(failure: GuidedChunker.Failure) throws {
        var generator = SeededGenerator(seed: 6)
        let content = generator.bytes(9_000_000)
        let former = cut(content).manifest
        for guide in [former, Manifest(entries: Array(former.entries.reversed()))] {
            var chunker = GuidedChunker(
                key: key,
                former: guide,
                size: Int64(content.count),
                submit: { job in DispatchQueue.global().async { job() } },
                read: { room, offset in
                    if offset + Int64(room.count) > 5_000_000 {
                        if case .system(let number) = failure { return -Int(number) }
                        return 0
                    }
                    room.copyBytes(from: content[Int(offset)..<Int(offset) + room.count])
                    return room.count
                }
            )
            let thrown = #expect(throws: GuidedChunker.Failure.self) { try chunker.cut { _, _ in } }
            switch (thrown, failure) {
            case (.ended?, .ended), (.system(5)?, .system(5)): break
            default: Issue.record("\(String(describing: thrown))")
            }
        }
    }

    @Test func `who gets the chunks may end it`() {
        struct Full: Error {}
        var generator = SeededGenerator(seed: 7)
        let content = generator.bytes(9_000_000)
        let reading = Atomic(0)
        var chunker = GuidedChunker(
            key: key,
            former: cut(content).manifest,
            size: Int64(content.count),
            submit: { job in DispatchQueue.global().async { job() } },
            read: { room, offset in
                reading.add(1, ordering: .relaxed)
                defer { reading.subtract(1, ordering: .relaxed) }
                room.copyBytes(from: content[Int(offset)..<Int(offset) + room.count])
                return room.count
            }
        )
        #expect(throws: Full.self) { try chunker.cut { _, _ in throw Full() } }
        // Its file may be closed now.
        #expect(reading.load(ordering: .relaxed) == 0)
    }
}
