import EngineCore
import UbiquityModel

import struct SystemPackage.Errno

extension SimDevice: DeviceView {
    var rootKey: InodeKey { SimDisk.key(SimDisk.root) }

    func observe(_ place: LocalPlace) throws -> LocalState? {
        if synchronizer.isRunningPass { machine.actMeanwhile() }
        try alive()
        if machine.diskFails() { throw Errno.ioError }
        return entry(place).flatMap { seen($0, place.name) }
    }

    /// A folder is opened by its path: what lies in one that nobody has told of is not seen.
    private func entry(_ place: LocalPlace) -> UInt64? {
        folders.path(of: place.folder) == nil ? nil : machine.disk.entry(place)
    }

    func hasTwin(_ place: LocalPlace) throws -> Bool {
        try alive()
        guard machine.world.settings.isCaseInsensitive else { return false }
        let folded = place.name.folded
        let entries = machine.disk[SimDisk.number(place.folder)]?.entries.keys
        return entries?.contains { $0 != place.name && $0.folded == folded } ?? false
    }

    func target(of place: LocalPlace) throws -> [UInt8]? {
        try alive()
        return entry(place).flatMap { machine.disk[$0] }.flatMap { $0.kind == .symlink ? $0.target : nil }
    }

    func extendedAttributes(of place: LocalPlace, _ key: InodeKey) throws -> [[UInt8]: [UInt8]]? {
        try alive()
        guard let number = entry(place), SimDisk.key(number) == key else { return nil }
        return machine.disk[number]?.extended
    }

    func bytes(of place: LocalPlace, _ key: InodeKey, limit: Int) throws -> [UInt8]? {
        try alive()
        if machine.diskFails() { throw Errno.ioError }
        guard let number = entry(place), SimDisk.key(number) == key else { return nil }
        return machine.disk[number].map { SimRules.text($0.tokens) }
    }

    func place(ofFolder key: InodeKey) -> LocalPlace? {
        folders.entry(key).map { LocalPlace(folder: $0.parent, name: $0.name) }
    }

    func path(of place: LocalPlace) -> ItemPath? { folders.path(of: place.folder)?.appending(place.name) }

    func synced(_ id: ItemID) throws -> SyncedItem? { machine.database.synced[id] }
    var deviceName: String { machine.credentials.name }

    func synced(at place: Place) throws -> [SyncedItem] { machine.database.synced(at: place) }
    func synced(key: InodeKey) throws -> [SyncedItem] { machine.database.synced(key: key) }
    func syncedChildren(of folder: ItemID) throws -> [SyncedItem] { machine.database.syncedChildren(of: folder) }
    func syncedSubtree(of folder: ItemID) throws -> [SyncedItem] { machine.database.syncedSubtree(of: folder) }
    func remote(_ id: ItemID) throws -> RemoteItem? { machine.database.remote[id] }
    func remote(at place: Place) throws -> [RemoteItem] { machine.database.remote(at: place) }
    func remote(like place: Place) throws -> [RemoteItem] {
        world.settings.isCaseInsensitive ? machine.database.remote(like: place) : []
    }
    func synced(revision: RevisionID) throws -> [SyncedItem] { machine.database.synced(revision: revision) }
    func remote(revision: RevisionID) throws -> RemoteItem? { machine.database.remote(revision: revision) }
    func deletedRemote(revision: RevisionID) throws -> RemoteItem? {
        machine.database.deletedRemote(revision: revision)
    }
    func strange(among keys: [InodeKey]) throws -> [InodeKey] {
        keys.filter { machine.database.synced(key: $0).isEmpty }
    }
    func isLogged(_ deletion: DeletionEntry) -> Bool { machine.database.deletions.contains(deletion) }

    func newItem() -> ItemID { ItemID(at: machine.timeOfDay, using: &world.random) }

    func fetchWhole(_ place: LocalPlace, _ key: InodeKey) {
        guard !isDead, synchronizer.tracker.fetching.insert(key).inserted else { return }
        if isPackage(SimDisk.number(key)), machine.disk[SimDisk.number(key)]?.kind == .folder {
            return fetchPackage(place, key)
        }
        fill(SimDisk.number(key)) { _ in }
    }

    func withdraw(_ deletions: [DeletionEntry]) {
        if !isDead { machine.database.deletions.subtract(deletions) }
    }

    func noteProblem(_ item: ItemID, at place: LocalPlace?, _ reason: String) {
        world.note("\(machine.name): \(place?.name.description ?? "\(item)"): \(reason)")
    }

    /// The dead do nothing, and learn nothing.
    func alive() throws {
        if isDead { throw SimFailure.dead }
    }
}
