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
            let request = CloudRequest.post(CloudRoute.path(container, .have), WireHaveRequest(chunks: part).body)
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
        receive: @escaping @Sendable (ChunkFrame) async throws -> Void
    ) async throws(CloudError) {
        for part in slices(chunks, of: CloudLimits.idsPerRequest) {
            try await fetchPart(container, chunks: part, receive: receive)
        }
    }

    private func fetchPart(
        _ container: ContainerID,
        chunks: [ChunkID],
        receive: @Sendable (ChunkFrame) async throws -> Void
    ) async throws(CloudError) {
        let request = CloudRequest.post(CloudRoute.path(container, .fetch), WireFetchRequest(chunks: chunks).body)
        let response = try await transport.open(request, token: credentials.token)
        var decoder = LengthPrefixedDecoder(limit: LengthPrefix.longestFrame)
        var awaited = chunks[...]
        do {
            for try await buffer in response.body {
                buffer.withUnsafeReadableBytes { decoder.append($0) }
                while let message = try decoder.next() {
                    let frame = try ChunkFrame(wire: try WireChunkFrame(body: message))
                    guard frame.chunk == awaited.popFirst() else { throw CloudError.malformed("a chunk that was not asked for") }
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
        for part in slices(contents, of: CloudLimits.idsPerRequest) {
            let request = CloudRequest.post(
                CloudRoute.path(container, .manifests),
                WireManifestRequest(contents: part).body
            )
            let answer = try await send(request, WireManifestResponse.self)
            try decoding { () throws(WireError) in
                for known in answer.answers {
                    if let (content, manifest) = try known.decoded() { result[content] = manifest }
                }
            }
        }
        return result
    }
}
