package import CatalogModel
internal import Reconciliation
package import UbiquityModel

/// What devices ask of a container: each looks first whether the device may.
extension CatalogState {
    package mutating func commit(_ request: CommitRequest, _ scope: Scope) throws(CatalogError) -> CommitAnswer {
        let (access, number) = try authorizeWriting(scope)
        let added = add(request.chunks, container: number, account: access.account)
        let context = CommitContext(
            device: access.deviceName,
            now: request.now,
            deviceClock: request.deviceClock,
            isQuotaExceeded: request.isQuotaExceeded || added == nil,
            discardsFormer: request.discardsFormer
        )
        // The first commit that knows a session's nonce tells that it has arrived. Another container's connection may not have heard of it.
        if request.nonce.isEmpty || request.nonce == devices[scope.token]?.nonce {
            devices[scope.token]?.formerNonce = nil
        }
        let former = self[container: number].head
        let outcomes = self[container: number].commit(request.entries, added: added ?? [], context)
        let head = self[container: number].head
        return CommitAnswer(
            outcomes: outcomes,
            position: head,
            container: number,
            isChanged: head.counter != former.counter
        )
    }

    package func head(_ scope: Scope) throws(CatalogError) -> LogPosition {
        self[container: try authorize(scope).container].head
    }

    package func changes(_ scope: Scope, since: LogPosition?, limit: Int) throws(CatalogError) -> CatalogPage {
        let number = try authorize(scope).container
        var page = self[container: number].changes(since: since ?? .beginning, limit: limit, container: number)
        page.packages = self[container: number].info.packages
        return page
    }

    package func children(
        of folders: [ItemID],
        after: Name?,
        limit: Int,
        _ scope: Scope
    ) throws(CatalogError) -> ChildrenPage {
        try used(scope).children(of: folders, after: after, limit: limit)
    }

    package func versions(_ item: ItemID, _ scope: Scope) throws(CatalogError) -> [ItemVersion] {
        guard let versions = try used(scope).versions(of: item) else { throw .noSuchItem(item) }
        return versions
    }

    /// What no device can ask, and a simulation does often: the content of a revision, without a look at every item.
    package func content(of revision: RevisionID, _ scope: Scope) throws(CatalogError) -> ContentID? {
        try used(scope).content(of: revision)
    }

    package func deleted(
        _ scope: Scope,
        since: Timestamp,
        after: DeletedPosition?,
        limit: Int
    ) throws(CatalogError) -> DeletedPage {
        try used(scope).deleted(since: since, after: after, limit: limit)
    }

    package func manifests(
        _ contents: [ContentID],
        limit: Int,
        _ scope: Scope
    ) throws(CatalogError) -> [Manifest?] {
        let container = try used(scope)
        let manifests = contents.map { container.manifest(of: $0) }
        let bytes = manifests.reduce(Int64(0)) { $0 + Int64($1?.entries.count ?? 0) * 36 }
        guard bytes <= limit else { throw .tooMuch(bytes: bytes, limit: limit) }
        return manifests
    }

    package func wholeness(
        _ revisions: [(item: ItemID, revision: RevisionID)],
        _ scope: Scope
    ) throws(CatalogError) -> [Wholeness] {
        let container = try used(scope)
        let contents = Set(revisions.compactMap { container.content(of: $0.revision, $0.item) })
        let bytes = contents.reduce(Int64(0)) { $0 + Int64(container.manifest(of: $1)?.entries.count ?? 0) * 36 }
        guard bytes <= Wholeness.manifestBytes || contents.count == 1 else {
            throw .tooMuch(bytes: bytes, limit: Int(Wholeness.manifestBytes))
        }
        return revisions.map { container.wholeness($0.item, $0.revision) }
    }

    /// The container as any device may read it that may use it.
    func used(_ scope: Scope) throws(CatalogError) -> ContainerState {
        self[container: try authorize(scope).container]
    }
}
