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
        let entries = try await complete(asked.entries, scope)
        let intake = try await take(asked.chunks.map { ChunkFrame($0) }, scope)
        let answer = try await catalog.commit(
            CommitRequest(
                chunks: intake.records,
                entries: entries.map { entry($0, key: intake.key) },
                deviceClock: asked.deviceClock,
                discardsFormer: asked.discardsFormer,
                nonce: asked.nonce,
                now: now(),
                isQuotaExceeded: intake.isQuotaExceeded
            ),
            scope
        )
        if answer.isChanged { hub.announce(container: answer.container) }
        return .encoded(try CommitReply.body(answer.outcomes, position: answer.position))
    }

    /// The manifests that came as differences, made whole. Together they are never longer than those of a commit that has them whole.
    private func complete(_ entries: [CommitBody.Entry], _ scope: Scope) async throws -> [CompleteEntry] {
        let bases = try await bases(of: entries, scope)
        var limit = ManifestDifference.longest
        return entries.map { entry in
            switch entry {
            case .operation(let operation): return .operation(operation)
            case .refused(let item, let reason): return .refused(item: item, reason: reason.description)
            case .based(let based):
                do throws(WireError) {
                    let allowed = limit
                    // Also what turns out to be nothing has to be made whole first.
                    if based.count <= limit { limit -= based.count }
                    let operation = try based.operation(base: bases[based.base] ?? Manifest(), limit: allowed)
                    return .operation(operation)
                } catch {
                    return .refused(item: based.item, reason: error.description)
                }
            }
        }
    }

    private func bases(of entries: [CommitBody.Entry], _ scope: Scope) async throws -> [ContentID: Manifest] {
        var named = Set<ContentID>()
        for case .based(let based) in entries { named.insert(based.base) }
        guard !named.isEmpty else { return [:] }
        let contents = Array(named)
        let manifests = try await catalog.manifests(contents, limit: CloudLimits.manifestBytes, scope)
        var bases = [ContentID: Manifest]()
        for (content, manifest) in zip(contents, manifests) {
            guard let manifest else { throw RequestFailure(.unknownBase, "the base of a manifest is not known here") }
            bases[content] = manifest
        }
        return bases
    }

    /// An operation, checked again here: a name with a slash or a content that is not what its name says goes no further.
    private func entry(_ entry: CompleteEntry, key: ContainerKey) -> CommitRequest.Entry {
        let operation: ItemOperation
        switch entry {
        case .refused(let item, let reason): return .refused(item: item, reason: reason)
        case .operation(let sent): operation = sent
        }
        switch operation.action {
        case .create(_, .file(let file), _, let manifest, _), .edit(_, .file(let file), _, let manifest, _):
            guard file.content == contentID(of: manifest, key: key) else {
                return .refused(item: operation.item, reason: "the content's id does not match its chunks")
            }
        case .create, .edit, .announce, .move, .setAttributes, .delete, .revive, .resolve, .restore, .undelete,
            .discard:
            break
        }
        return .operation(operation)
    }
}

/// What a commit asks for, with its manifest.
private enum CompleteEntry {
    case operation(ItemOperation)
    case refused(item: ItemID?, reason: String)
}
