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
        whenReady: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void = { $0() },
        receive: @escaping @Sendable (ChunkFrame) throws -> Void
    ) async throws(CloudError) {
        for part in slices(chunks, of: CloudLimits.idsPerRequest) {
            let question = WireFetchRequest(chunks: part, examine: examine)
            let request = try CloudRequest.post(CloudRoute.path(container, .fetch), question)
            let server = transport.endpoint.name
            try await transport.stream(request, token: credentials.token) {
                FrameStream(chunks: part, server: server, whenReady: whenReady, receive: receive)
            }
        }
    }

    package func manifests(
        _ container: ContainerID,
        contents: [ContentID],
        base: KnownManifest? = nil
    ) async throws(CloudError) -> [ContentID: Manifest] {
        var result = [ContentID: Manifest]()
        var asked = Set<ContentID>()
        for part in slices(contents.filter { asked.insert($0).inserted }, of: CloudLimits.idsPerRequest) {
            result.merge(try await manifestsPart(container, contents: part, base)) { first, _ in first }
        }
        return result
    }

    /// Halves the question until the manifests fit into one answer.
    private func manifestsPart(
        _ container: ContainerID,
        contents: [ContentID],
        _ base: KnownManifest?
    ) async throws(CloudError) -> [ContentID: Manifest] {
        let answer: WireManifestResponse
        do throws(CloudError) {
            let request = WireManifestRequest(contents: contents, base: base?.content)
            answer = try await send(
                try .post(CloudRoute.path(container, .manifests), request),
                WireManifestResponse.self
            )
        } catch {
            guard case .rejected(FailureCode.tooLarge.rawValue, _) = error, contents.count > 1 else { throw error }
            let half = contents.count / 2
            let first = try await manifestsPart(container, contents: Array(contents[..<half]), base)
            let second = try await manifestsPart(container, contents: Array(contents[half...]), base)
            return first.merging(second) { first, _ in first }
        }
        return try decoding { () throws(WireError) in
            var result = [ContentID: Manifest]()
            for known in answer.answers {
                if let (content, manifest) = try known.decoded(base: base?.manifest) { result[content] = manifest }
            }
            return result
        }
    }
}
