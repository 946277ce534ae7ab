import UbiquityModel

/// A device's state database, and its log of deletions: what outlives a process.
struct SimDatabase {
    private(set) var synced: [ItemID: SyncedItem] = [:]
    private(set) var remote: [ItemID: RemoteItem] = [:]
    private(set) var pending: Set<ItemID> = []
    var sending: [ItemID: SentRevision] = [:]
    var sentLinks: [ItemID: SentLink] = [:]
    var sentDeletions: [ItemID: SentDeletion] = [:]
    var held: Set<ItemID> = []
    var confirmed: Set<ItemID> = []
    var changedPackages: Set<InodeKey> = []
    var unwitnessed: Set<LocalPlace> = []
    var manifests: [ContentID: Manifest] = [:]
    /// What packages' revisions were of which a restored server knew nothing.
    private(set) var former: [RevisionID: ContentID] = [:]
    var position: LogPosition?
    /// The furthest end of the log that the server has told of.
    var answered: LogPosition?
    /// A listing of a server that was restored has begun, and not come to its end.
    private(set) var isComparing = false
    /// Folders of whose items those without a row are in the cloud only.
    private(set) var unpopulated: Set<ItemID> = []
    var deletions: Set<DeletionEntry> = []
    var wasStoppedCleanly = false

    // MARK: Rows

    func synced(at place: Place) -> [SyncedItem] {
        synced.values.filter { $0.place == place }.sorted { $0.id < $1.id }
    }

    func synced(key: InodeKey) -> [SyncedItem] {
        synced.values.filter { $0.local?.key == key }.sorted { $0.id < $1.id }
    }

    func synced(revision: RevisionID) -> [SyncedItem] {
        synced.values.filter { $0.content.revision == revision }.sorted { $0.id < $1.id }
    }

    func syncedChildren(of folder: ItemID) -> [SyncedItem] {
        synced.values.filter { $0.place.parent == folder }
            .sorted { ($0.place.name, $0.id) < ($1.place.name, $1.id) }
    }

    func syncedSubtree(of folder: ItemID) -> [SyncedItem] {
        var result: [SyncedItem] = []
        var level = [folder]
        var known: Set<ItemID> = []
        while !level.isEmpty {
            let rows = level.flatMap { syncedChildren(of: $0) }.filter { known.insert($0.id).inserted }
            result += rows
            level = rows.map(\.id)
        }
        return result
    }

    func syncedOrphans() -> [ItemID] {
        synced.values.filter { $0.place.parent != .root && synced[$0.place.parent] == nil }.map(\.id).sorted()
    }

    func remote(at place: Place) -> [RemoteItem] {
        remote.values.filter { $0.place == place && !$0.isDeleted }.sorted { $0.id < $1.id }
    }

    func remote(like place: Place) -> [RemoteItem] {
        let folded = place.name.folded
        return remoteChildren(of: place.parent).filter { $0.place.name.folded == folded }
    }

    func remote(revision: RevisionID) -> RemoteItem? {
        remote.values.filter { $0.content.revision == revision && !$0.isDeleted }.min { $0.id < $1.id }
    }

    func deletedRemote(revision: RevisionID) -> RemoteItem? {
        remote.values.filter { $0.content.revision == revision && $0.isDeleted }.min { $0.id < $1.id }
    }

    func remoteChildren(of folder: ItemID) -> [RemoteItem] {
        remote.values.filter { $0.place.parent == folder && !$0.isDeleted }
            .sorted { ($0.place.name, $0.id) < ($1.place.name, $1.id) }
    }

    func cloudOnly(in folder: ItemID) -> [RemoteItem] {
        remoteChildren(of: folder).filter { synced[$0.id] == nil && sending[$0.id] == nil }
    }

    func differing(after last: ItemID?, limit: Int) -> [ItemID] {
        Array(pending.filter { id in last.map { id > $0 } ?? true }.sorted().prefix(limit))
    }

    // MARK: Transactions

    mutating func write(remote items: [RemoteItem]) {
        for item in items {
            if let known = remote[item.id], known.position > item.position { continue }
            remote[item.id] = item
            mark(item)
            refresh(item.id)
        }
    }

    /// The first time that the container is here at all.
    mutating func beginListing() { unpopulated = [.root] }

    /// Folders that appeared without their items.
    mutating func noteUnpopulated(_ folders: [ItemID]) { unpopulated.formUnion(folders) }

    /// All that the cloud has in it is to come here.
    mutating func setPopulated(_ folder: ItemID) {
        let items = cloudOnly(in: folder).map(\.id)
        unpopulated.remove(folder)
        pending.formUnion(items)
    }

    /// What lies in a folder that is in the cloud only is there as well.
    private mutating func mark(_ item: RemoteItem) {
        guard item.content == .folder else { return }
        if item.isDeleted {
            unpopulated.remove(item.id)
        } else if unpopulated.contains(item.place.parent), synced[item.id] == nil {
            unpopulated.insert(item.id)
        }
    }

    /// Further pages follow, up to there.
    mutating func noteHead(_ head: LogPosition) {
        if head.counter > answered?.counter ?? 0 { answered = head }
    }

    /// What a restored server says counts.
    mutating func rewrite(remote items: [RemoteItem], manifests new: [ContentID: Manifest]) {
        isComparing = true
        for item in items {
            agree(withRestored: item, item.id)
            remote[item.id] = item
            mark(item)
            refresh(item.id)
        }
        manifests.merge(new) { known, _ in known }
    }

    private mutating func agree(withRestored item: RemoteItem?, _ id: ItemID) {
        guard let known = synced[id], let row = known.agreed(withRestored: item, known: remote[id]) else { return }
        if case .file(let file) = known.content, file.isPackage, known.content != row.content {
            former[file.revision] = former[file.revision] ?? file.content
        }
        synced[id] = row
    }

    mutating func removeRemote(_ ids: [ItemID], position: LogPosition) {
        self.position = position
        answered = nil
        isComparing = false
        for id in ids {
            agree(withRestored: nil, id)
            remote[id] = nil
            refresh(id)
        }
    }

    mutating func apply(
        _ changes: SyncedChanges,
        remote items: [RemoteItem] = [],
        answered: LogPosition? = nil,
        manifests new: [ContentID: Manifest] = [:]
    ) {
        write(remote: items)
        if let answered { noteHead(answered) }
        for id in changes.removals {
            synced[id] = nil
            refresh(id)
            if let item = remote[id], !item.isDeleted { pending.insert(id) }
        }
        for row in changes.upserts {
            synced[row.id] = row
            refresh(row.id)
        }
        for id in changes.answered {
            sending[id] = nil
            sentLinks[id] = nil
        }
        for id in changes.answeredDeletions { sentDeletions[id] = nil }
        manifests.merge(new) { known, _ in known }
    }

    private mutating func refresh(_ id: ItemID) {
        let row = synced[id]
        let item = remote[id]
        let agrees: Bool
        if let row, let item, !item.isDeleted {
            agrees = row.place == item.place && row.content == item.content && row.attributes == item.attributes
        } else {
            let isInCloudOnly = item.map { unpopulated.contains($0.place.parent) && sending[id] == nil } ?? true
            agrees = row == nil && (item?.isDeleted ?? true || isInCloudOnly)
        }
        if agrees { pending.remove(id) } else { pending.insert(id) }
    }
}
