internal import CatalogModel
internal import ChunkStore
internal import CloudProtocol
internal import Hummingbird
internal import HummingbirdCore
internal import Reconciliation
internal import UbiquityModel

/// Questions about items: changes, manifests, wholeness, versions, recently deleted.
extension CloudService {
    private static let deletedPerPage = 1024

    func addItemRoutes(_ router: Router<CloudRequestContext>) {
        router.get(.init(CloudRoute.template(.changes))) { request, context in try await changes(request, context) }
        router.post(.init(CloudRoute.template(.children))) { request, context in try await children(request, context) }
        router.post(.init(CloudRoute.template(.manifests))) { request, context in try await manifests(request, context)
        }
        router.post(.init(CloudRoute.template(.confirm))) { request, context in try await confirm(request, context) }
        router.post(.init(CloudRoute.template(.versions))) { request, context in try await versions(request, context) }
        router.get(.init(CloudRoute.template(.deleted))) { request, context in try await deleted(request, context) }
    }

    private func changes(_ request: Request, _ context: CloudRequestContext) async throws -> Response {
        let scope = try scope(of: request, context)
        let wanted = request.uri.queryParameters[Substring(CloudRoute.Query.limit)].flatMap { Int($0) }
        let limit = min(max(wanted ?? 1024, 1), CloudLimits.itemsPerPage)
        let page = try await catalog.changes(scope, since: try position(of: request), limit: limit)
        return .encoded(try page.body())
    }

    private func children(_ request: Request, _ context: CloudRequestContext) async throws -> Response {
        let scope = try scope(of: request, context)
        let asked = try await message(WireChildrenRequest.self, of: request, upTo: CloudLimits.listBytes)
        try check(count: asked.folders.count, of: "folders")
        let (folders, after) = try asked.decoded()
        let page = try await catalog.children(of: folders, after: after, limit: CloudLimits.itemsPerPage, scope)
        let rest = WireChildrenResponse(complete: page.completeCount, last: page.last)
        return .encoded(try ItemPage.body(page.entries.lazy.map { ($0.item, $0.manifest) }, rest))
    }

    /// The position that the query names; `nil` if it names none.
    func position(of request: Request) throws -> LogPosition? {
        let query = request.uri.queryParameters
        guard let counter = query[Substring(CloudRoute.Query.counter)] else { return nil }
        guard let number = UInt64(counter),
            let hash = Hexadecimal.decode(String(query[Substring(CloudRoute.Query.hash)] ?? ""))
        else { throw RequestFailure(.badRequest, "the position cannot be read") }
        return try LogPosition(counter: number, wireHash: hash)
    }

    private func manifests(_ request: Request, _ context: CloudRequestContext) async throws -> Response {
        let scope = try scope(of: request, context)
        let asked = try await message(WireManifestRequest.self, of: request, upTo: CloudLimits.listBytes)
        try check(count: asked.contents.count, of: "contents")
        // Each once: a short request must not ask for one long manifest a thousand times.
        let contents = Array(Set(try ContentID.list(wire: asked.contents, "a content's id")))
        // That of the base, if one is named and known, is the last.
        let base = try ContentID.list(wire: asked.base.isEmpty ? [] : [asked.base], "a content's id")
        let manifests = try await catalog.manifests(contents + base, limit: CloudLimits.manifestBytes, scope)
        // For one only: a short request must not have one long base gone through a thousand times.
        let known = base.isEmpty || contents.count > 1 ? nil : manifests.last ?? nil
        var answer = WireManifestResponse()
        answer.answers = zip(contents, manifests).map { content, manifest in
            guard let manifest, let known else { return WireManifestAnswer(content: content, manifest: manifest) }
            return WireManifestAnswer(content: content, manifest: manifest, base: known)
        }
        return try .message(answer)
    }

    private func confirm(_ request: Request, _ context: CloudRequestContext) async throws -> Response {
        let scope = try scope(of: request, context)
        let asked = try await message(WireConfirmRequest.self, of: request, upTo: CloudLimits.listBytes)
        try check(count: asked.items.count, of: "revisions")
        let revisions = try asked.items.map { try $0.decoded() }
        var answer = WireConfirmResponse()
        answer.whole = try await catalog.wholeness(revisions, scope).map { revision in
            revision.isKnown && revision.packs.allSatisfy { chunks.hasPack($0.key, upTo: $0.value) }
        }
        return try .message(answer)
    }

    private func versions(_ request: Request, _ context: CloudRequestContext) async throws -> Response {
        let scope = try scope(of: request, context)
        let asked = try await message(WireVersionsRequest.self, of: request, upTo: CloudLimits.listBytes)
        var answer = WireVersionsResponse()
        answer.versions = try await catalog.versions(try asked.decoded(), scope).map { WireVersion($0) }
        return try .message(answer)
    }

    private func deleted(_ request: Request, _ context: CloudRequestContext) async throws -> Response {
        let scope = try scope(of: request, context)
        let since = now().before(RetentionRules.standard.deleted)
        let page = try await catalog.deleted(
            scope,
            since: since,
            after: try deletedPosition(of: request),
            limit: Self.deletedPerPage
        )
        var answer = WireDeletedList()
        answer.items = page.items.map { WireDeletedItem($0) }
        answer.more = page.hasMore
        return try .message(answer)
    }

    /// The deleted item after which the listing goes on; `nil` from the newest.
    private func deletedPosition(of request: Request) throws -> DeletedPosition? {
        let query = request.uri.queryParameters
        guard let time = query[Substring(CloudRoute.Query.time)] else { return nil }
        guard let nanoseconds = Int64(time), let counter = query[Substring(CloudRoute.Query.counter)],
            let position = UInt64(counter)
        else { throw RequestFailure(.badRequest, "the position cannot be read") }
        return DeletedPosition(deleted: Timestamp(nanoseconds: nanoseconds), position: position)
    }
}

extension CatalogPage {
    /// As the message `Changes`.
    /// - Parameter tellsPackages: also tells what the container declares.
    func body(tellsPackages: Bool = false) throws(WireError) -> [UInt8] {
        var rest = WireChanges()
        rest.position = WirePosition(position)
        rest.more = hasMore
        rest.unknownPosition = isUnknownPosition
        rest.head = WirePosition(head)
        if tellsPackages { rest.packages = WirePackageDeclaration(packages) }
        return try ItemPage.body(entries.lazy.map { ($0.item, $0.manifest) }, rest)
    }
}
