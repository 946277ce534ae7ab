internal import Glibc
internal import Synchronization

/// Appends records to a pack of its own: what was there before is never added to. A catalogue that is restored from a later day than the
/// packs leads to where they end, and it must not find other chunks there.
///
/// Used by one thread at a time: the store's writing queue.
///
/// `@unchecked Sendable`: `current` is only touched by blocks on that serial queue.
final class PackWriter: @unchecked Sendable {
    private struct Current {
        let number: UInt64
        let file: OpenFile
        /// Everything before was written and synced.
        var end: UInt64
    }

    /// Data of so many bytes is not copied before it is written.
    private static let largeData = 16 * 1024
    private static let bufferBytes = 256 * 1024

    private let folder: PackFolder
    private let packLimit: UInt64
    private var current: Current?

    init(folder: PackFolder, packLimit: UInt64) throws(ChunkStoreError) {
        self.folder = folder
        self.packLimit = packLimit
        if let newest = try folder.scan() { try repair(newest) }
    }

    /// Cuts off a torn tail.
    private func repair(_ number: UInt64) throws(ChunkStoreError) {
        let file = try folder.open(number, forWriting: true)
        switch PackHeader.examine(try file.read(PackHeader.count, at: 0)) {
        case .newer: throw .tooNew(file.path)
        // A crash while it was made, or a bad disk: it is left as it is.
        case .damaged: return
        case .valid, .former: break
        }
        let end = try PackScan.end(of: file)
        guard try file.size() > end else { return }
        try file.truncate(end)
        try file.synchronize()
        folder.note(end: end, of: number)
    }

    /// Writes all the chunks into one pack and syncs it.
    func append(_ chunks: [StoredChunk]) throws(ChunkStoreError) -> [ChunkLocation] {
        var pack = try packWithRoom()
        var end = pack.end
        let locations = chunks.map { chunk in
            defer { end += UInt64(PackRecord.length(of: chunk)) }
            return ChunkLocation(pack: pack.number, offset: end, length: PackRecord.length(of: chunk))
        }
        do {
            try write(chunks, to: pack)
            try pack.file.synchronize()
        } catch {
            takeBack(pack, after: error)
            throw error
        }
        pack.end = end
        current = pack
        folder.note(end: end, of: pack.number)
        return locations
    }

    /// Small records go out together, the data of large ones from where it is.
    private func write(_ chunks: [StoredChunk], to pack: Current) throws(ChunkStoreError) {
        var buffer = [UInt8]()
        var offset = pack.end
        for chunk in chunks {
            PackRecord.encodeHeader(of: chunk, into: &buffer)
            let isLarge = chunk.data.count >= Self.largeData
            if !isLarge { buffer.append(contentsOf: chunk.data) }
            if isLarge || buffer.count >= Self.bufferBytes {
                let data = isLarge ? chunk.data : []
                try pack.file.write(buffer, data, at: offset)
                offset += UInt64(buffer.count + data.count)
                buffer.removeAll(keepingCapacity: true)
            }
        }
        if !buffer.isEmpty { try pack.file.write(buffer, [], at: offset) }
    }

    /// Closes the newest pack.
    func finish() { current = nil }

    private func packWithRoom() throws(ChunkStoreError) -> Current {
        if let current, current.end < packLimit { return current }
        let (number, file) = try folder.makePack()
        let pack = Current(number: number, file: file, end: UInt64(PackHeader.count))
        current = pack
        return pack
    }

    /// Nothing half-written stays. After a failed sync nobody knows what is on the disk: that pack is not added to any more.
    private func takeBack(_ pack: Current, after error: ChunkStoreError) {
        do {
            try pack.file.truncate(pack.end)
        } catch {
            current = nil
            return
        }
        if case .noSpace = error { return }
        current = nil
    }
}
