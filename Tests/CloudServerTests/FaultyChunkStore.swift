import ChunkStore
import Glibc
import Synchronization
import UbiquityModel

/// A store on a disk that does not do all it is told.
final class FaultyChunkStore: ChunkStore {
    struct Faults: Sendable {
        /// What the disk says that is free, or does not say.
        var freeBytes: Int64?
        var isFull = false
        /// How often something was to be stored.
        var stores = 0
        /// Packs that cannot be removed.
        var lasting: Set<UInt64> = []
        /// Chunks before which their packs end.
        var unreadable: Set<ChunkID> = []
    }

    private let disk: FolderChunkStore
    /// A leaf.
    private let state = Mutex(Faults())

    init(_ disk: FolderChunkStore) { self.disk = disk }

    var faults: Faults {
        get { state.withLock { $0 } }
        set { state.withLock { $0 = newValue } }
    }

    func store(_ chunks: [StoredChunk]) async throws(ChunkStoreError) -> [ChunkLocation] {
        let isFull = state.withLock { state in
            state.stores += 1
            return state.isFull
        }
        if isFull { throw .noSpace }
        return try await disk.store(chunks)
    }

    func dataCount(at location: ChunkLocation) throws(ChunkStoreError) -> Int { try disk.dataCount(at: location) }

    func read<Value: Sendable>(
        _ body: @escaping @Sendable (any ChunkReader) throws(ChunkStoreError) -> Value
    ) async throws(ChunkStoreError) -> Value {
        let unreadable = faults.unreadable
        return try await disk.read { reader throws(ChunkStoreError) in
            try body(FaultyReader(reader: reader, unreadable: unreadable))
        }
    }

    func hasPack(_ pack: UInt64) -> Bool { disk.hasPack(pack) }

    func hasPack(_ pack: UInt64, upTo end: UInt64) -> Bool { disk.hasPack(pack, upTo: end) }

    func hasRecord(in pack: UInt64, endingAt end: UInt64) -> Bool { disk.hasRecord(in: pack, endingAt: end) }

    func size(ofClosed pack: UInt64) async throws(ChunkStoreError) -> UInt64? { try await disk.size(ofClosed: pack) }

    func freeBytes() async -> Int64? { faults.freeBytes }

    func remove(_ pack: UInt64) async throws(ChunkStoreError) {
        if faults.lasting.contains(pack) { throw .failed("removing a pack", errno: EIO) }
        try await disk.remove(pack)
    }

    func close() async { await disk.close() }
}

private struct FaultyReader: ChunkReader {
    let reader: any ChunkReader
    let unreadable: Set<ChunkID>

    func read(
        _ chunk: ChunkRequest,
        into room: UnsafeMutableRawBufferPointer,
        examining: Bool
    ) throws(ChunkStoreError) -> Bool {
        if unreadable.contains(chunk.chunk) { throw .missing(pack: chunk.location.pack) }
        return try reader.read(chunk, into: room, examining: examining)
    }
}
