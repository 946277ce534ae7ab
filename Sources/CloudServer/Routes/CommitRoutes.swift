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
        let asked = try await message(WireCommitRequest.self, of: request, upTo: CloudLimits.messageBytes)
        try check(format: asked.format)
        try check(count: asked.operations.count, of: "operations", limit: CloudLimits.operationsPerCommit)
        let frames = try asked.chunks.map { try ChunkFrame(received: $0) }
        let intake = try await take(frames, scope)
        let answer = try await catalog.commit(
            CommitRequest(
                chunks: intake.records,
                entries: asked.operations.map { entry($0, key: intake.key) },
                deviceClock: Timestamp(nanoseconds: asked.deviceClock),
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
    private func entry(_ wire: WireOperation, key: ContainerKey) -> CommitRequest.Entry {
        let operation: ItemOperation
        do throws(WireError) { operation = try ItemOperation(wire: wire) } catch {
            return .refused(item: ItemID(bytes: wire.item), reason: error.description)
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
