internal import AsyncHTTPClient
package import Chunking
internal import CloudProtocol
internal import NIOCore
internal import NIOHTTP1
package import UbiquityModel

extension CloudClient {
    package func missing(_ container: ContainerID, chunks: [ChunkID]) async throws(CloudError) -> [ChunkID] {
        var result = [ChunkID]()
        for part in slices(chunks, of: CloudLimits.idsPerRequest) {
            let request = try CloudRequest.post(CloudRoute.path(container, .have), WireHaveRequest(chunks: part))
            let answer = try await send(request, WireHaveResponse.self)
            result += try decoding { () throws(WireError) in try answer.missing(of: part) }
        }
        return result
    }

    package func upload(_ container: ContainerID, frames: [ChunkFrame]) async throws(CloudError) {
        guard !frames.isEmpty else { return }
        try await send(
            CloudRequest(
                method: .POST,
                path: CloudRoute.path(container, .upload),
                body: .frames(FrameBody(frames: frames)),
                pool: .uploads
            )
        )
    }

    package func fetch(
        _ container: ContainerID,
        chunks: [ChunkID],
        examine: Bool,
        receive: @escaping @Sendable (ChunkFrame) async throws -> Void
    ) async throws(CloudError) {
        for part in slices(chunks, of: CloudLimits.idsPerRequest) {
            try await fetchPart(container, WireFetchRequest(chunks: part, examine: examine), part, receive)
        }
    }

    private func fetchPart(
        _ container: ContainerID,
        _ question: WireFetchRequest,
        _ chunks: [ChunkID],
        _ receive: @Sendable (ChunkFrame) async throws -> Void
    ) async throws(CloudError) {
        let request = try CloudRequest.post(CloudRoute.path(container, .fetch), question)
        let response = try await transport.open(request, token: credentials.token)
        var decoder = LengthPrefixedDecoder(limit: LengthPrefix.longestFrame)
        var awaited = chunks[...]
        do {
            for try await buffer in response.body {
                buffer.withUnsafeReadableBytes { decoder.append($0) }
                while let message = try decoder.next() {
                    let frame = try ChunkFrame(body: message)
                    guard frame.chunk == awaited.popFirst() else {
                        throw CloudError.malformed("a chunk that was not asked for")
                    }
                    try await delivering { try await receive(frame) }
                }
            }
            try decoder.finish()
        } catch { throw transport.mapped(error, request) }
        guard awaited.isEmpty else {
            throw .notFound("the cloud gave only \(chunks.count - awaited.count) of \(chunks.count) chunks")
        }
    }

    /// The receiver's own failure ends the fetch; what it was the receiver knows.
    private func delivering(_ body: () async throws -> Void) async throws(CloudError) {
        do { try await body() } catch { throw error as? CloudError ?? .cancelled }
    }

    package func manifests(
        _ container: ContainerID,
        contents: [ContentID]
    ) async throws(CloudError) -> [ContentID: Manifest] {
        var result = [ContentID: Manifest]()
        var asked = Set<ContentID>()
        for part in slices(contents.filter { asked.insert($0).inserted }, of: CloudLimits.idsPerRequest) {
            result.merge(try await manifestsPart(container, contents: part)) { first, _ in first }
        }
        return result
    }

    /// Halves the question until the manifests fit into one answer.
    private func manifestsPart(
        _ container: ContainerID,
        contents: [ContentID]
    ) async throws(CloudError) -> [ContentID: Manifest] {
        let answer: WireManifestResponse
        do throws(CloudError) {
            let request = WireManifestRequest(contents: contents)
            answer = try await send(
                try .post(CloudRoute.path(container, .manifests), request),
                WireManifestResponse.self
            )
        } catch {
            guard case .rejected(FailureCode.tooLarge.rawValue, _) = error, contents.count > 1 else { throw error }
            let half = contents.count / 2
            let first = try await manifestsPart(container, contents: Array(contents[..<half]))
            let second = try await manifestsPart(container, contents: Array(contents[half...]))
            return first.merging(second) { first, _ in first }
        }
        return try decoding { () throws(WireError) in
            var result = [ContentID: Manifest]()
            for known in answer.answers {
                if let (content, manifest) = try known.decoded() { result[content] = manifest }
            }
            return result
        }
    }
}
