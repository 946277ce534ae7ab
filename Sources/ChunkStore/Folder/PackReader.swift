internal import Glibc

/// Reads records, each straight to where its data is wanted.
struct PackReader: ChunkReader {
    let folder: PackFolder
    let damaged: DamagedRecords

    func read(
        _ chunk: ChunkRequest,
        into room: UnsafeMutableRawBufferPointer,
        examining: Bool
    ) throws(ChunkStoreError) -> Bool {
        let wanted = PackRecord.headerBytes + room.count
        // A catalogue that is damaged names any place.
        guard chunk.location.offset <= UInt64(Int64.max) - UInt64(wanted) else {
            throw .missing(pack: chunk.location.pack)
        }
        let file = try folder.reading(chunk.location.pack)
        return try withUnsafeTemporaryAllocation(byteCount: PackRecord.headerBytes, alignment: 8) {
            header throws(ChunkStoreError) in
            let count: Int
            do throws(ChunkStoreError) { count = try file.read(into: header, room, at: chunk.location.offset) } catch {
                guard case .failed(_, errno: EIO) = error else { throw error }
                // What the room had before may be somebody else's.
                room.initializeMemory(as: UInt8.self, repeating: 0)
                damaged.note(chunk, true)
                return true
            }
            guard count == wanted else { throw .missing(pack: chunk.location.pack) }
            let header = UnsafeRawBufferPointer(header)
            if examining {
                let isDamaged = !PackRecord.isValid(header, data: UnsafeRawBufferPointer(room))
                damaged.note(chunk, isDamaged)
                if isDamaged { return true }
            }
            // Whole, it is another chunk's: that one is here.
            return !PackRecord.names(header, chunk.chunk)
        }
    }
}
