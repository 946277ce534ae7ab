internal import CatalogModel
internal import CatalogStore
internal import ChunkStore
internal import Logging
internal import Reconciliation
internal import UbiquityModel

/// Packs of which little is still referred to, or nothing.
extension Housekeeping {
    /// Whoever has looked up where a chunk lies may still be about to read it there.
    private static let emptyFor: Duration = .hours(1)
    /// A catalogue that is restored from a backup leads to where chunks lay before they were moved.
    private static let movedFor: Duration = .days(7)
    /// With less room than that on the disk, what it needs is this room and not the week.
    private static let wantedRoom: Int64 = 2 * 1024 * 1024 * 1024
    /// So many bytes of records are moved in one round, at most, and a quarter of what is free: they are there twice for a while.
    private static let movedAtOnce: Int64 = 1024 * 1024 * 1024
    private static let groupBytes: Int64 = 4 * 1024 * 1024
    /// The chunks of so many packs are looked up at once, since that reads all chunks' rows; of so many bytes, since they are in memory.
    private static let packsAtOnce = 64
    private static let listedBytes: Int64 = 256 * 1024 * 1024

    /// Removes empty packs, and moves what is still needed out of those that are half empty.
    /// - Parameter isBehind: `now` is not what the clock says, and follows it by leaps.
    /// - Returns: when there is something to do again.
    func clearPacks(_ now: Timestamp, isBehind: Bool) async throws -> Timestamp {
        try Task.checkCancellation()
        let packs = try await catalog.thinnedPacks(now: now)
        guard !packs.isEmpty else { return Timestamp(nanoseconds: .max) }
        let isTight = await chunks.freeBytes().map { $0 < Self.wantedRoom } ?? false
        func end(of pack: PackUse) -> Timestamp? {
            pack.emptied?.after(pack.isMoved && !isTight ? Self.movedFor : Self.emptyFor)
        }
        // First what makes room: on a full disk nothing else may go well.
        var rest: [PackUse] = []
        for pack in packs {
            // While time is counted in steps of days, these say nothing of how long that was.
            guard let due = end(of: pack), due <= now, !isBehind else {
                rest.append(pack)
                continue
            }
            try await attempt("removing", pack.pack) {
                guard try await chunks.size(ofClosed: pack.pack) != nil else { return rest.append(pack) }
                try await chunks.remove(pack.pack)
                try await catalog.forgetPack(pack.pack)
            }
        }
        var next = Timestamp(nanoseconds: .max)
        var thin: [PackUse] = []
        for pack in rest {
            try await attempt("looking at", pack.pack) {
                guard let size = try await chunks.size(ofClosed: pack.pack) else { return try await noteOpen(pack) }
                if let due = end(of: pack) {
                    next = min(next, max(due, isBehind ? now.after(Self.emptyFor) : due))
                } else if pack.liveBytes < Int64(clamping: size) / 2 {
                    thin.append(pack)
                }
            }
        }
        if try await moveChunks(outOf: thin) {
            // They are empty from then on.
            next = min(next, now.after(Self.emptyFor))
        }
        return next
    }

    /// What fails of one pack is no reason to leave the others.
    private func attempt(_ what: String, _ pack: UInt64, _ body: () async throws -> Void) async throws {
        try Task.checkCancellation()
        do { try await body() } catch {
            try Task.checkCancellation()
            logger.warning("\(what) pack \(pack): \(error)")
        }
    }

    private func noteOpen(_ pack: PackUse) async throws {
        if chunks.hasPack(pack.pack) {
            // It is still added to, perhaps in this very round: its time begins when nothing is any more.
            if pack.emptied != nil { try await catalog.notEmptied(pack.pack) }
        } else if pack.liveBytes == 0 {
            try await catalog.forgetPack(pack.pack)
        }
    }

    // MARK: Moving

    /// - Returns: whether anything was moved.
    private func moveChunks(outOf packs: [PackUse]) async throws -> Bool {
        guard !packs.isEmpty else { return false }
        var room = min(Self.movedAtOnce, (await chunks.freeBytes() ?? .max) / 4)
        let chosen = packs.filter { pack in
            guard pack.liveBytes <= room else { return false }
            room -= pack.liveBytes
            return true
        }
        var left = chosen[...]
        var (hasMoved, isFull) = (false, false)
        while !left.isEmpty, !isFull {
            let listed = left.prefix(Self.listedCount(left))
            left = left.dropFirst(listed.count)
            try await attempt("looking up chunks from", listed[listed.startIndex].pack) {
                let found = Dictionary(grouping: try await catalog.chunks(in: listed.map(\.pack)), by: \.record.pack)
                for pack in listed where !isFull {
                    try await attempt("moving chunks out of", pack.pack) {
                        do {
                            for group in Self.groups(found[pack.pack] ?? []) {
                                if try await move(group) { hasMoved = true }
                            }
                        } catch {
                            isFull = Self.isNoSpace(error)
                            throw error
                        }
                    }
                }
            }
        }
        return hasMoved
    }

    private static func listedCount(_ packs: ArraySlice<PackUse>) -> Int {
        var bytes: Int64 = 0
        let count = packs.prefix(packsAtOnce).prefix { pack in
            bytes += pack.liveBytes
            return bytes <= listedBytes
        }.count
        return max(1, count)
    }

    private static func isNoSpace(_ error: any Error) -> Bool {
        error as? ChunkStoreError == .noSpace || error as? CatalogError == .noSpace
    }

    private static func groups(_ chunks: [PackedChunk]) -> [[PackedChunk]] {
        var groups: [[PackedChunk]] = []
        var bytes: Int64 = 0
        for chunk in chunks {
            let length = Int64(chunk.record.recordLength)
            if groups.isEmpty || bytes + length > groupBytes {
                groups.append([])
                bytes = 0
            }
            groups[groups.count - 1].append(chunk)
            bytes += length
        }
        return groups
    }

    /// - Returns: whether there was anything whole.
    private func move(_ group: [PackedChunk]) async throws -> Bool {
        try Task.checkCancellation()
        let copies = try await read(group)
        guard !copies.isEmpty else { return false }
        let stored = try await chunks.store(copies.map(\.copy))
        let moves = zip(copies, stored).map { (original, location) -> (chunk: PackedChunk, to: ChunkRecord) in
            var record = original.chunk.record
            (record.pack, record.offset, record.recordLength) = (location.pack, location.offset, location.length)
            return (original.chunk, record)
        }
        try await catalog.moveChunks(moves)
        return true
    }

    /// Those that are whole. A damaged one, or one that is not there, stays where it is: it may be read better another time.
    private func read(_ group: [PackedChunk]) async throws -> [(chunk: PackedChunk, copy: StoredChunk)] {
        let (copies, damaged) = try await chunks.read { [chunks] reader throws(ChunkStoreError) in
            var copies: [(chunk: PackedChunk, copy: StoredChunk)] = []
            var damaged: [PackedChunk] = []
            for chunk in group {
                if let data = Self.data(of: chunk.record, chunks, reader) {
                    copies.append((chunk, chunk.copy(of: data)))
                } else {
                    damaged.append(chunk)
                }
            }
            return (copies, damaged)
        }
        for chunk in damaged {
            logger.error("chunk \(chunk.record.chunk) is damaged on the server's disk (pack \(chunk.record.pack))")
        }
        return copies
    }

    private static func data(
        of record: ChunkRecord,
        _ chunks: any ChunkStore,
        _ reader: any ChunkReader
    ) -> [UInt8]? {
        do {
            var data = [UInt8](repeating: 0, count: try chunks.dataCount(at: record.location))
            let isDamaged = try data.withUnsafeMutableBytes { room in
                let request = ChunkRequest(chunk: record.chunk, location: record.location)
                return try reader.read(request, into: room, examining: true)
            }
            return isDamaged ? nil : data
        } catch {
            return nil
        }
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
