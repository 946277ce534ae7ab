internal import Dispatch
internal import Synchronization
internal import UbiquityModel

/// Chunks in packs in a folder: append-only files of up to 64 MiB.
///
/// A write is queued; one thread takes what is queued by then, appends it all to one pack, syncs once, and answers everyone: many small
/// uploads cost one sync. Readers are beside that, on threads of their own.
package final class FolderChunkStore: ChunkStore {
    private struct Job: Sendable {
        let chunks: [StoredChunk]
        let finish: @Sendable (Result<[ChunkLocation], ChunkStoreError>) -> Void
    }

    private struct State {
        var waiting: [Job] = []
        var isDraining = false
        var isClosed = false
    }

    /// A pack is begun anew when it has passed so many bytes.
    package static let packLimit: UInt64 = 64 * 1024 * 1024
    /// So much is written and synced at once, at most (but for one single job).
    private static let groupBytes = 16 * 1024 * 1024

    private let folder: PackFolder
    /// What turned out not to be what was stored. A leaf.
    private let damaged: DamagedRecords
    /// Whoever asks for a record waits within a transaction.
    private let breaker = LookBreaker()
    private let writer: PackWriter
    private let writing = DispatchQueue(label: "chunks.writing")
    private let reading = DispatchQueue(label: "chunks.reading", attributes: .concurrent)
    /// Guards the queue of writes. A leaf: nothing is called under it.
    private let state = Mutex(State())

    /// Opens the folder, or makes it, and cuts off what a crash left at the end of the newest pack. What is stored goes to a new one.
    /// - Parameter firstPack: new packs have no lower number. One that grows with time keeps a catalogue that is newer than the folder,
    ///   which is a backup, from taking other packs for those that are lost.
    /// - Parameter gap: added to the newest pack's number, for the first new pack, where that is not lower than `firstPack`: the clock is
    ///   behind then, and what is there may be a backup. One that is different each time keeps two openings of one backup apart, too.
    package init(
        folder path: String,
        packLimit: UInt64 = FolderChunkStore.packLimit,
        firstPack: UInt64 = 1,
        gap: UInt64 = 0
    ) throws(ChunkStoreError) {
        folder = try PackFolder(path: path, firstPack: firstPack, gap: gap)
        damaged = DamagedRecords(folder: path)
        writer = try PackWriter(folder: folder, packLimit: packLimit)
    }

    package func store(_ chunks: [StoredChunk]) async throws(ChunkStoreError) -> [ChunkLocation] {
        guard !chunks.isEmpty else { return [] }
        return try await withCheckedContinuation { continuation in
            enqueue(Job(chunks: chunks) { continuation.resume(returning: $0) })
        }.get()
    }

    package func dataCount(at location: ChunkLocation) throws(ChunkStoreError) -> Int {
        let count = Int(location.length) - PackRecord.headerBytes
        // A catalogue that is damaged names any place.
        guard count > 0, location.length <= PackRecord.longest,
            location.offset <= UInt64(Int64.max) - UInt64(location.length)
        else { throw .missing(pack: location.pack) }
        return count
    }

    package func read<Value: Sendable>(
        _ body: @escaping @Sendable (any ChunkReader) throws(ChunkStoreError) -> Value
    ) async throws(ChunkStoreError) -> Value {
        let reader = PackReader(folder: folder, damaged: damaged)
        return try await withCheckedContinuation { (continuation: CheckedContinuation<Result<Value, _>, Never>) in
            reading.async {
                continuation.resume(returning: Result { () throws(ChunkStoreError) in try body(reader) })
            }
        }.get()
    }

    package func hasPack(_ pack: UInt64) -> Bool { folder.contains(pack) }

    package func hasPack(_ pack: UInt64, upTo end: UInt64) -> Bool { folder.contains(pack, upTo: end) }

    package func hasRecord(in pack: UInt64, endingAt end: UInt64) -> Bool {
        guard folder.contains(pack, upTo: end) else { return false }
        guard let record = damaged[pack, endingAt: end] else { return true }
        return breaker.look { isWhole(record) }
    }

    /// Whoever mends the disk says nothing of it: it is looked at. Blocks on that.
    private func isWhole(_ record: ChunkRequest) -> Bool {
        do {
            var room = [UInt8](repeating: 0, count: try dataCount(at: record.location))
            let reader = PackReader(folder: folder, damaged: damaged)
            return try room.withUnsafeMutableBytes { room throws(ChunkStoreError) in
                try !reader.read(record, into: room, examining: true)
            }
        } catch {
            return false
        }
    }

    package func size(ofClosed pack: UInt64) async throws(ChunkStoreError) -> UInt64? {
        let folder = folder
        return try await read { _ throws(ChunkStoreError) in
            folder.isClosed(pack) ? try folder.open(pack, forWriting: false).size() : nil
        }
    }

    package func freeBytes() async -> Int64? {
        let folder = folder
        return try? await read { _ throws(ChunkStoreError) in folder.freeBytes() }
    }

    package func remove(_ pack: UInt64) async throws(ChunkStoreError) {
        let folder = folder
        try await read { _ throws(ChunkStoreError) in
            if folder.isClosed(pack) { try folder.remove(pack) }
        }
    }

    package func close() async {
        state.withLock { $0.isClosed = true }
        await withCheckedContinuation { continuation in
            writing.async {
                self.writer.finish()
                continuation.resume()
            }
        }
        await withCheckedContinuation { continuation in reading.async(flags: .barrier) { continuation.resume() } }
        folder.release()
    }

    // MARK: Writing

    private func enqueue(_ job: Job) {
        enum Step { case refuse, wait, start }
        let step = state.withLock { state -> Step in
            if state.isClosed { return .refuse }
            state.waiting.append(job)
            defer { state.isDraining = true }
            return state.isDraining ? .wait : .start
        }
        switch step {
        case .refuse: job.finish(.failure(.closed))
        case .wait: break
        case .start: writing.async { self.drain() }
        }
    }

    private func drain() {
        while let group = nextGroup() {
            do {
                var locations = try writer.append(group.flatMap(\.chunks))[...]
                for job in group {
                    job.finish(.success(Array(locations.prefix(job.chunks.count))))
                    locations = locations.dropFirst(job.chunks.count)
                }
            } catch {
                for job in group { job.finish(.failure(error)) }
            }
        }
    }

    private func nextGroup() -> [Job]? {
        state.withLock { state in
            guard !state.waiting.isEmpty else {
                state.isDraining = false
                return nil
            }
            var count = 0
            var bytes = 0
            for job in state.waiting {
                bytes += job.chunks.reduce(0) { $0 + $1.data.count }
                if count > 0, bytes > Self.groupBytes { break }
                count += 1
            }
            let group = Array(state.waiting.prefix(count))
            state.waiting.removeFirst(count)
            return group
        }
    }
}
