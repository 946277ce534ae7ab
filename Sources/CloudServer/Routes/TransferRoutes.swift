internal import CatalogModel
internal import ChunkStore
internal import Chunking
internal import CloudProtocol
internal import Hummingbird
internal import HummingbirdCore
internal import Logging
internal import NIOCore
internal import UbiquityModel

/// Chunks in both directions. Bodies are streamed: neither direction ever holds more than a few of them.
extension CloudService {
    /// So many bytes of an upload are verified and stored at once.
    private static let uploadGroupBytes = 4 * 1024 * 1024
    private static let frameBytes = 256
    /// So many bytes of packs are read at once for a fetch.
    private static let fetchGroupBytes: UInt64 = 1024 * 1024

    func addTransferRoutes(_ router: Router<CloudRequestContext>) {
        router.post(.init(CloudRoute.template(.have))) { request, context in try await have(request, context) }
        router.post(.init(CloudRoute.template(.upload))) { request, context in try await upload(request, context) }
        router.post(.init(CloudRoute.template(.fetch))) { request, context in try await fetch(request, context) }
    }

    private func have(_ request: Request, _ context: CloudRequestContext) async throws -> Response {
        let scope = try scope(of: request, context)
        let asked = try await message(WireHaveRequest.self, of: request, upTo: CloudLimits.listBytes)
        try check(count: asked.chunks.count, of: "chunks")
        let ids = try ChunkID.list(wire: asked.chunks, "a chunk's id")
        var answer = WireHaveResponse()
        answer.missing = try await catalog.missing(ids, scope).map { UInt32($0) }
        return try .message(answer)
    }

    // MARK: Upload

    private func upload(_ request: Request, _ context: CloudRequestContext) async throws -> Response {
        let scope = try scope(of: request, context)
        // A device that may not write is told before it has sent everything.
        _ = try await catalog.intake([], scope)
        var decoder = LengthPrefixedDecoder(limit: LengthPrefix.longestFrame)
        var group = [ChunkFrame]()
        var groupBytes = 0
        var stored = 0
        var answer = WireUploadResponse()
        for try await buffer in request.body {
            buffer.withUnsafeReadableBytes { decoder.append($0) }
            while let message = try decoder.next() {
                let frame = try ChunkFrame(received: message)
                // In memory it takes this much at least, however little it holds.
                groupBytes += message.count + Self.frameBytes
                group.append(frame)
                if groupBytes >= Self.uploadGroupBytes {
                    stored += try await store(group, scope)
                    group.removeAll(keepingCapacity: true)
                    groupBytes = 0
                }
            }
        }
        try decoder.finish()
        answer.stored = UInt32(clamping: stored + (try await store(group, scope)))
        return try .message(answer)
    }

    private func store(_ frames: [ChunkFrame], _ scope: Scope) async throws -> Int {
        guard !frames.isEmpty else { return 0 }
        let taken = try await take(frames, scope)
        guard !taken.isQuotaExceeded else { throw CatalogError.quotaExceeded }
        if !taken.records.isEmpty { try await catalog.addChunks(taken.records, scope) }
        return frames.count
    }

    // MARK: Fetch

    private func fetch(_ request: Request, _ context: CloudRequestContext) async throws -> Response {
        let scope = try scope(of: request, context)
        let asked = try await message(WireFetchRequest.self, of: request, upTo: CloudLimits.listBytes)
        try check(count: asked.chunks.count, of: "chunks")
        let ids = try ChunkID.list(wire: asked.chunks, "a chunk's id")
        let records = try zip(ids, try await catalog.chunks(ids, scope)).map { id, record in
            guard let record, chunks.hasPack(record.pack) else {
                throw RequestFailure(.notFound, "chunk \(id) is not in the cloud")
            }
            return record
        }
        let groups = Self.groups(records)
        let examine = asked.examine
        return Response(
            status: .ok,
            headers: [.contentType: CloudHeader.protobuf],
            body: ResponseBody { writer in
                var current = try await read(groups.first ?? [], examine)
                for index in groups.indices {
                    // The next group is read while this one goes out.
                    async let next = read(index + 1 < groups.count ? groups[index + 1] : [], examine)
                    try await writer.write(current)
                    current = try await next
                }
                try await writer.finish(nil)
            }
        )
    }

    private static func groups(_ records: [ChunkRecord]) -> [[ChunkRecord]] {
        var groups = [[ChunkRecord]]()
        var bytes: UInt64 = 0
        for record in records {
            if groups.isEmpty || bytes >= fetchGroupBytes {
                groups.append([])
                bytes = 0
            }
            groups[groups.count - 1].append(record)
            bytes += UInt64(record.recordLength)
        }
        return groups
    }

    private func read(_ records: [ChunkRecord], _ examine: Bool) async throws -> ByteBuffer {
        let requests = records.map { record in
            let location = ChunkLocation(pack: record.pack, offset: record.offset, length: record.recordLength)
            return ChunkRequest(chunk: record.chunk, location: location)
        }
        let contents = try await chunks.read(requests, examining: examine)
        var buffer = ByteBuffer()
        buffer.reserveCapacity(contents.reduce(0) { $0 + $1.data.count + 64 })
        for (record, content) in zip(records, contents) {
            if content.isDamaged {
                // The device has noticed it, and says for which file: it never serves what does not match its name.
                logger.error(
                    "chunk \(record.chunk) is damaged on the server's disk (pack \(record.pack), offset \(record.offset))"
                )
            }
            let head = WireChunkFrame.head(
                chunk: record.chunk,
                length: record.length,
                isCompressed: record.isCompressed,
                dataCount: content.data.count
            )
            buffer.writeBytes(head)
            buffer.writeBytes(content.data)
        }
        return buffer
    }
}
