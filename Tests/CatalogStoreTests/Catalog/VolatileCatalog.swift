import CatalogModel
import MemoryCatalog
import Reconciliation
import Synchronization
import UbiquityModel

/// A catalogue in memory behind the protocol of all catalogues: gone with its owner.
final class VolatileCatalog: Catalog {
    /// Guards all of it: a method is one transaction. A leaf: nothing is called under it.
    private let state = Mutex(CatalogState())

    private func with<Value: Sendable>(
        _ body: (inout CatalogState) throws(CatalogError) -> Value
    ) throws(CatalogError) -> Value {
        try state.withLock { state throws(CatalogError) in try body(&state) }
    }

    /// The server as it is now; assigned, it is restored from a backup.
    var snapshot: CatalogState {
        get { state.withLock { $0 } }
        set { state.withLock { $0 = newValue } }
    }

    // MARK: Accounts and invitations

    func accounts() async throws(CatalogError) -> [AccountInfo] { snapshot.accountInfos() }

    func addAccount(_ name: String, quota: Int64?, now: Timestamp) async throws(CatalogError) {
        try with { state throws(CatalogError) in try state.addAccount(name, quota: quota) }
    }

    func removeAccount(_ name: String, now: Timestamp) async throws(CatalogError) {
        try with { state throws(CatalogError) in try state.removeAccount(name) }
    }

    func addInvitation(_ invitation: Invitation, account: String) async throws(CatalogError) {
        try with { state throws(CatalogError) in try state.addInvitation(invitation, account: account) }
    }

    func addInvitation(_ invitation: Invitation, by token: TokenHash) async throws(CatalogError) {
        try with { state throws(CatalogError) in try state.addInvitation(invitation, by: token) }
    }

    // MARK: Devices

    func join(_ secret: SecretHash, as device: NewDevice, now: Timestamp) async throws(CatalogError) -> Access {
        try with { state throws(CatalogError) in try state.join(secret, as: device, now: now) }
    }

    func access(_ token: TokenHash) async throws(CatalogError) -> Access { try snapshot.access(token) }

    func openSession(
        _ token: TokenHash,
        nonce: [UInt8],
        fresh: FreshCredentials,
        now: Timestamp
    ) async throws(CatalogError) -> CatalogSession {
        try with { state throws(CatalogError) in
            try state.openSession(token, nonce: nonce, fresh: fresh, now: now)
        }
    }

    func devices(for token: TokenHash) async throws(CatalogError) -> [DeviceRecord] {
        try snapshot.devices(for: token)
    }

    func revoke(_ name: String, by token: TokenHash, now: Timestamp) async throws(CatalogError) -> DeviceID {
        try with { state throws(CatalogError) in try state.revoke(name, by: token) }
    }

    func revokeSelf(_ token: TokenHash, now: Timestamp) async throws(CatalogError) -> Access {
        try with { state throws(CatalogError) in try state.revokeSelf(token) }
    }

    // MARK: Containers

    func containers(for token: TokenHash) async throws(CatalogError) -> [CatalogContainer] {
        try snapshot.containers(for: token)
    }

    func createContainer(
        _ container: ContainerInfo,
        by token: TokenHash,
        now: Timestamp
    ) async throws(CatalogError) -> CatalogContainer {
        try with { state throws(CatalogError) in try state.createContainer(container, by: token) }
    }

    func removeContainer(_ scope: Scope, now: Timestamp) async throws(CatalogError) {
        try with { state throws(CatalogError) in try state.removeContainer(scope) }
    }

    func declarePackages(
        _ change: PackageDeclaration,
        _ scope: Scope
    ) async throws(CatalogError) -> CatalogContainer {
        try with { state throws(CatalogError) in try state.declarePackages(change, scope) }
    }

    // MARK: Items

    func changes(_ scope: Scope, since: LogPosition?, limit: Int) async throws(CatalogError) -> CatalogPage {
        try snapshot.changes(scope, since: since, limit: limit)
    }

    func children(
        of folders: [ItemID],
        after: Name?,
        limit: Int,
        _ scope: Scope
    ) async throws(CatalogError) -> ChildrenPage {
        try snapshot.children(of: folders, after: after, limit: limit, scope)
    }

    func commit(_ request: CommitRequest, _ scope: Scope) async throws(CatalogError) -> CommitAnswer {
        try with { state throws(CatalogError) in try state.commit(request, scope) }
    }

    func versions(_ item: ItemID, _ scope: Scope) async throws(CatalogError) -> [ItemVersion] {
        try snapshot.versions(item, scope)
    }

    func deleted(
        _ scope: Scope,
        since: Timestamp,
        after: DeletedPosition?,
        limit: Int
    ) async throws(CatalogError) -> DeletedPage {
        try snapshot.deleted(scope, since: since, after: after, limit: limit)
    }

    func manifests(_ contents: [ContentID], limit: Int, _ scope: Scope) async throws(CatalogError) -> [Manifest?] {
        try snapshot.manifests(contents, limit: limit, scope)
    }

    func wholeness(
        _ revisions: [(item: ItemID, revision: RevisionID)],
        _ scope: Scope
    ) async throws(CatalogError) -> [Wholeness] {
        try snapshot.wholeness(revisions, scope)
    }

    // MARK: Chunks

    func intake(_ chunks: [ChunkSize], _ scope: Scope) async throws(CatalogError) -> Intake {
        try snapshot.intake(chunks, scope)
    }

    func addChunks(
        _ chunks: [ChunkRecord],
        renewed: [ChunkID],
        _ scope: Scope,
        now: Timestamp
    ) async throws(CatalogError) {
        try with { state throws(CatalogError) in try state.addChunks(chunks, renewed: renewed, scope, now: now) }
    }

    func missing(_ chunks: [ChunkID], _ scope: Scope, now: Timestamp) async throws(CatalogError) -> [Int] {
        try snapshot.missing(chunks, scope, now: now)
    }

    func chunks(_ chunks: [ChunkID], _ scope: Scope) async throws(CatalogError) -> [ChunkRecord?] {
        try snapshot.chunks(chunks, scope)
    }

    // MARK: What is kept no longer

    func discardVersions(
        _ rules: RetentionRules,
        after: ItemPosition?,
        now: Timestamp
    ) async throws(CatalogError) -> HousekeepingPage<ItemPosition> {
        state.withLock { $0.discardVersions(rules, after: after, now: now) }
    }

    func discardDeleted(
        in time: Range<Timestamp>,
        after: TombstonePosition?,
        now: Timestamp
    ) async throws(CatalogError) -> HousekeepingPage<TombstonePosition> {
        state.withLock { $0.discardDeleted(in: time, after: after, now: now) }
    }

    func collectChunks(
        after: ChunkPosition?,
        now: Timestamp
    ) async throws(CatalogError) -> HousekeepingPage<ChunkPosition> {
        state.withLock { $0.collectChunks(after: after, now: now) }
    }

    // MARK: Settings

    func setting(_ name: String) async throws(CatalogError) -> String? { snapshot.setting(name) }

    func set(_ name: String, to value: String) async throws(CatalogError) {
        state.withLock { $0.set(name, to: value) }
    }
}
