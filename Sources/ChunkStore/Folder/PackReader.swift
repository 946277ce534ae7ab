/// Reads records, each straight to where its data is wanted.
struct PackReader: ChunkReader {
    let folder: PackFolder

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
            guard try file.read(into: header, room, at: chunk.location.offset) == wanted else {
                throw .missing(pack: chunk.location.pack)
            }
            let header = UnsafeRawBufferPointer(header)
            guard PackRecord.names(header, chunk.chunk) else { return true }
            return examining && !PackRecord.isValid(header, data: UnsafeRawBufferPointer(room))
        }
    }
}
