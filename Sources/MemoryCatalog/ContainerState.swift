internal import CatalogModel
internal import Reconciliation
internal import UbiquityModel

/// A container's items, versions, chunks and log.
struct ContainerState: Sendable {
    let account: Int64
    let info: ContainerInfo
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
    private(set) var contents: [ContentID: Manifest] = [:]
    private(set) var chunks: [ChunkID: ChunkRecord] = [:]
    /// Of the chunks, before compression.
    private(set) var bytes: Int64 = 0
    private var operations: Set<OperationID> = []

    init(account: Int64, info: ContainerInfo) {
        self.account = account
        self.info = info
    }

    mutating func commit(_ entries: [CommitRequest.Entry], _ context: CommitContext) -> [OperationOutcome] {
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
    /// Items without content: they claim no name.
    var announced: Set<ItemID> = []

    var isEmpty: Bool { names.isEmpty && announced.isEmpty }
}

extension ContainerState: CommitStore {
    func item(_ id: ItemID) -> RemoteItem? { items[id]?.item }

    func revision(_ id: RevisionID) -> StoredRevision? { revisions[id] }

    func holder(of place: Place) -> ItemID? { folders[place.parent]?.names[place.name] }

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
        for revision in change.revisions { put(revision) }
        if let content = change.content, contents[content.id] == nil { contents[content.id] = content.manifest }
    }

    private mutating func leave(_ item: RemoteItem) {
        let place = item.place
        if item.isAnnounced {
            folders[place.parent]?.announced.remove(item.id)
        } else {
            folders[place.parent]?.names[place.name] = nil
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
        }
    }

    private mutating func put(_ revision: StoredRevision) {
        let id = revision.version.revision
        if let former = revisions.updateValue(revision, forKey: id) {
            precondition(former.item == revision.item, "the rules gave a revision to another item")
        } else {
            revisionsOfItems[revision.item, default: []].append(id)
        }
    }
}
