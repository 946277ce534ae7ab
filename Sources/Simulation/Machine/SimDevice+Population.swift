import EngineCore
import Reconciliation
import UbiquityModel

/// Folders that populate themselves, as `Populator` and `ContainerEngine+Populating` have it: what the cloud has in one gets an inode when a
/// program asks for its name.
extension SimDevice {
    /// Made for a program, and not written down yet.
    struct Made {
        var remote: RemoteItem
        var state: LocalState
    }

    func loadUnpopulated() {
        for id in machine.database.unpopulated.sorted() {
            let key = id == .root ? rootKey : machine.database.synced[id]?.local?.key
            if let key { unpopulated[key] = id }
        }
    }

    /// What the cloud alone has in a folder.
    private func entries(of folder: InodeKey) -> [RemoteItem] {
        guard let id = unpopulated[folder] else { return [] }
        return machine.database.cloudOnly(in: id).filter { item in
            !isInFlight(item.id) && LocalOnly.reason(for: item.place.name, isAtRoot: folder == rootKey) == nil
        }
    }

    private func isInFlight(_ item: ItemID) -> Bool {
        made.contains { $0.remote.id == item } || ownItems.contains(item)
            || appearing[item].map { machine.disk.staging[$0] == nil } ?? false
    }

    func willAppear(_ staged: [(item: ItemID, name: String)]) {
        for one in staged { appearing[one.item] = one.name }
    }

    func haveAppeared() {
        appearing = [:]
        formerFolders = [:]
    }

    /// Whether a program that removes the folder is told that it is not empty.
    func hasEntries(_ folder: InodeKey) -> Bool { !entries(of: folder).isEmpty }

    /// Whether the cloud alone has a name in the folder that differs from this one in case only.
    func hasTwinInCloud(of place: LocalPlace) -> Bool {
        let folded = place.name.folded
        return entries(of: place.folder).contains { $0.place.name != place.name && $0.place.name.folded == folded }
    }

    // MARK: Looking up

    /// A program asks for a name.
    func populate(_ place: LocalPlace) {
        guard machine.disk.entry(place) == nil, !machine.isDiskFull,
            machine.disk[SimDisk.number(place.folder)]?.kind == .folder
        else { return }
        let found = entries(of: place.folder).filter { $0.place.name == place.name }
        guard let remote = found.first(where: { !$0.isAnnounced }) ?? found.first else { return }
        world.count(.populations)
        // The device service makes one at once, too; here that takes its time.
        guard remote.content.kind != .package else {
            return synchronizer.handle(.pendingLoaded([remote.id], isLast: false))
        }
        world.note("\(machine.name) is asked for \(machine.shown(place))")
        let number = machine.disk.add(placeholder(for: remote))
        let key = SimDisk.key(number)
        let modified = machine.disk[SimDisk.number(place.folder)]?.modified
        machine.disk.link(number, at: place, machine.timeOfDay)
        // That names come which it has had all the time is no change of the folder.
        if let modified { machine.disk[SimDisk.number(place.folder)]?.modified = modified }
        guard let state = machine.disk.state(number) else { return }
        if state.kind == .folder {
            folders.insert(key, parent: place.folder, name: place.name)
            unpopulated[key] = remote.id
        }
        made.append(Made(remote: remote, state: state))
        later(500...4_000) { $0.drain() }
    }

    /// As `ls`.
    func populateAll(_ folder: InodeKey) {
        for item in entries(of: folder) { populate(LocalPlace(folder: folder, name: item.place.name)) }
    }

    /// As `find`.
    func populateTree(_ top: InodeKey) {
        var folders = [top]
        while let folder = folders.popLast() {
            populateAll(folder)
            let entries = machine.disk[SimDisk.number(folder)]?.entries ?? [:]
            for (_, number) in entries.sorted(by: { $0.key < $1.key }) where machine.disk[number]?.kind == .folder {
                folders.append(SimDisk.key(number))
            }
        }
    }

    func recordMade() {
        guard !made.isEmpty, !isDead else { return }
        let rows = made.map { one in SyncedItem(one.remote, local: LocalEvidence(unheard: one.state)) }
        guard (try? canWrite()) != nil else { return later(500_000...1_000_000) { $0.recordMade() } }
        let folders = made.filter { $0.state.kind == .folder }.map(\.remote.id)
        machine.database.noteUnpopulated(folders)
        machine.database.apply(SyncedChanges(upserts: rows))
        made = []
        synchronizer.foldersMade(folders)
        if !machine.database.differing(after: nil, limit: 1).isEmpty { synchronizer.handle(.remoteChanged) }
    }

    /// They have left the cloud, or come back as something else.
    func forgetUnpopulated(_ items: [ItemID]) {
        guard !unpopulated.isEmpty, !items.isEmpty else { return }
        let gone = Set(items)
        unpopulated = unpopulated.filter { !gone.contains($0.value) }
    }

    /// What the engine is about to put there.
    func noteUnpopulated(_ remote: RemoteItem, _ number: UInt64) {
        guard remote.content == .folder, machine.database.unpopulated.contains(remote.id) else { return }
        let key = SimDisk.key(number)
        formerFolders[key] = unpopulatedKey(of: remote.id)
        forgetUnpopulated([remote.id])
        unpopulated[key] = remote.id
    }

    /// It does not come there: the item is the inode that it was, unless a lookup has made another since.
    func noteDiscarded(_ number: UInt64) {
        let key = SimDisk.key(number)
        let former = formerFolders.removeValue(forKey: key)
        guard let id = unpopulated.removeValue(forKey: key), let former, unpopulatedKey(of: id) == nil else { return }
        unpopulated[former] = id
    }

    // MARK: For the engine

    func populateBelow(_ folder: ItemID) throws -> Bool {
        guard let key = synchronizer.tracker.folderKey(of: folder) else { return true }
        populateTree(key)
        recordMade()
        return made.isEmpty
    }

    func populatedFolder(_ item: ItemID) -> InodeKey? { populatedFolder(item, depth: 0) }

    private func populatedFolder(_ item: ItemID, depth: Int) -> InodeKey? {
        if let key = synchronizer.tracker.folderKey(of: item) { return key }
        guard depth < 100, let remote = machine.database.remote[item], !remote.isDeleted, remote.content == .folder,
            let parent = populatedFolder(remote.place.parent, depth: depth + 1), unpopulated[parent] != nil,
            ((try? package(around: parent)) ?? nil) == nil
        else { return nil }
        populate(LocalPlace(folder: parent, name: remote.place.name))
        recordMade()
        return synchronizer.tracker.folderKey(of: item)
    }

    // MARK: What others change

    /// Before a page is written.
    /// - Returns: what is new in unpopulated folders.
    func prepareForChanges(_ items: [RemoteItem]) -> [RemoteItem] {
        guard !unpopulated.isEmpty else { return [] }
        recordMade()
        defer { recordMade() }
        var arriving: [RemoteItem] = []
        for item in items where machine.database.synced[item.id] == nil {
            if let old = machine.database.remote[item.id], !old.isDeleted {
                guard old.position < item.position else { continue }
                if let key = unpopulatedKey(of: old.place.parent), isKnown(key) {
                    let count = made.count
                    populate(LocalPlace(folder: key, name: old.place.name))
                    if made.count > count { continue }
                }
                if old.place == item.place, old.isAnnounced == item.isAnnounced { continue }
            }
            if !item.isDeleted, unpopulatedKey(of: item.place.parent) != nil { arriving.append(item) }
        }
        return arriving
    }

    func noteArrived(_ items: [RemoteItem]) {
        let ids = items.filter { item in
            guard let key = unpopulatedKey(of: item.place.parent) else { return false }
            return isKnown(key) || machine.disk.entry(LocalPlace(folder: key, name: item.place.name)) != nil
        }.map(\.id)
        if !ids.isEmpty { synchronizer.handle(.pendingLoaded(ids, isLast: false)) }
    }

    /// After a full listing from a server that knew nothing of this device: all that the cloud has where somebody may look.
    func noteEverythingArrived() {
        for key in unpopulated.keys.sorted() where isKnown(key) {
            let ids = entries(of: key).map(\.id)
            if !ids.isEmpty { synchronizer.handle(.pendingLoaded(ids, isLast: false)) }
        }
    }

    /// A folder that was here before its item was known is one like any other.
    func populateAdopted(_ rows: [SyncedItem]) {
        var isChanged = false
        for row in rows where row.content == .folder && machine.database.unpopulated.contains(row.id) {
            guard let key = row.local?.key, unpopulated[key] != row.id else { continue }
            machine.database.setPopulated(row.id)
            isChanged = true
        }
        if isChanged { synchronizer.handle(.remoteChanged) }
    }

    private func unpopulatedKey(of item: ItemID) -> InodeKey? {
        unpopulated.filter { $0.value == item }.map(\.key).min()
    }

    /// Whether the kernel, and so perhaps a program, has looked at it.
    private func isKnown(_ folder: InodeKey) -> Bool {
        folder == rootKey || SimDisk.number(folder) % 2 == 0 || world.random.happens(30)
    }
}
