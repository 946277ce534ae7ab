internal import CatalogModel
internal import Reconciliation
internal import UbiquityModel

/// A container's items, versions, chunks and log.
struct ContainerState: Sendable {
    let account: Int64
    var info: ContainerInfo
    var isRemoved = false

    /// The newest position.
    private(set) var head = LogPosition.beginning
    /// Where each commit ended, in order. A position in the middle of a commit has the hash of its commit.
    private(set) var commits: [LogPosition] = []
    /// The item that each position was given to; position 1 comes first. Whoever got a later one is not there any more.
    private(set) var log: [ItemID] = []

    /// Tombstones included.
    private(set) var items: [ItemID: StoredItem] = [:]
    /// What lives in folders that have anything in them.
    private(set) var folders: [ItemID: FolderState] = [:]

    /// Every content that an item has or had.
    private(set) var revisions: [RevisionID: StoredRevision] = [:]
    private(set) var revisionsOfItems: [ItemID: [RevisionID]] = [:]
    /// When each got its kind, by the server's clock.
    private(set) var since: [RevisionID: Timestamp] = [:]
    private(set) var contents: [ContentID: Manifest] = [:]
    private(set) var chunks: [ChunkID: ChunkRecord] = [:]
    /// Chunks that nothing refers to, and until when devices are told that they are here.
    private(set) var candidates: [ChunkID: Timestamp] = [:]
    /// Chunks that the commit under way has named.
    private var named: Set<ChunkID> = []
    /// Of the chunks, before compression.
    private(set) var bytes: Int64 = 0
    private var operations: Set<OperationID> = []

    init(account: Int64, info: ContainerInfo) {
        self.account = account
        self.info = info
    }

    /// - Parameter added: chunks that came along and were not known before.
    mutating func commit(
        _ entries: [CommitRequest.Entry],
        added: [ChunkID],
        _ context: CommitContext
    ) -> [OperationOutcome] {
        named = []
        defer { offer(added.filter { !named.contains($0) }, now: context.now) }
        var batch = CommitBatch(after: head.counter, context: context)
        var outcomes = [OperationOutcome]()
        outcomes.reserveCapacity(entries.count)
        for entry in entries { outcomes.append(batch.perform(entry, in: &self)) }
        if !batch.log.isEmpty {
            head = head.following(batch.log)
            commits.append(head)
        }
        return outcomes
    }

    /// The chunks that are not in the cloud; of those of one id the first.
    func unknown(among records: [ChunkRecord]) -> [ChunkID: ChunkRecord] {
        var result = [ChunkID: ChunkRecord]()
        for record in records where chunks[record.chunk] == nil && result[record.chunk] == nil {
            result[record.chunk] = record
        }
        return result
    }

    /// - Parameter bytes: of the chunks, none of which is known.
    mutating func add(_ new: [ChunkID: ChunkRecord], bytes: Int64) {
        chunks.merge(new) { known, _ in known }
        self.bytes += bytes
    }

    /// Nothing refers to them, yet: they are offered for a while.
    mutating func offer(_ chunks: some Sequence<ChunkID>, now: Timestamp) {
        for chunk in chunks { candidates[chunk] = now.after(ChunkCollection.uploadLifetime) }
    }

    /// Whether devices are told that it is not here.
    func lacks(_ chunk: ChunkID, now: Timestamp) -> Bool {
        chunks[chunk] == nil || candidates[chunk].map { $0 <= now } ?? false
    }
}

struct StoredItem: Sendable {
    struct Deletion: Sendable {
        var time: Timestamp
        /// The device's name.
        var device: String
    }

    /// With its conflict versions, also where it is deleted.
    var item: RemoteItem
    var deletion: Deletion?

    /// As devices are told of it: nobody resolves the conflicts of what is deleted.
    var told: RemoteItem {
        guard item.isDeleted else { return item }
        var item = item
        item.conflicts = []
        return item
    }
}

struct FolderState: Sendable {
    var names: [Name: ItemID] = [:]
    /// The same without their case; in case-insensitive containers only.
    var folded: [FoldedName: ItemID] = [:]
    /// Items without content: they claim no name.
    var announced: Set<ItemID> = []

    var isEmpty: Bool { names.isEmpty && announced.isEmpty }
}

extension ContainerState: CommitStore {
    func item(_ id: ItemID) -> RemoteItem? { items[id]?.item }

    func revision(_ id: RevisionID) -> StoredRevision? { revisions[id] }

    func keeps(_ content: ContentID, _ item: ItemID) -> Bool {
        (revisionsOfItems[item] ?? []).contains { id in
            guard let revision = revisions[id] else { return false }
            return revision.version.content == content && !revision.isDiscarded && !revision.isUnwanted
        }
    }

    func holder(of place: Place) -> ItemID? {
        let folder = folders[place.parent]
        return info.isCaseInsensitive ? folder?.folded[place.name.folded] : folder?.names[place.name]
    }

    func hasLiveChildren(_ folder: ItemID) -> Bool { folders[folder] != nil }

    func presence(of manifest: Manifest, content: ContentID) -> ContentPresence {
        if let known = contents[content] { return known == manifest ? .whole : .contradicted }
        var missing = [ChunkID]()
        var lengths = [ChunkID: UInt32]()
        for entry in manifest.entries {
            if let length = lengths[entry.chunk] {
                guard length == entry.length else { return .contradicted }
                continue
            }
            lengths[entry.chunk] = entry.length
            if let stored = chunks[entry.chunk] {
                guard stored.length == entry.length else { return .contradicted }
            } else {
                missing.append(entry.chunk)
            }
        }
        return missing.isEmpty ? .whole : .missing(missing)
    }

    func isCommitted(_ operation: OperationID) -> Bool { operations.contains(operation) }

    mutating func remember(_ operation: OperationID) { operations.insert(operation) }

    mutating func write(_ change: CommitChange, _ context: CommitContext) {
        let item = change.item
        if let former = items[item.id]?.item, !former.isDeleted { leave(former) }
        if !item.isDeleted { enter(item) }
        let deletion = item.isDeleted ? StoredItem.Deletion(time: context.now, device: context.device) : nil
        items[item.id] = StoredItem(item: item, deletion: deletion)
        precondition(item.position == UInt64(log.count) + 1, "log positions follow each other")
        log.append(item.id)
        for revision in change.revisions { put(revision, now: context.now) }
        guard let content = change.content, contents[content.id] == nil else { return }
        contents[content.id] = content.manifest
        for entry in content.manifest.entries {
            candidates[entry.chunk] = nil
            named.insert(entry.chunk)
        }
    }

    private mutating func leave(_ item: RemoteItem) {
        let place = item.place
        if item.isAnnounced {
            folders[place.parent]?.announced.remove(item.id)
        } else {
            folders[place.parent]?.names[place.name] = nil
            if info.isCaseInsensitive { folders[place.parent]?.folded[place.name.folded] = nil }
        }
        if folders[place.parent]?.isEmpty == true { folders[place.parent] = nil }
    }

    private mutating func enter(_ item: RemoteItem) {
        let place = item.place
        if item.isAnnounced {
            folders[place.parent, default: FolderState()].announced.insert(item.id)
        } else {
            let former = folders[place.parent, default: FolderState()].names.updateValue(item.id, forKey: place.name)
            precondition(former == nil, "the rules gave one name to two items")
            guard info.isCaseInsensitive else { return }
            let twin = folders[place.parent]?.folded.updateValue(item.id, forKey: place.name.folded)
            precondition(twin ?? nil == nil, "the rules gave names to two items that differ in case only")
        }
    }

    private mutating func put(_ revision: StoredRevision, now: Timestamp) {
        let id = revision.version.revision
        since[id] = now
        if let former = revisions.updateValue(revision, forKey: id) {
            precondition(former.item == revision.item, "the rules gave a revision to another item")
        } else {
            revisionsOfItems[revision.item, default: []].append(id)
        }
    }
}

// MARK: What is kept no longer

extension ContainerState {
    /// Items with saved versions, in order.
    func itemsWithSavedVersions(after: ItemID?) -> [ItemID] {
        let items = Set(revisions.values.lazy.filter { $0.version.kind == .saved && !$0.isDiscarded }.map(\.item))
        return items.filter { item in after.map { $0 < item } ?? true }.sorted()
    }

    /// In the order of their deletion.
    func tombstones(in time: Range<Timestamp>, after: DeletedPosition?) -> [(item: ItemID, position: DeletedPosition)] {
        let found = items.values.compactMap { stored -> (item: ItemID, position: DeletedPosition)? in
            guard let deletion = stored.deletion, time.contains(deletion.time) else { return nil }
            let position = DeletedPosition(deleted: deletion.time, position: stored.item.position)
            if let after, (position.deleted, position.position) <= (after.deleted, after.position) { return nil }
            return (stored.item.id, position)
        }
        return found.sorted {
            ($0.position.deleted, $0.position.position) < ($1.position.deleted, $1.position.position)
        }
    }

    /// - Returns: how many versions are kept no longer.
    mutating func discardVersions(of item: ItemID, _ rules: RetentionRules, now: Timestamp) -> Int {
        let saved = kept(of: item).filter { $0.version.kind == .saved }.map { revision in
            RetainedVersion(
                revision: revision.version.revision,
                edited: revision.version.edited,
                since: since[revision.version.revision] ?? now,
                isResolved: revision.isResolved,
                isUnwanted: revision.isUnwanted
            )
        }
        let discarded = rules.discarded(among: saved, now: now)
        for revision in discarded { discard(revision, now: now) }
        return discarded.count
    }

    mutating func discardAllVersions(of item: ItemID, now: Timestamp) -> Int {
        let discarded = kept(of: item).map(\.version.revision)
        for revision in discarded { discard(revision, now: now) }
        items[item]?.item.conflicts = []
        return discarded.count
    }

    private func kept(of item: ItemID) -> [StoredRevision] {
        (revisionsOfItems[item] ?? []).compactMap { revisions[$0] }.filter { !$0.isDiscarded }
    }

    private mutating func discard(_ id: RevisionID, now: Timestamp) {
        guard let content = revisions[id]?.version.content else { return }
        revisions[id]?.isDiscarded = true
        revisions[id]?.version.kind = .saved
        guard !revisions.values.contains(where: { $0.version.content == content && !$0.isDiscarded }),
            let manifest = contents.removeValue(forKey: content)
        else { return }
        for entry in manifest.entries where chunks[entry.chunk] != nil && candidates[entry.chunk] == nil {
            candidates[entry.chunk] = now
        }
    }

    /// Candidates in order.
    func candidates(after: ChunkID?) -> [ChunkID] {
        candidates.keys.filter { chunk in after.map { $0 < chunk } ?? true }.sorted()
    }

    /// - Returns: how many chunks are not here any more.
    mutating func collect(_ chunks: [ChunkID], now: Timestamp) -> Int {
        let referred = Set(contents.values.lazy.flatMap { $0.entries.lazy.map(\.chunk) })
        var count = 0
        for chunk in chunks {
            if referred.contains(chunk) {
                candidates[chunk] = nil
            } else if let offered = candidates[chunk], offered.after(ChunkCollection.answerLifetime) <= now {
                candidates[chunk] = nil
                bytes -= Int64(self.chunks.removeValue(forKey: chunk)?.length ?? 0)
                count += 1
            }
        }
        return count
    }
}
