package import UbiquityModel

/// What the engine sees of its device, and does to it, while it looks at items: the backing tree, the state database, the log of
/// deletions. Everything that decisions depend on comes through here, so that the device service and the simulator drive the same code.
///
/// Errors are the device's own (a disk that does not read, a damaged database): they end the look at one place, never a decision.
package protocol DeviceView: AnyObject {
    // MARK: The backing tree

    /// The folder that is the container.
    var rootKey: InodeKey { get }
    /// `nil`: nothing is there, or its folder is gone.
    func observe(_ place: LocalPlace) throws -> LocalState?
    /// Which inode that is: of a package without a look at what lies in it.
    func key(at place: LocalPlace) throws -> InodeKey?
    /// The same as it was a moment ago, of a file that has one name and all its content, if it was looked at then; only for a place of which
    /// no program has told anything since.
    func observedAhead(_ place: LocalPlace) -> LocalState?
    /// Whether a case-insensitive container has another name in that folder here which equals this one without its case; never in any
    /// other container.
    func hasTwin(_ place: LocalPlace) throws -> Bool
    /// A symlink's target; `nil` when it is gone by now.
    func target(of place: LocalPlace) throws -> [UInt8]?
    /// The synced attributes of this very inode; `nil` when the name stands for another, or for none, by now.
    func extendedAttributes(of place: LocalPlace, _ key: InodeKey) throws -> [[UInt8]: [UInt8]]?
    /// All of a small file; `nil` when the name stands for another inode, or for none, by now.
    /// - Parameter limit: in bytes. A file that has grown beyond it is cut there.
    func bytes(of place: LocalPlace, _ key: InodeKey, limit: Int) throws -> [UInt8]?
    /// Where a folder is; `nil` for the root and for one that is not known.
    func place(ofFolder key: InodeKey) -> LocalPlace?
    /// The package that a folder is, or lies in: nothing in it is an item of its own. The outermost, where one lies in another.
    func package(around folder: InodeKey) throws -> LocalPlace?
    /// `nil` if its folder does not exist any more.
    func path(of place: LocalPlace) -> ItemPath?

    /// By which the account knows this device: the author of what it sends.
    var deviceName: String { get }

    // MARK: The state database

    func synced(_ id: ItemID) throws -> SyncedItem?
    /// Several while one has been moved away here, and that is not sent yet, or while it comes from there.
    func synced(at place: Place) throws -> [SyncedItem]
    func synced(key: InodeKey) throws -> [SyncedItem]
    /// Those on whose content of that revision was agreed. May read all of them.
    func synced(revision: RevisionID) throws -> [SyncedItem]
    func syncedChildren(of folder: ItemID) throws -> [SyncedItem]
    func syncedSubtree(of folder: ItemID) throws -> [SyncedItem]
    func remote(_ id: ItemID) throws -> RemoteItem?
    func remote(at place: Place) throws -> [RemoteItem]
    /// In a case-insensitive container the live items whose names equal that one without their case, itself included; none in any other.
    func remote(like place: Place) throws -> [RemoteItem]
    /// The live item whose content is of that revision. May read all of them.
    func remote(revision: RevisionID) throws -> RemoteItem?
    /// The same of deleted ones.
    func deletedRemote(revision: RevisionID) throws -> RemoteItem?
    /// Those of the inodes that no item is known to be.
    func strange(among keys: [InodeKey]) throws -> [InodeKey]
    /// Whether the deletion is in the log.
    func isLogged(_ deletion: DeletionEntry) -> Bool

    /// Nothing but a saving: what `body` asks the database is asked in one go.
    func askingTogether(_ body: () -> Void)

    // MARK: Clock and chance

    var now: Instant { get }
    /// The time of day, for edit times, the age of changes, and the server's correction of clocks.
    var wallClock: Timestamp { get }
    func newItem() -> ItemID

    // MARK: Acts

    /// Writes down what lookups have made in folders that populate themselves, if there is any.
    func recordMade()
    /// Makes all that the cloud has below a folder be here, some of it at a time. Returns whether nothing is left to be made.
    func populateBelow(_ folder: ItemID) throws -> Bool
    /// Begins to bring a dataless file's content here.
    func fetchWhole(_ place: LocalPlace, _ key: InodeKey)
    /// Puts a deletion into the log. One that cannot be written brings the item back instead of ending it: never the other way round.
    func log(_ deletion: DeletionEntry)
    /// Takes deletions that the cloud knows, or never has to, out of the log.
    func withdraw(_ deletions: [DeletionEntry])
    /// An item is as it should be, here and there. `key`: its inode, if it is here.
    func settled(_ item: ItemID, _ key: InodeKey?)
    /// For people: why an item does not sync. `place`: where it is here.
    func noteProblem(_ item: ItemID, at place: LocalPlace?, _ reason: String)
}

extension DeviceView {
    package func askingTogether(_ body: () -> Void) { body() }
    package func observedAhead(_ place: LocalPlace) -> LocalState? { nil }
    package func key(at place: LocalPlace) throws -> InodeKey? { try observe(place)?.key }
}

/// Whether nothing is there, and that is known: what cannot be read is not nothing. (`try?` of an error is equal to `.some(nil)` as well.)
func isNothing<Value>(_ read: @autoclosure () throws -> Value?) -> Bool {
    do { return try read() == nil } catch { return false }
}
