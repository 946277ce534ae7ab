package import Reconciliation
package import UbiquityModel

/// The server's catalogue: accounts, devices, containers, their items and versions, and where their chunks lie.
///
/// Every method is one transaction, and checks in that transaction that the device may do what it asks. None blocks the caller's
/// thread. What a method has returned from is on the disk. Times are arguments: the catalogue has no clock.
package protocol Catalog: Sendable {
    // Accounts and invitations
    func accounts() async throws(CatalogError) -> [AccountInfo]
    func addAccount(_ name: String, quota: Int64?, now: Timestamp) async throws(CatalogError)
    /// Its devices are revoked and its containers removed; the name is free again.
    func removeAccount(_ name: String, now: Timestamp) async throws(CatalogError)
    func addInvitation(_ invitation: Invitation, account: String) async throws(CatalogError)
    /// The invitation never gives more than the inviting device has, and ends with it.
    func addInvitation(_ invitation: Invitation, by token: TokenHash) async throws(CatalogError)

    // Devices
    /// Uses up the invitation. Of two devices of one name the later gets another one.
    func join(_ secret: SecretHash, as device: NewDevice, now: Timestamp) async throws(CatalogError) -> Access
    func access(_ token: TokenHash) async throws(CatalogError) -> Access
    /// An old nonce makes a new identity, and voids the codes that the former one has made: nobody knows whose they are.
    func openSession(
        _ token: TokenHash,
        nonce: [UInt8],
        fresh: FreshCredentials,
        now: Timestamp
    ) async throws(CatalogError) -> CatalogSession
    func devices(for token: TokenHash) async throws(CatalogError) -> [DeviceRecord]
    /// From the moment at which this returns, no transaction accepts the device's token, and no code that it made lets anybody in.
    func revoke(_ name: String, by token: TokenHash, now: Timestamp) async throws(CatalogError) -> DeviceID
    /// The same for the device whose token it is. Returns who that was.
    func revokeSelf(_ token: TokenHash, now: Timestamp) async throws(CatalogError) -> Access

    // Containers
    func containers(for token: TokenHash) async throws(CatalogError) -> [CatalogContainer]
    func createContainer(
        _ container: ContainerInfo,
        by token: TokenHash,
        now: Timestamp
    ) async throws(CatalogError) -> CatalogContainer
    func removeContainer(_ scope: Scope, now: Timestamp) async throws(CatalogError)
    /// Which folders of the container are packages by their names changes by that, for all devices.
    func declarePackages(_ change: PackageDeclaration, _ scope: Scope) async throws(CatalogError) -> CatalogContainer

    // Items
    /// Items that changed after `since`, in the order of their positions. `nil`: from the beginning.
    func changes(_ scope: Scope, since: LogPosition?, limit: Int) async throws(CatalogError) -> CatalogPage
    /// What lies in some folders: one after the other, by name, as far as a page reaches. A folder that is not there is empty.
    /// Announced items, which claim no name, come first in their folder, in the order of the log, up to the bytes of a page. Each
    /// page tells the first folder to its end, or at least one of its names.
    /// - Parameter after: where to begin in the first one.
    func children(
        of folders: [ItemID],
        after: Name?,
        limit: Int,
        _ scope: Scope
    ) async throws(CatalogError) -> ChildrenPage
    func commit(_ request: CommitRequest, _ scope: Scope) async throws(CatalogError) -> CommitAnswer
    /// Current first, then conflicts, then saved ones that are wanted, newest first: up to `ItemVersion.listed`.
    func versions(_ item: ItemID, _ scope: Scope) async throws(CatalogError) -> [ItemVersion]
    /// Deleted at `since` or later, newest first, beginning after the item that `after` names. Paths are cut at their beginning.
    func deleted(
        _ scope: Scope,
        since: Timestamp,
        after: DeletedPosition?,
        limit: Int
    ) async throws(CatalogError) -> DeletedPage
    /// Throws `tooMuch`, before it reads any, if they are more than `limit` bytes together.
    func manifests(_ contents: [ContentID], limit: Int, _ scope: Scope) async throws(CatalogError) -> [Manifest?]
    /// Throws `tooMuch`, before it looks for any chunk, if several revisions have manifests of more than `Wholeness.manifestBytes` together.
    func wholeness(
        _ revisions: [(item: ItemID, revision: RevisionID)],
        _ scope: Scope
    ) async throws(CatalogError) -> [Wholeness]

    // Chunks
    /// What an upload of these chunks would mean, asked before anything of it is stored.
    func intake(_ chunks: [ChunkSize], _ scope: Scope) async throws(CatalogError) -> Intake
    /// Records chunks that are durable in the chunk store. Those that are known already stay where they are.
    /// - Parameter renewed: Known ones that were sent again: see `Intake.waning`.
    func addChunks(
        _ chunks: [ChunkRecord],
        renewed: [ChunkID],
        _ scope: Scope,
        now: Timestamp
    ) async throws(CatalogError)
    /// Indices of the chunks that are not in the cloud, or will soon not be.
    func missing(_ chunks: [ChunkID], _ scope: Scope, now: Timestamp) async throws(CatalogError) -> [Int]
    /// Where the chunks lie; `nil` for unknown ones.
    func chunks(_ chunks: [ChunkID], _ scope: Scope) async throws(CatalogError) -> [ChunkRecord?]

    // What is kept no longer. Each step is short; who walks goes on where the last one ended.
    /// Discards of some items' saved versions what the rules do not keep.
    func discardVersions(
        _ rules: RetentionRules,
        after: ItemPosition?,
        now: Timestamp
    ) async throws(CatalogError) -> HousekeepingPage<ItemPosition>
    /// Discards all versions of some items that were deleted in that time, in its order.
    func discardDeleted(
        in time: Range<Timestamp>,
        after: TombstonePosition?,
        now: Timestamp
    ) async throws(CatalogError) -> HousekeepingPage<TombstonePosition>
    /// Compares some candidates of a container with all that is referred to in it, and forgets those whose time has come; none if not
    /// all of that can be read.
    func collectChunks(
        after: ChunkPosition?,
        now: Timestamp
    ) async throws(CatalogError) -> HousekeepingPage<ChunkPosition>

    // The server's own settings
    func setting(_ name: String) async throws(CatalogError) -> String?
    func set(_ name: String, to value: String) async throws(CatalogError)
}

/// A catalogue whose chunks lie in packs that can be removed, once nothing in them is referred to.
package protocol PackCatalog: Catalog {
    /// Nothing is recorded as replaced or deleted before that from now on.
    func keepTimes(from time: Timestamp)
    /// Forgets some of what containers held that were removed before that.
    /// - Returns: whether there is more of it.
    func discardContainers(removedBefore until: Timestamp) async throws(CatalogError) -> Bool
    /// Packs that this catalogue has forgotten chunks of, and how much of them it still leads to. May read all chunks' rows.
    /// - Parameter now: from then on those are empty that nothing leads to.
    func thinnedPacks(now: Timestamp) async throws(CatalogError) -> [PackUse]
    /// What lies in a pack. May read all chunks' rows.
    func chunks(in pack: UInt64) async throws(CatalogError) -> [PackedChunk]
    /// They lie elsewhere from now on, those of them at least that are still where they were.
    func moveChunks(_ moves: [(chunk: PackedChunk, to: ChunkRecord)]) async throws(CatalogError)
    /// It may still get chunks: its time as an empty one has not begun.
    func notEmptied(_ pack: UInt64) async throws(CatalogError)
    /// The pack is not there any more.
    func forgetPack(_ pack: UInt64) async throws(CatalogError)
}
