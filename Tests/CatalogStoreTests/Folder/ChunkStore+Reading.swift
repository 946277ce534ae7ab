import ChunkStore

/// A chunk as it was found.
struct ReadChunk: Hashable, Sendable {
    var data: ArraySlice<UInt8>
    var isDamaged: Bool
}

extension FolderChunkStore {
    /// Reads chunks, in the order asked for.
    func read(_ chunks: [ChunkRequest], examining: Bool) async throws(ChunkStoreError) -> [ReadChunk] {
        try await read { [self] reader throws(ChunkStoreError) in
            var result = [ReadChunk]()
            for chunk in chunks {
                // As memory is that had something else before.
                var data = [UInt8](repeating: 0xEE, count: try dataCount(at: chunk.location))
                var failure: ChunkStoreError?
                let isDamaged = data.withUnsafeMutableBytes { room in
                    do throws(ChunkStoreError) {
                        return try reader.read(chunk, into: room, examining: examining)
                    } catch {
                        failure = error
                        return true
                    }
                }
                if let failure { throw failure }
                result.append(ReadChunk(data: data[...], isDamaged: isDamaged))
            }
            return result
        }
    }
}
