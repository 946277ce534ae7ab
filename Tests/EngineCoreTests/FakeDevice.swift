import EngineCore
import Reconciliation
import UbiquityModel

/// A device in memory: what lies in its folders, its rows, and what others do in the middle of a look.
final class FakeDevice: DeviceView {
    lazy var folders = FolderIndex(root: rootKey)
    /// How many items the container has, and how often that was asked.
    var total = 1000
    var counts = 0
    var databaseFails = false
    var held: Set<ItemID> = []
    var heldWrites: [(isHeld: Bool, items: [ItemID])] = []
    var unwitnessed: Set<LocalPlace> = []
    var sentDeletions: [ItemID: SentDeletion] = [:]
    /// What has been sent, and what the cloud answers; `nil`: the answer is lost.
    var committed: [ItemOperation] = []
    var answer: ((ItemOperation) -> OperationOutcome)?
    /// The commit has reached the cloud.
    var whileCommitting: () -> Void = {}
    /// Rows that passes have written.
    var upserts: [SyncedItem] = []
    /// What comes of bringing a content here.
    var whole: () -> WholeContent = { .not(.failed) }
    var discarded: [String] = []
    /// Acts on the tree, none of which is done.
    var performed = 0
    /// How often it was asked what programs did, and what is told then.
    var hearings = 0
    var whenHeard: (Int) -> Void = { _ in }
    var extended: [InodeKey: [[UInt8]: [UInt8]]] = [:]
    /// How many identifiers were made.
    var identifiers: UInt64 = 0

    var tree: [LocalPlace: LocalState] = [:]
    var places: [InodeKey: LocalPlace] = [:]
    var rows: [ItemID: SyncedItem] = [:]
    var cloud: [ItemID: RemoteItem] = [:]
    var deletions: Set<DeletionEntry> = []
    /// What lookups have made, before its rows are written.
    var made: [SyncedItem] = []
    /// Called before each look at a place.
    var beforeLook: (LocalPlace) -> Void = { _ in }
    var problems: [ItemID: String] = [:]
    /// What small files contain.
    var texts: [InodeKey: String] = [:]
    /// Whose contents were asked for.
    var fetched: [LocalPlace] = []
    private var inodes: UInt64 = 1
    private var items: UInt8 = 100

    let deviceName = "this one"
    let rootKey = InodeKey(tag: 1, words: (1, 0, 0))
    var now = Instant(.seconds(1))
    var wallClock = Timestamp(seconds: 1000, nanoseconds: 0)
    var isCaseInsensitive = false
    /// The packages that folders are, or lie in.
    var packages: [InodeKey: LocalPlace] = [:]

    func package(around folder: InodeKey) -> LocalPlace? { packages[folder] }

    /// An inode that did not exist before.
    func newInode(_ kind: LocalKind) -> LocalState {
        inodes += 1
        return LocalState(
            key: InodeKey(tag: 1, words: (inodes, 0, 0)),
            kind: kind,
            size: 0,
            modified: Timestamp(nanoseconds: 1),
            changed: Timestamp(nanoseconds: 1),
            mode: 0o755,
            linkCount: 1,
            placeholder: nil
        )
    }

    func put(_ state: LocalState, at place: LocalPlace) {
        tree[place] = state
        if state.kind == .folder || state.kind == .package { places[state.key] = place }
    }

    func newItem() -> ItemID {
        items += 1
        return ItemID(number: items)
    }

    func observe(_ place: LocalPlace) -> LocalState? {
        beforeLook(place)
        return tree[place]
    }

    func hasTwin(_ place: LocalPlace) -> Bool {
        isCaseInsensitive
            && tree.keys.contains {
                $0.folder == place.folder && $0.name != place.name && $0.name.folded == place.name.folded
            }
    }

    func target(of place: LocalPlace) -> [UInt8]? { nil }

    func extendedAttributes(of place: LocalPlace, _ key: InodeKey) -> [[UInt8]: [UInt8]]? {
        tree[place]?.key == key ? extended[key] ?? [:] : nil
    }

    func bytes(of place: LocalPlace, _ key: InodeKey, limit: Int) -> [UInt8]? {
        tree[place]?.key == key ? texts[key].map { Array($0.utf8) } : nil
    }

    func place(ofFolder key: InodeKey) -> LocalPlace? { places[key] }

    func path(of place: LocalPlace) -> ItemPath? {
        var names = [place.name]
        var folder = place.folder
        while folder != rootKey {
            guard let own = places[folder] else { return nil }
            names.append(own.name)
            folder = own.folder
        }
        return ItemPath(names.reversed())
    }

    func synced(_ id: ItemID) -> SyncedItem? { rows[id] }
    func synced(at place: Place) -> [SyncedItem] { rows.values.filter { $0.place == place }.sorted { $0.id < $1.id } }
    func synced(key: InodeKey) -> [SyncedItem] { rows.values.filter { $0.local?.key == key } }
    func synced(revision: RevisionID) -> [SyncedItem] { rows.values.filter { $0.content.revision == revision } }
    func syncedChildren(of folder: ItemID) -> [SyncedItem] { rows.values.filter { $0.place.parent == folder } }

    func syncedSubtree(of folder: ItemID) -> [SyncedItem] {
        syncedChildren(of: folder).flatMap { [$0] + syncedSubtree(of: $0.id) }
    }

    func remote(_ id: ItemID) -> RemoteItem? { cloud[id] }
    func remote(at place: Place) -> [RemoteItem] { cloud.values.filter { $0.place == place && !$0.isDeleted } }
    func remote(like place: Place) -> [RemoteItem] {
        guard isCaseInsensitive else { return [] }
        return cloud.values.filter {
            $0.place.parent == place.parent && $0.place.name.folded == place.name.folded && !$0.isDeleted
        }
    }
    func remote(revision: RevisionID) -> RemoteItem? {
        cloud.values.first { $0.content.revision == revision && !$0.isDeleted }
    }
    func deletedRemote(revision: RevisionID) -> RemoteItem? {
        cloud.values.first { $0.content.revision == revision && $0.isDeleted }
    }
    func strange(among keys: [InodeKey]) -> [InodeKey] { keys.filter { synced(key: $0).isEmpty } }
    func withdraw(_ ended: [DeletionEntry]) { deletions.subtract(ended) }
    func settled(_ item: ItemID, _ key: InodeKey?) { problems[item] = nil }
    func isLogged(_ deletion: DeletionEntry) -> Bool { deletions.contains(deletion) }

    func recordMade() {
        for row in made { rows[row.id] = row }
        made = []
    }

    func populateBelow(_ folder: ItemID) -> Bool { true }
    func fetchWhole(_ place: LocalPlace, _ key: InodeKey) { fetched.append(place) }
    func noteProblem(_ item: ItemID, at place: LocalPlace?, _ reason: String) { problems[item] = reason }
}

extension ItemID {
    init(number: UInt8) {
        guard let id = ItemID(bytes: [UInt8](repeating: 0, count: 15) + [number]) else {
            preconditionFailure("an id has 16 bytes")
        }
        self = id
    }
}
