internal import CatalogModel
internal import ChunkStore
internal import Chunking
internal import CloudProtocol
internal import UbiquityModel

extension CloudService {
    struct TakenChunks {
        /// Durable in the chunk store, not in the catalogue yet.
        var records: [ChunkRecord] = []
        /// In the cloud already, and not referred to any more.
        var waning: [ChunkID] = []
        var key: ContainerKey
        /// Nothing was stored: it would pass the quota.
        var isQuotaExceeded = false
    }

    /// Verifies the chunks that the cloud does not have yet, and writes them into packs.
    func take(_ frames: [ChunkFrame], _ scope: Scope) async throws -> TakenChunks {
        let sizes = frames.map { ChunkSize(chunk: $0.chunk, length: $0.length) }
        let intake = try await catalog.intake(sizes, scope)
        guard let key = ContainerKey(bytes: intake.container.info.key) else {
            throw CatalogError.failed("the key of a container is damaged")
        }
        var taken = TakenChunks(key: key, isQuotaExceeded: intake.isQuotaExceeded)
        guard !intake.isQuotaExceeded else { return taken }
        taken.waning = Array(intake.waning)
        var awaited = intake.unknown
        var fresh = [ChunkFrame]()
        for frame in frames where awaited.remove(frame.chunk) != nil { fresh.append(frame) }
        // Never stored under a name that it does not have: other devices would get it instead of their own.
        do throws(ChunkError) { try ChunkFrame.verify(fresh, key: key) } catch {
            throw RequestFailure(.badRequest, error.description)
        }
        let locations = try await chunks.store(fresh.map { $0.stored(container: intake.container.number) })
        taken.records = zip(fresh, locations).map { frame, location in
            ChunkRecord(
                chunk: frame.chunk,
                length: frame.length,
                isCompressed: frame.isCompressed,
                pack: location.pack,
                offset: location.offset,
                recordLength: location.length
            )
        }
        return taken
    }
}

extension ChunkFrame {
    init(received body: [UInt8]) throws(WireError) { self.init(try WireChunkFrame.parts(of: body)) }

    init(_ parts: WireChunkFrame.Parts) {
        let (chunk, length, isCompressed, data) = parts
        self.init(chunk: chunk, length: length, isCompressed: isCompressed, data: data)
    }

    fileprivate func stored(container: Int64) -> StoredChunk {
        StoredChunk(container: container, chunk: chunk, length: length, isCompressed: isCompressed, data: data)
    }
}
