internal import CatalogModel
internal import ChunkStore
internal import Chunking
internal import CloudProtocol
internal import Hummingbird
internal import HummingbirdCore
internal import Logging
internal import NIOCore
internal import Synchronization
internal import UbiquityModel

/// Chunks in both directions. Bodies are streamed: neither direction ever holds more than a few of them.
extension CloudService {
    /// So many bytes of an upload are verified and stored at once.
    private static let uploadGroupBytes = 4 * 1024 * 1024
    private static let frameBytes = 256
    /// So many bytes of packs, at most, are read at once for a fetch: what was read is still in the processor's cache when it goes out.
    private static let fetchGroupBytes = 512 * 1024

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
        let missing = try await catalog.missing(ids, scope, now: now())
        await renew(ids, without: missing, scope)
        var answer = WireHaveResponse()
        answer.missing = missing.map { UInt32($0) }
        return try .message(answer)
    }

    /// What a device is told is here it does not send: an upload that takes longer than chunks are offered would never end. Who may only
    /// read sends nothing, and a server whose disk is full has said what is here all the same.
    private func renew(_ asked: [ChunkID], without missing: [Int], _ scope: Scope) async {
        let absent = Set(missing)
        // They are here: their lengths, which the device does not say, do not count.
        let here = asked.indices.filter { !absent.contains($0) }.map { ChunkSize(chunk: asked[$0], length: 0) }
        guard !here.isEmpty else { return }
        do throws(CatalogError) {
            let waning = try await catalog.intake(here, scope).waning
            guard !waning.isEmpty else { return }
            try await catalog.addChunks([], renewed: Array(waning), scope, now: now())
        } catch {
            logger.debug("chunks that are here were not renewed: \(error)")
        }
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
        if !taken.records.isEmpty || !taken.waning.isEmpty {
            try await catalog.addChunks(taken.records, renewed: taken.waning, scope, now: now())
        }
        return frames.count
    }

    // MARK: Fetch

    private func fetch(_ request: Request, _ context: CloudRequestContext) async throws -> Response {
        let scope = try scope(of: request, context)
        let asked = try await message(WireFetchRequest.self, of: request, upTo: CloudLimits.listBytes)
        try check(count: asked.chunks.count, of: "chunks")
        let ids = try ChunkID.list(wire: asked.chunks, "a chunk's id")
        let records = try zip(ids, try await catalog.chunks(ids, scope)).map { id, record in
            guard let record, chunks.hasPack(record.pack, upTo: record.end) else {
                throw RequestFailure(.notFound, "chunk \(id) is not in the cloud")
            }
            return record
        }
        let frames = try records.map { record in
            let location = ChunkLocation(pack: record.pack, offset: record.offset, length: record.recordLength)
            let count = try chunks.dataCount(at: location)
            let head = WireChunkFrame.head(
                chunk: record.chunk,
                length: record.length,
                isCompressed: record.isCompressed,
                dataCount: count
            )
            return StoredFrame(
                request: ChunkRequest(chunk: record.chunk, location: location),
                head: head,
                dataCount: count
            )
        }
        let groups = Self.groups(frames)
        let examine = asked.examine
        let catalog = catalog
        return Response(
            status: .ok,
            headers: [.contentType: CloudHeader.protobuf],
            // With its length before it, the body goes out in pieces as they are: without lines of their own between them.
            body: ResponseBody(contentLength: frames.reduce(0) { $0 + $1.bytes }) { writer in
                var current = try await read(groups.first ?? [], examine)
                for index in groups.indices {
                    // Whose device was removed meanwhile gets no more.
                    if index > 0 { _ = try await catalog.access(scope.token) }
                    // The next group is read while this one goes out.
                    async let next = read(index + 1 < groups.count ? groups[index + 1] : [], examine)
                    try await writer.write(current)
                    sentBuffers.put(current)
                    current = try await next
                }
                try await writer.finish(nil)
            }
        )
    }

    private static func groups(_ frames: [StoredFrame]) -> [[StoredFrame]] {
        var groups = [[StoredFrame]]()
        var bytes = 0
        for frame in frames {
            if groups.isEmpty || bytes + frame.bytes > fetchGroupBytes {
                groups.append([])
                bytes = 0
            }
            groups[groups.count - 1].append(frame)
            bytes += frame.bytes
        }
        return groups
    }

    /// The frames, one after the other.
    private func read(_ frames: [StoredFrame], _ examine: Bool) async throws -> ByteBuffer {
        guard !frames.isEmpty else { return ByteBuffer() }
        return try await chunks.read { [logger, sentBuffers] reader throws(ChunkStoreError) in
            var buffer = sentBuffers.take()
            buffer.reserveCapacity(frames.reduce(0) { $0 + $1.bytes })
            for frame in frames {
                buffer.writeBytes(frame.head)
                var isDamaged = false
                try buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: frame.dataCount) {
                    room throws(ChunkStoreError) in
                    let room = UnsafeMutableRawBufferPointer(rebasing: room[..<frame.dataCount])
                    isDamaged = try reader.read(frame.request, into: room, examining: examine)
                    return frame.dataCount
                }
                guard isDamaged else { continue }
                // From now on it counts as lost: whoever has it is asked for it.
                // The device has noticed it, and says for which file: it never serves what does not match its name.
                let (chunk, location) = (frame.request.chunk, frame.request.location)
                logger.error(
                    "chunk \(chunk) is damaged on the server's disk (pack \(location.pack), offset \(location.offset))"
                )
            }
            return buffer
        }
    }
}

/// A chunk in a pack, as it is sent.
private struct StoredFrame: Sendable {
    var request: ChunkRequest
    /// What goes before the data.
    var head: [UInt8]
    var dataCount: Int

    var bytes: Int { head.count + dataCount }
}

/// Buffers of answers that are on their way, or have gone out: they make room for what comes next, since new memory costs as much as
/// to fill it.
final class SentBuffers: Sendable {
    /// At least this many are left alone, since they may still be on their way.
    private static let least = 2
    private static let most = 8

    /// A leaf: memory work only.
    private let buffers = Mutex<[ByteBuffer]>([])

    /// An empty one. If it has not gone out yet, NIO gives it memory of its own.
    func take() -> ByteBuffer {
        guard var buffer = buffers.withLock({ $0.count > Self.least ? $0.removeFirst() : nil }) else {
            return ByteBuffer()
        }
        buffer.clear()
        return buffer
    }

    func put(_ buffer: ByteBuffer) {
        buffers.withLock { if $0.count < Self.most { $0.append(buffer) } }
    }
}
