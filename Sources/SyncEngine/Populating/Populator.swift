import CLinux
import Dispatch
import Driver
import Glibc
import Logging
import Reconciliation
import Replica
import Synchronization
import SystemPackage
import UbiquityModel

/// Folders that populate themselves (architecture section 3.4): which they are, and how one of their items gets an inode.
///
/// An item of an *unpopulated* folder is in the cloud only until somebody asks for its name. `populate` then makes the placeholder,
/// folder or link, in the backing tree and not through the mount, where whoever asks waits for it. The engine writes the synced row a
/// moment later, before it looks at anything else that was reported; until then the item is *in flight*, and none of the cloud's alone.
///
/// Used by request threads and by the engine. System calls happen outside its lock.
final class Populator: Sendable {
    /// What `populate` made, and nobody has written down yet.
    struct Made: Sendable {
        var remote: RemoteItem
        var state: LocalState
        var place: LocalPlace
    }

    private struct State: Sendable {
        var folders: [InodeKey: ItemID] = [:]
        var keys: [ItemID: InodeKey] = [:]
        /// Folders that have nothing in the cloud alone: nobody who looks for a name in one asks the database.
        var complete: Set<InodeKey> = []
        /// How often the cloud has changed: what was read before and is concluded from after a change is not kept.
        var cloudVersion = 0
        var inFlight: Set<ItemID> = []
        /// How often rows of what was here without one were written: what the database said of such an item before is not true any more.
        var recordings = 0
        /// What the engine is publishing, under which name it is staged until then. Its rows come when the pass ends.
        var appearing: [ItemID: String] = [:]
        /// Folders among that, by these names: their inodes, and those that the items have if they are not published after all.
        var staged: [String: (item: ItemID, key: InodeKey, former: InodeKey?)] = [:]
        /// Items that this device is just sending as new ones: the cloud has them, and their names here may be gone already.
        var own: Set<ItemID> = []
        /// What is being made at this moment, and who waits for it.
        var making: [ItemID: [DispatchSemaphore]] = [:]
        var made: [Made] = []
        /// The times that folders had before names were made in them, to be set again.
        var times: [InodeKey: Timestamp] = [:]

        /// Those without a row that were on the disk by now. What is just being made is not yet: whoever looks at the disk afterwards may
        /// find it in both places, which is better than in none.
        var itemsHere: Set<ItemID> { inFlight.subtracting(making.keys).union(own) }
    }

    /// A leaf: memory work only.
    private let state = Mutex(State())
    private let replica: Replica
    let known: KnownRevisions
    let packages: PackageTable
    private let logger: Logger

    init(replica: Replica, known: KnownRevisions, logger: Logger) {
        self.replica = replica
        self.known = known
        packages = PackageTable(replica: replica)
        self.logger = logger
    }

    // MARK: Which folders

    func load() throws(ReplicaError) {
        let folders = try replica.database.unpopulatedFolders(root: replica.tree.rootKey)
        state.withLock { state in
            state.folders = folders
            state.keys = Dictionary(uniqueKeysWithValues: folders.map { ($0.value, $0.key) })
        }
    }

    /// An unpopulated folder's inode is here.
    /// - Parameter staged: the name by which it is about to be published.
    func folderAppeared(_ key: InodeKey, _ id: ItemID, staged: String? = nil) {
        state.withLock { state in
            if let staged { state.staged[staged] = (id, key, state.keys[id]) }
            // What its inode was before may be a package by now, and shows nothing of the cloud's any more.
            if let former = state.keys[id] { state.folders[former] = nil }
            state.folders[key] = id
            state.keys[id] = key
        }
    }

    var hasFolders: Bool { state.withLock { !$0.folders.isEmpty } }
    func item(of folder: InodeKey) -> ItemID? { state.withLock { $0.folders[folder] } }
    var keys: [InodeKey] { state.withLock { Array($0.folders.keys) } }
    func key(of folder: ItemID) -> InodeKey? { state.withLock { $0.keys[folder] } }

    /// After what the cloud has in these folders was written to the database.
    func cloudChanged(in folders: some Sequence<ItemID>) {
        state.withLock { state in
            state.cloudVersion += 1
            for id in folders { if let key = state.keys[id] { state.complete.remove(key) } }
        }
    }

    /// After rows of what is here were taken from the database.
    /// - Parameter items: whose rows they were. Should one come back, that is another folder: what is here of it, where nothing is sent from,
    ///   say, shows nothing of the cloud's any more.
    func rowsRemoved(of items: [ItemID] = []) {
        state.withLock { state in
            state.cloudVersion += 1
            state.complete = []
            for item in items {
                if let key = state.keys.removeValue(forKey: item) { state.folders[key] = nil }
            }
        }
    }

    /// - Parameter isSent: false when its row is written, or the sending was given up.
    func noteOwn(_ item: ItemID, isSent: Bool) {
        state.withLock { state in
            if isSent { state.own.insert(item) } else { state.own.remove(item) }
        }
    }

    /// The engine is about to publish these, which have no rows.
    func willAppear(_ staged: some Sequence<(item: ItemID, name: String)>) {
        state.withLock { state in for one in staged { state.appearing[one.item] = one.name } }
    }

    /// One of these will not be published. A folder is the inode that it was: a lookup has made it before it was staged, or it is back.
    func discarded(_ staged: String) {
        let isFolder = state.withLock { state in
            if !state.appearing.isEmpty { state.appearing = state.appearing.filter { $0.value != staged } }
            return state.staged[staged] != nil
        }
        // Perhaps it was published, and only that could not be told.
        guard isFolder, replica.staging.has(staged) else { return }
        state.withLock { state in
            guard let one = state.staged.removeValue(forKey: staged), state.keys[one.item] == one.key else { return }
            state.folders[one.key] = nil
            state.keys[one.item] = one.former
            guard let former = one.former else { return }
            state.folders[former] = one.item
            // What has come since was told of the other one.
            state.complete.remove(former)
        }
    }

    /// Their rows are written, or they get none.
    func haveAppeared() {
        state.withLock { state in
            state.staged = [:]
            if state.appearing.isEmpty { return }
            state.appearing = [:]
            state.recordings += 1
        }
    }

    /// Of those that the engine is publishing: whether it has been done. A program may have moved or removed it since, and its name is free then.
    /// Whoever looks a name up in a folder keeps the engine out of it meanwhile.
    private func isPublished(_ item: ItemID, _ appearing: [ItemID: String]) -> Bool {
        guard let staged = appearing[item] else { return false }
        return !replica.staging.has(staged)
    }

    private func isComplete(_ folder: InodeKey) -> Bool { state.withLock { $0.complete.contains(folder) } }

    // MARK: What the cloud alone has in them

    /// By name. Those without a name of their own come once.
    func entries(of folder: InodeKey) throws(ReplicaError) -> [CloudEntry] {
        guard let id = item(of: folder), !isComplete(folder) else { return [] }
        let isRoot = folder == replica.tree.rootKey
        // In this order: what is taken out of flight meanwhile has its row.
        let (here, appearing, version) = state.withLock { ($0.itemsHere, $0.appearing, $0.cloudVersion) }
        let found = try replica.database.cloudOnlyEntries(of: id)
        if found.isEmpty {
            state.withLock { state in
                if state.cloudVersion == version { state.complete.insert(folder) }
            }
        }
        var last: Name?
        return found.filter { entry in
            defer { last = entry.name }
            return entry.name != last && !here.contains(entry.id) && !isPublished(entry.id, appearing)
                && LocalOnly.reason(for: entry.name, isAtRoot: isRoot) == nil
        }
    }

    /// In a case-insensitive container what is only in the cloud, or about to come here, under a name that equals this one without its case.
    func name(like folded: FoldedName, in folder: InodeKey) throws(ReplicaError) -> Name? {
        let isRoot = folder == replica.tree.rootKey
        let known = isRoot ? ItemID.root : item(of: folder)
        let rows = known == nil ? try replica.database.synced(key: folder) : []
        guard let id = known ?? rows.first(where: { $0.content == .folder })?.id else { return nil }
        // What a lookup has made is seen on the disk, until it is gone from there.
        let (here, appearing) = state.withLock { ($0.itemsHere, $0.appearing) }
        let found = try replica.database.cloudOnly(folded: folded, in: id).first { item in
            !here.contains(item.id) && !isPublished(item.id, appearing)
                && LocalOnly.reason(for: item.place.name, isAtRoot: isRoot) == nil
        }
        return found?.place.name
    }

    func hasEntries(_ folder: InodeKey) throws(ReplicaError) -> Bool {
        guard let id = item(of: folder), !isComplete(folder) else { return false }
        let (here, appearing) = state.withLock { ($0.itemsHere, $0.appearing) }
        // What stays in the cloud by its name hinders nobody who removes the folder: the cloud itself will refuse that.
        return try replica.database.cloudOnlyEntries(of: id, limit: here.count + appearing.count + 1).contains {
            !here.contains($0.id) && !isPublished($0.id, appearing)
        }
    }

    // MARK: Making one

    /// Makes the cloud's item of that name be here.
    /// - Returns: whether there may be something of that name now that was not there before.
    func populate(_ folder: InodeKey, _ name: Name) throws(Errno) -> Bool {
        // By its name alone: a folder that was moved to where nothing is sent from keeps what the cloud has in it, until all of it is here.
        guard let id = item(of: folder), !isComplete(folder),
            LocalOnly.reason(for: name, isAtRoot: folder == replica.tree.rootKey) == nil
        else { return false }
        let remote: RemoteItem
        switch try begin(at: Place(parent: id, name: name)) {
        case .begun(let item): remote = item
        case .nothing: return false
        case .made: return true
        }
        defer { end(remote.id) }
        do throws(Errno) {
            try make(remote, in: folder, name)
        } catch {
            state.withLock { _ = $0.inFlight.remove(remote.id) }
            guard error != .fileExists else { return true }
            logger.error(
                "an item cannot be made here",
                metadata: ["name": "\(name)", "why": "\(error)"]
            )
            throw error
        }
        return true
    }

    private enum Beginning {
        /// This thread makes it.
        case begun(RemoteItem)
        /// The cloud alone has nothing of that name.
        case nothing
        /// It was here by now, and may have been moved or removed since.
        case made
    }

    private func begin(at place: Place) throws(Errno) -> Beginning {
        while true {
            let (recordings, appearing) = state.withLock { ($0.recordings, $0.appearing) }
            let found: RemoteItem?
            do { found = try replica.database.cloudOnly(at: place) } catch {
                logger.error("a folder cannot be populated", metadata: ["name": "\(place.name)", "why": "\(error)"])
                throw .ioError
            }
            guard let remote = found else { return .nothing }
            if isPublished(remote.id, appearing) { return .made }
            switch turn(remote.id, recordings) {
            case .mine: return .begun(remote)
            case .own: return .nothing
            case .over: return .made
            case .theirs(let semaphore):
                semaphore.wait()
                return .made
            case .unknown: continue
            }
        }
    }

    private enum Turn {
        case mine, own, over
        case theirs(DispatchSemaphore)
        /// It may have its row by now, and its name may be free again: who made it once more would bring back what a program has just renamed.
        case unknown
    }

    private func turn(_ item: ItemID, _ recordings: Int) -> Turn {
        state.withLock { state in
            if state.own.contains(item) { return .own }
            guard state.recordings == recordings else { return .unknown }
            if state.inFlight.insert(item).inserted {
                state.making[item] = []
                return .mine
            }
            guard state.making[item] != nil else { return .over }
            let semaphore = DispatchSemaphore(value: 0)
            state.making[item]?.append(semaphore)
            return .theirs(semaphore)
        }
    }

    private func end(_ item: ItemID) {
        for waiting in state.withLock({ $0.making.removeValue(forKey: item) }) ?? [] { waiting.signal() }
    }

    private func make(_ remote: RemoteItem, in folder: InodeKey, _ name: Name) throws(Errno) {
        // Whoever opens it at once finds its content, although its row is written later.
        if case .file(let file) = remote.content { known.note(file.revision, of: remote.id) }
        let parent = try replica.tree.openFolder(key: folder)
        try keepTime(of: folder, parent)
        let staged = try stage(remote)
        if let package = staged.package { packages.noteMade(package.key) }
        let (from, to) = (replica.staging.descriptor, parent.raw)
        do throws(Errno) {
            _ = try name.withCString { name throws(Errno) in
                try checked(clinux_rename_at(from, staged.name, to, name, UInt32(CLINUX_RENAME_NOREPLACE)))
            }
        } catch {
            try? replica.staging.remove(staged.name)
            throw error
        }
        guard var made = try replica.tree.observe(in: to, name) else { throw .noSuchFileOrDirectory }
        if let package = staged.package {
            made = package
            replica.folders.insert(made.key, parent: folder, name: name)
        }
        if made.kind == .folder {
            replica.folders.insert(made.key, parent: folder, name: name)
            folderAppeared(made.key, remote.id)
        }
        let entry = Made(remote: remote, state: made, place: LocalPlace(folder: folder, name: name))
        state.withLock { $0.made.append(entry) }
    }

    private func stage(_ remote: RemoteItem) throws(Errno) -> (name: String, package: LocalState?) {
        guard case .file(let file) = remote.content, file.isPackage else {
            return (try Preparation.stage(remote, in: replica), nil)
        }
        let staged = try PackageStaging.stage(remote, file, in: replica)
        return (staged.name, staged.state)
    }

    // MARK: Writing it down

    var hasMade: Bool { state.withLock { !$0.made.isEmpty } }

    func takeMade() -> [Made] {
        state.withLock { state in
            defer { state.made = [] }
            return state.made
        }
    }

    /// They wait for the next time.
    func notRecorded(_ made: [Made]) { state.withLock { $0.made.insert(contentsOf: made, at: 0) } }

    /// Their rows are written.
    func recorded(_ made: [Made]) {
        state.withLock { state in
            for one in made { state.inFlight.remove(one.remote.id) }
            state.recordings += 1
        }
    }

    // MARK: Times of folders

    /// That names come here which the folder has had all the time is no change of the folder.
    private func keepTime(of folder: InodeKey, _ descriptor: borrowing OwnedDescriptor) throws(Errno) {
        guard state.withLock({ $0.times[folder] == nil }) else { return }
        let modified = try replica.tree.observe(descriptor: descriptor.raw).modified
        state.withLock { state in
            if state.times[folder] == nil { state.times[folder] = modified }
        }
    }

    /// A program changed the folder: its time is that of this change.
    func folderChanged(_ folder: InodeKey) {
        state.withLock { state in
            if !state.times.isEmpty { state.times[folder] = nil }
        }
    }

    /// Sets the times again. Those of folders in which nothing was made since are forgotten.
    func restoreTimes(of made: [Made]) {
        let recent = Set(made.map(\.place.folder))
        let times = state.withLock { state in
            defer { state.times = state.times.filter { recent.contains($0.key) } }
            return state.times
        }
        for (key, time) in times {
            guard let folder = try? replica.tree.openFolder(key: key) else { continue }
            try? setModified(folder.raw, time)
        }
    }
}
