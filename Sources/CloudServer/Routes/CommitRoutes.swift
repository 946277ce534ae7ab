internal import CatalogModel
internal import Chunking
internal import CloudProtocol
internal import Hummingbird
internal import HummingbirdCore
internal import Reconciliation
internal import UbiquityModel

extension CloudService {
    func addCommitRoutes(_ router: Router<CloudRequestContext>) {
        router.post(.init(CloudRoute.template(.commit))) { request, context in try await commit(request, context) }
    }

    private func commit(_ request: Request, _ context: CloudRequestContext) async throws -> Response {
        let scope = try scope(of: request, context)
        // Somebody who may not write is told before everything has been read.
        _ = try await catalog.intake([], scope)
        let asked = try CommitBody(body: try await body(of: request, upTo: CloudLimits.messageBytes))
        try check(format: asked.format)
        let intake = try await take(asked.chunks.map { ChunkFrame($0) }, scope)
        let answer = try await catalog.commit(
            CommitRequest(
                chunks: intake.records,
                entries: asked.entries.map { entry($0, key: intake.key) },
                deviceClock: asked.deviceClock,
                now: now(),
                isQuotaExceeded: intake.isQuotaExceeded
            ),
            scope
        )
        if answer.isChanged { hub.announce(container: answer.container) }
        var response = WireCommitResponse()
        response.outcomes = answer.outcomes.map { WireOutcome($0) }
        response.position = answer.position.counter
        return try .message(response)
    }

    /// An operation, checked again here: a name with a slash or a content that is not what its name says goes no further.
    private func entry(_ entry: CommitBody.Entry, key: ContainerKey) -> CommitRequest.Entry {
        let operation: ItemOperation
        switch entry {
        case .refused(let item, let reason): return .refused(item: item, reason: reason.description)
        case .operation(let sent): operation = sent
        }
        switch operation.action {
        case .create(_, .file(let file), _, let manifest, _), .edit(_, .file(let file), _, let manifest, _):
            guard file.content == contentID(of: manifest, key: key) else {
                return .refused(item: operation.item, reason: "the content's id does not match its chunks")
            }
        case .create, .edit, .announce, .move, .setAttributes, .delete, .revive, .resolve, .restore, .undelete: break
        }
        return .operation(operation)
    }
}
