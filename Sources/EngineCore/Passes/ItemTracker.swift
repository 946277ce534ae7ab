package import UbiquityModel

/// What a device knows of its items between passes, and what a pass does with it: which item is what (`collect`), what is to be done about
/// it (`decide`), and what is remembered afterwards (`settle`). No I/O, clock or randomness of its own: all of that comes through the view
/// of the device, so that the device service and a simulator drive the same code.
///
/// Not thread-safe: it belongs to one engine and is called where that runs.
package final class ItemTracker<View: DeviceView> {
    package typealias Work = EngineCore.Work
    package typealias Verdict = EngineCore.Verdict

    package let view: View

    // MARK: What programs did

    /// What the driver said of places that are not examined yet.
    package var aspects: [LocalPlace: LocalChange.Aspects] = [:]
    /// When the driver last said something of a place.
    package var changedAt: [LocalPlace: UInt64] = [:]
    package var changeCount: UInt64 = 0
    /// The same of inodes that may have several names: one of them may be on its way to the cloud, without a row by which it is found.
    package var linkedChanges: [InodeKey: UInt64] = [:]
    /// When programs last wrote to files that are not sent yet: the time of the edit. (The change time moves with names and modes.)
    package var editedAt: [LocalPlace: Timestamp] = [:]
    /// Places that were found changed after a stop at which everything had been sent: no program has done that here.
    package var unwitnessed = UnwitnessedPlaces()
    /// Names that the driver saw being renamed away: their absence is an act, not an accident.
    package var vanished: Set<LocalPlace> = []
    /// Inodes that have lost a name and have further ones, by removal or to another inode: nothing is logged of what lives on.
    package var unnamed: [LocalPlace: Set<InodeKey>] = [:]
    /// Deleted inodes that no pass has looked at yet.
    package var freshDeletions: Set<InodeKey> = []
    /// Deleted here before the cloud told of a conflict version that they have: an edit that nobody has deleted.
    package var contested: Set<ItemID> = []
    /// Where inodes went that moved since their synced row was written.
    package var moves = MovedInodes()
    /// Places whose open file is sent as it is, because `sync` asked.
    package var snapshots: Set<LocalPlace> = []
    /// Since when items are missing without a word from anybody.
    package var absentSince: [ItemID: Instant] = [:]
    /// Items under the name between that the cloud has under it.
    var restingSince: [ItemID: Resting] = [:]

    /// Files that were seen beside the database whose shared memory they are.
    var sharedMemory: Set<LocalPlace> = []
    /// What is not sent because of a `.ubiquityignore`.
    package var ignoring = IgnoreKnowledge()

    // MARK: What is on its way

    package var newItems = NewItems()
    /// The items that files were sent as which had taken their names, until they are recorded as those.
    package var sentAs: [InodeKey: ItemID] = [:]
    /// What was sent and not answered, as in the state database.
    package var sending: [ItemID: SentRevision] = [:]
    package var sentLinks: [ItemID: SentLink] = [:]
    /// Items of which the server has refused what was sent under a revision that others may know: the next attempt takes a fresh one.
    package var refusedRevisions: Set<ItemID> = []
    /// Items with a large content that is on its way, in either direction.
    package var transferring: Set<ItemID> = []
    package var uploads = TransferSlots()
    package var downloads = TransferSlots()
    /// Items of which was sent that they are no more, since nothing is sent from where they went, until that is written down.
    package var leftItems: Set<ItemID> = []
    /// Items that an import has found here, equal, and of which it has removed the source: what others deleted before this device heard of it
    /// stays.
    package var imported: Set<ItemID> = []
    /// Those of them that are in the cloud again.
    package var broughtBack: Set<ItemID> = []
    /// Links that took another item's name when they were on their way to the cloud as items of their own. Not in the log of deletions, which
    /// may outlive with the power what the disk loses: then only the cloud has the link, and a link is not among what is recently deleted.
    package var replacingLinks: Set<ItemID> = []
    /// Deleted folders that come back because something new lies in them.
    package var revivals: Set<ItemID> = []
    /// Moves that the server refused as a cycle: undone here.
    package var refusedMoves: Set<ItemID> = []
    /// Items that had left their names in a commit that refused them the ones that they were to get, and that the server put back: perhaps under
    /// another name, which nobody has given them. With the log position before that.
    package var putBack: [ItemID: UInt64] = [:]
    /// Folders that the engine has put there in this pass, of which no row tells yet whose they are.
    package var madeFolders: [InodeKey: ItemID] = [:]
    /// Files that are being brought here for the engine's own purposes.
    package var fetching: Set<InodeKey> = []
    /// Items in folders that leave the cloud, of which the contents were not here when that was last looked through.
    var lackingBelow: [ItemID: [ItemID]] = [:]
    /// Files whose content could not be had.
    private var undeliverable: [InodeKey: Undeliverable] = [:]
    /// What the cloud has said of why they have none, also while it is asked for once more.
    private(set) var absences: [InodeKey: ContentAbsence] = [:]
    /// Pages of the feed that have been written down, and other news after which a content may be had that could not be before.
    package private(set) var newsCount: UInt64 = 0
    /// The items whose content these files wait for, also when they go on without it.
    private(set) var owners: [InodeKey: Set<ItemID>] = [:]
    /// Work that waits for a file to become whole.
    package var waitingForContent: [InodeKey: Set<Work>] = [:]
    /// Work that is parked until something becomes of an item, here or in the cloud.
    package var waitingForNews: [ItemID: Set<Work>] = [:]

    package init(view: View) { self.view = view }

    // MARK: Contents that could not be had

    private struct Undeliverable {
        /// Whose content it was: it may come with a change of these.
        var items: Set<ItemID>
        /// When it is asked for again, unless nobody has it.
        var retry: Instant
    }

    private static var retryTime: Duration { .seconds(60) }

    /// The content of a dataless file could not be had, for a reason that lasts.
    /// - Parameters:
    ///   - absence: if the cloud has said that nobody has it; `nil` for every other failure, such as a disk's.
    ///   - newsCount: of when it was asked for. What the feed has told since may be why.
    /// - Returns: the work that waits for it, which need not wait any longer.
    package func noteUndeliverable(_ key: InodeKey, absence: ContentAbsence?, askedAt newsCount: UInt64) -> [Work] {
        guard newsCount == self.newsCount else { return [] }
        let items = (owners[key] ?? []).union(((try? view.synced(key: key)) ?? []).map(\.id))
        undeliverable[key] = Undeliverable(items: items, retry: view.now + Self.retryTime)
        if let absence { absences[key] = absence }
        return (waitingForContent.removeValue(forKey: key) ?? []).sorted()
    }

    /// It stands for another content than before: what is just being asked for says nothing of that.
    package func noteOtherContent(_ key: InodeKey) {
        noteDelivered(key)
        newsCount += 1
    }

    /// Whether any content is asked for or waited for, or could not be had.
    var asksForContents: Bool { !undeliverable.isEmpty || !waitingForContent.isEmpty || !fetching.isEmpty }

    package func noteDelivered(_ key: InodeKey) {
        undeliverable[key] = nil
        owners[key] = nil
        absences[key] = nil
    }

    /// Nobody has the content, as far as the cloud has told until now: what waited for it goes on without. No failure of a disk says that.
    func isAbsent(_ key: InodeKey) -> Bool { undeliverable[key] != nil && absences[key] != nil }

    /// What takes the place of a content that nobody has any more is about to come. A server that was restored from a backup may know
    /// neither.
    func isAboutToBeReplaced(_ key: InodeKey) -> Bool {
        guard absences[key] == .superseded else { return false }
        return (owners[key] ?? []).contains { item in
            guard let remote = (try? view.remote(item)) ?? nil else { return false }
            return !remote.isDeleted
        }
    }

    /// Why a content is not asked for now; `nil` when it is.
    func refusal(of key: InodeKey) -> Verdict? {
        guard let failure = undeliverable[key] else { return nil }
        if absences[key] != nil { return .parked }
        let rest = failure.retry - view.now
        if rest > .zero { return .later(rest) }
        undeliverable[key] = nil
        return nil
    }

    func waits(_ works: Set<Work>, forContentOf key: InodeKey) {
        waitingForContent[key, default: []].formUnion(works)
        owners[key, default: []].formUnion(((try? view.synced(key: key)) ?? []).map(\.id))
    }

    /// A restored backup has other inodes than its rows say: whose placeholder it is, the rows of the revision that it stands for tell.
    func noteOwners(of state: LocalState, among candidates: some Sequence<Candidate>) {
        guard let revision = state.placeholder?.revision else { return }
        let items = candidates.filter { $0.synced?.content.revision == revision }.map(\.id)
        if !items.isEmpty { owners[state.key, default: []].formUnion(items) }
    }

    /// The same of all rows, where none that was looked at tells.
    func findOwners(of state: LocalState) {
        guard owners[state.key]?.isEmpty ?? true, let revision = state.placeholder?.revision else { return }
        let rows = (try? view.synced(revision: revision)) ?? []
        owners[state.key] = Set(rows.map(\.id))
    }

    /// The cloud tells of these items, and that is about to be written down.
    package func noteArriving(_ items: [RemoteItem]) {
        for item in items where !item.conflicts.isEmpty && !item.isDeleted {
            guard let row = (try? view.synced(item.id)) ?? nil, (try? isProvenDeletion(row)) ?? false else { continue }
            let known = ((try? view.remote(item.id)) ?? nil)?.conflicts.map(\.revision) ?? []
            guard !item.conflicts.allSatisfy({ known.contains($0.revision) }) else { continue }
            contested.insert(item.id)
            // The same entries may prove that its other names were deleted.
            let others = row.local.flatMap { try? view.synced(key: $0.key) } ?? []
            for other in others where other.id != row.id && ((try? isProvenDeletion(other)) ?? false) {
                view.log(.item(other.id))
            }
            // Should this process end before it is back, there is nothing that proves its deletion: it comes back.
            view.withdraw([.item(row.id)] + (row.local.map { [.inode($0.key), .replacing($0.key)] } ?? []))
        }
    }

    /// The cloud's state of these items has been written down.
    /// - Returns: work that waits for it, or for contents that may have come with it.
    func noteRemote(_ items: [RemoteItem]) -> [Work] {
        guard !items.isEmpty else { return [] }
        newsCount += 1
        ignoring.noteRemote(items)
        if !putBack.isEmpty { noteBackInPlace(items) }
        // It is there again: whoever deletes it from now on means it.
        if !revivals.isEmpty { for item in items where !item.isDeleted { revivals.remove(item.id) } }
        guard !undeliverable.isEmpty || !waitingForNews.isEmpty else { return [] }
        let ids = Set(items.map(\.id))
        let awaited = ids.sorted().flatMap { (waitingForNews.removeValue(forKey: $0) ?? []).sorted() }
        let keys = undeliverable.filter { !$0.value.items.isDisjoint(with: ids) }.keys.sorted()
        // What is absent stays so, unless its author brings it after all.
        for key in keys { undeliverable[key] = nil }
        return awaited + keys.flatMap { (waitingForContent.removeValue(forKey: $0) ?? []).sorted() }
    }

    /// The server has put them back where they had been: whoever gives them other names from now on means it.
    private func noteBackInPlace(_ items: [RemoteItem]) {
        for item in items {
            guard let before = putBack[item.id], item.position > before,
                let row = (try? view.synced(item.id)) ?? nil, row.place == item.place
            else { continue }
            putBack[item.id] = nil
        }
    }
}
