import Replica
import Testing
import UbiquityModel

@testable import SyncEngine

/// Where index and manifest of a package meet.
@Suite struct PackageChunksTests {
    private let index: PackageIndex
    /// Of the index, in bytes.
    private let start: UInt32

    init() throws {
        let time = Timestamp(nanoseconds: 5)
        index = PackageIndex([
            .init(path: try ItemPath(parsing: "a"), kind: .file(size: 10, modified: time), mode: 0o644),
            .init(path: try ItemPath(parsing: "b"), kind: .file(size: 0, modified: time), mode: 0o644),
            .init(path: try ItemPath(parsing: "c"), kind: .file(size: 20, modified: time), mode: 0o644),
        ])
        start = UInt32(index.encoded.count)
    }

    private func chunks(_ lengths: [UInt32]) throws -> PackageChunks {
        let entries = try lengths.enumerated().map { number, length in
            let chunk = try #require(ChunkID(bytes: [UInt8](repeating: UInt8(number), count: 32)))
            return Manifest.Entry(chunk: chunk, length: length)
        }
        return PackageChunks(Manifest(entries: entries))
    }

    @Test func `each file begins and ends where a chunk does`() throws {
        #expect(try chunks([start, 10, 20]).areThose(of: index))
        #expect(try chunks([start - 5, 5, 4, 6, 1, 19]).areThose(of: index))
        let others: [[UInt32]] = [
            [start + 10, 20], [start, 30], [start, 15, 15], [start + 1, 9, 20], [start, 10, 19], [start, 10, 20, 1],
            [start, 10], [],
        ]
        for lengths in others { #expect(try !chunks(lengths).areThose(of: index), "\(lengths)") }
        let empty = PackageIndex([])
        #expect(try chunks([UInt32(empty.encoded.count)]).areThose(of: empty))
    }

    @Test func `holes take no room, and what has no chunks of its own takes all of it`() throws {
        let chunks = try chunks([start, 4, 6, 20])
        let hole = try #require(ChunkID(bytes: [UInt8](repeating: 2, count: 32)))
        #expect(chunks.roomNeeded(from: Int64(start), size: 10, hole: hole) == 4)
        #expect(chunks.roomNeeded(from: Int64(start) + 10, size: 20, hole: hole) == 20)
        #expect(chunks.roomNeeded(from: Int64(start), size: 9, hole: hole) == 9)
    }

    @Test func `what is no part is not taken for an empty one`() throws {
        let chunks = try chunks([start, 4, 6, 20])
        let part = try #require(chunks.index(from: Int64(start), size: 10))
        #expect(part.map(\.range) == [0..<4, 4..<10])
        #expect(chunks.index(from: Int64(start), size: 0) == [])
        #expect(chunks.index(from: Int64(start) + 1, size: 9) == nil)
        #expect(chunks.index(from: Int64(start), size: 9) == nil)
        #expect(chunks.index(from: Int64(start), size: .max) == nil)
    }
}
