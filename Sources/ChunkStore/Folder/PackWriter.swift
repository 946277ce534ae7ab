internal import Glibc
internal import Synchronization

/// Appends records to the newest pack. Used by one thread at a time: the store's writing queue.
///
/// `@unchecked Sendable`: `current` is only touched by blocks on that serial queue.
final class PackWriter: @unchecked Sendable {
    private struct Current {
        let number: UInt64
        let file: OpenFile
        /// Everything before was written and synced.
        var end: UInt64
    }

    private let folder: PackFolder
    private let packLimit: UInt64
    private var current: Current?

    init(folder: PackFolder, packLimit: UInt64) throws(ChunkStoreError) {
        self.folder = folder
        self.packLimit = packLimit
        guard let newest = try folder.scan() else { return }
        let file = try folder.open(newest, forWriting: true)
        if try repair(file, newest) { current = Current(number: newest, file: file, end: try file.size()) }
    }

    /// Cuts off a torn tail. `false` if the pack cannot be added to.
    private func repair(_ file: OpenFile, _ number: UInt64) throws(ChunkStoreError) -> Bool {
        switch PackHeader.examine(try file.read(PackHeader.count, at: 0)) {
        case .newer: throw .tooNew(file.path)
        case .damaged:
            // A crash while it was made, or a bad disk: it is left as it is, and another one begun.
            return false
        case .valid: break
        }
        let end = try PackScan.end(of: file)
        if try file.size() > end {
            try file.truncate(end)
            try file.synchronize()
        }
        return true
    }

    /// Writes all the chunks into one pack and syncs it.
    func append(_ chunks: [StoredChunk]) throws(ChunkStoreError) -> [ChunkLocation] {
        var pack = try packWithRoom()
        var buffer = [UInt8]()
        buffer.reserveCapacity(chunks.reduce(0) { $0 + PackRecord.headerBytes + $1.data.count })
        var locations = [ChunkLocation]()
        for chunk in chunks {
            locations.append(
                ChunkLocation(
                    pack: pack.number,
                    offset: pack.end + UInt64(buffer.count),
                    length: PackRecord.length(of: chunk)
                )
            )
            PackRecord.encode(chunk, into: &buffer)
        }
        do {
            try pack.file.write(buffer, at: pack.end)
            try pack.file.synchronize()
        } catch {
            takeBack(pack, after: error)
            throw error
        }
        pack.end += UInt64(buffer.count)
        current = pack
        return locations
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
