internal import CatalogModel
internal import ChunkStore
internal import Logging
internal import Reconciliation
internal import UbiquityModel

/// Packs of which little is still referred to.
extension Housekeeping {
    /// Whoever has looked up where a chunk lies may still be about to read it there.
    private static let emptyFor: Duration = .hours(1)
    /// A catalogue that is restored from a backup leads to where chunks lay before they were moved.
    private static let movedFor: Duration = .days(7)
    /// So many bytes of records are moved in one round, at most.
    private static let movedAtOnce: Int64 = 1024 * 1024 * 1024
    private static let groupBytes: Int64 = 4 * 1024 * 1024

    /// Moves what is still needed out of packs that are half empty, and removes empty ones.
    /// - Returns: when there is something to do again.
    func clearPacks(_ start: Timestamp) async throws -> Timestamp {
        var next = Timestamp(nanoseconds: .max)
        var room = Self.movedAtOnce
        for pack in try await catalog.thinnedPacks(now: start) {
            try Task.checkCancellation()
            guard let size = try await chunks.size(ofClosed: pack.pack) else {
                if chunks.hasPack(pack.pack) {
                    // It is still added to, perhaps in this very round: its time begins when nothing is any more.
                    try await catalog.notEmptied(pack.pack)
                } else if pack.liveBytes == 0 {
                    try await catalog.forgetPack(pack.pack)
                }
                continue
            }
            if let emptied = pack.emptied {
                let due = emptied.after(pack.isMoved ? Self.movedFor : Self.emptyFor)
                if due <= start { try await remove(pack.pack) } else { next = min(next, due) }
            } else if UInt64(pack.liveBytes) < size / 2, pack.liveBytes <= room {
                room -= pack.liveBytes
                try await moveChunks(outOf: pack.pack)
                // It is empty from then on.
                next = min(next, start.after(Self.emptyFor))
            }
        }
        return next
    }

    private func remove(_ pack: UInt64) async throws {
        try await chunks.remove(pack)
        try await catalog.forgetPack(pack)
    }

    private func moveChunks(outOf pack: UInt64) async throws {
        var group: [PackedChunk] = []
        var bytes: Int64 = 0
        for chunk in try await catalog.chunks(in: pack) {
            if bytes + Int64(chunk.record.recordLength) > Self.groupBytes, !group.isEmpty {
                try await move(group)
                (group, bytes) = ([], 0)
            }
            group.append(chunk)
            bytes += Int64(chunk.record.recordLength)
        }
        if !group.isEmpty { try await move(group) }
    }

    private func move(_ group: [PackedChunk]) async throws {
        try Task.checkCancellation()
        let copies = try await read(group)
        let stored = try await chunks.store(copies.map(\.copy))
        let moves = zip(copies, stored).map { (original, location) -> (chunk: PackedChunk, to: ChunkRecord) in
            var record = original.chunk.record
            (record.pack, record.offset, record.recordLength) = (location.pack, location.offset, location.length)
            return (original.chunk, record)
        }
        try await catalog.moveChunks(moves)
    }

    /// Those that are whole. A damaged one stays where it is: it may be read better another time.
    private func read(_ group: [PackedChunk]) async throws -> [(chunk: PackedChunk, copy: StoredChunk)] {
        let sizes = try group.map { try chunks.dataCount(at: $0.record.location) }
        let (copies, damaged) = try await chunks.read { reader throws(ChunkStoreError) in
            var copies: [(chunk: PackedChunk, copy: StoredChunk)] = []
            var damaged: [PackedChunk] = []
            for (chunk, size) in zip(group, sizes) {
                var data = [UInt8](repeating: 0, count: size)
                var isDamaged = false
                do {
                    try data.withUnsafeMutableBytes { room in
                        let request = ChunkRequest(chunk: chunk.record.chunk, location: chunk.record.location)
                        isDamaged = try reader.read(request, into: room, examining: true)
                    }
                } catch let error as ChunkStoreError {
                    throw error
                } catch {
                    throw .failed("reading a chunk: \(error)", errno: 0)
                }
                guard !isDamaged else {
                    damaged.append(chunk)
                    continue
                }
                copies.append((chunk, chunk.copy(of: data)))
            }
            return (copies, damaged)
        }
        for chunk in damaged {
            logger.error("chunk \(chunk.record.chunk) is damaged on the server's disk (pack \(chunk.record.pack))")
        }
        return copies
    }
}

extension ChunkRecord {
    fileprivate var location: ChunkLocation { ChunkLocation(pack: pack, offset: offset, length: recordLength) }
}

extension PackedChunk {
    fileprivate func copy(of data: [UInt8]) -> StoredChunk {
        StoredChunk(
            container: container,
            chunk: record.chunk,
            length: record.length,
            isCompressed: record.isCompressed,
            data: data[...]
        )
    }
}
