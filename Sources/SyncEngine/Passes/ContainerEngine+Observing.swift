import Driver
import EngineCore
import Reconciliation
import Replica
import SystemPackage
import UbiquityModel

/// From places and items to candidates: which item is it, and what do the three trees say of it?
///
/// For files the name wins: another inode at a synced name is new content of that name's item. Folders, and files whose old
/// name stayed free, follow their inode: they have moved (architecture section 4, "Safe saves").
extension ContainerEngine {
    func collect(_ work: Work, into pass: Pass) throws {
        switch work {
        case .place(let place): try collect(place, work, into: pass)
        case .item(let item): try collect(item, work, into: pass)
        }
    }

    // MARK: A place that a program changed

    private func collect(_ place: LocalPlace, _ work: Work, into pass: Pass) throws {
        guard pass.visitedPlaces.insert(place).inserted else { return }
        guard let parent = try parentItem(of: place, work, into: pass) else { return }
        let row = try replica.database.synced(at: Place(parent: parent, name: place.name))
        let state = try observe(place)
        if let path = path(of: place), let reason = localOnlyReason(place, path) {
            return try collectLocalOnly(place, state, row, reason, work, into: pass)
        }
        guard let state, state.kind != .other else {
            if let row { try collectAbsent(row, work, into: pass) }
            return
        }
        if let row, row.local?.key == state.key {
            return try found(row.id, place, parent, state, row, work, into: pass)
        }
        if let owner = try movedItem(state, to: place, nameIsTaken: row != nil) {
            if let row, row.id != owner.id { try collectAbsent(row, work, into: pass) }
            return try found(owner.id, place, parent, state, owner, work, into: pass)
        }
        if let row, kind(of: state) == row.content.kind {
            return try found(row.id, place, parent, state, row, work, into: pass)
        }
        if let row { try collectAbsent(row, work, into: pass) }
        try collectNew(place, parent, state, work, into: pass)
    }

    private func collectNew(_ place: LocalPlace, _ parent: ItemID, _ state: LocalState, _ work: Work, into pass: Pass) throws {
        let there = try replica.database.remote(at: Place(parent: parent, name: place.name))
        let hasOneName = state.linkCount == 1 || state.kind == .folder
        let id: ItemID
        if hasOneName, let known = newItems[state.key] {
            id = known
        } else if let announced = there.first(where: isOwnAnnouncement), pass.candidates[announced.id] == nil {
            // Announced before a restart: its content goes on from there.
            id = announced.id
        } else if let own = there.first(where: isOwnCommit), pass.candidates[own.id] == nil {
            id = own.id
        } else {
            id = .random()
        }
        if hasOneName { newItems[state.key] = id }
        try found(id, place, parent, state, nil, work, into: pass)
        guard let candidate = pass.candidates[id] else { return }
        candidate.rival = there.first { !$0.isDeleted && !$0.isAnnounced && $0.id != id }
        candidate.remote = try replica.database.remote(id)
    }

    /// An item of which this device has announced name and size, and never sent the content.
    func isOwnAnnouncement(_ remote: RemoteItem) -> Bool {
        guard remote.isAnnounced, !remote.isDeleted, remote.author == deviceName else { return false }
        return (try? replica.database.synced(remote.id)) ?? nil == nil
    }

    /// A new file that this device has sent, whose commit was not answered.
    private func isOwnCommit(_ remote: RemoteItem) -> Bool {
        guard !remote.isDeleted, sentRevision(remote) != nil else { return false }
        return (try? replica.database.synced(remote.id)) ?? nil == nil
    }

    /// The cloud's current revision, if it is one that this device has sent and was not told of.
    private func sentRevision(_ remote: RemoteItem) -> RevisionID? {
        guard let sent = sending[remote.id], case .file(let file) = remote.content, file.content == sent.content,
            file.revision == sent.revision
        else { return nil }
        return sent.revision
    }

    /// What both sides agree on: the row, or what was sent since then and has arrived. Of which bytes the file here has by now
    /// nothing is known in that case.
    private func agreedRow(_ row: SyncedItem?, _ remote: RemoteItem?) -> SyncedItem? {
        guard let remote, !remote.isDeleted, sentRevision(remote) != nil, row?.content != remote.content else { return row }
        var agreed = row ?? SyncedItem(remote, local: nil)
        agreed.content = remote.content
        agreed.local = nil
        return agreed
    }

    /// The item of a synced row whose name is free now: it was deleted, or its inode is elsewhere.
    private func collectAbsent(_ row: SyncedItem, _ work: Work, into pass: Pass) throws {
        if let key = row.local?.key, let place = currentPlace(of: key), !pass.visitedPlaces.contains(place) {
            try collect(place, work, into: pass)
            if let candidate = pass.candidates[row.id], candidate.found != nil { return }
        }
        let candidate = pass.candidate(row.id, work)
        guard candidate.found == nil else { return }
        candidate.remote = try replica.database.remote(row.id)
        candidate.synced = agreedRow(row, candidate.remote)
        candidate.deletionIsProven = try isProvenDeletion(row)
    }

    private func isProvenDeletion(_ row: SyncedItem) throws -> Bool {
        if replica.deletions.contains(row.id) { return true }
        if let folder = folderKey(of: row.place.parent), vanished.contains(LocalPlace(folder: folder, name: row.place.name)) {
            return true
        }
        guard let key = row.local?.key else { return false }
        // Seen by the driver since the start: unlinked, or renamed to a name that continues another item.
        return host.wasDeleted(key) || moves[key] != nil
    }

    private func found(
        _ id: ItemID,
        _ place: LocalPlace,
        _ parent: ItemID,
        _ state: LocalState,
        _ row: SyncedItem?,
        _ work: Work,
        into pass: Pass
    ) throws {
        let candidate = pass.candidate(id, work)
        candidate.remote = try replica.database.remote(id)
        let row = agreedRow(row, candidate.remote)
        candidate.synced = row
        let marks = aspects[place] ?? []
        guard let (content, extended) = try details(place, state, row, marks) else {
            candidate.verdict = .again
            return
        }
        candidate.found = Candidate.Found(
            place: place,
            parent: parent,
            state: state,
            content: content,
            attributes: ItemAttributes(modified: state.modified, mode: state.mode, extended: extended),
            timeWasSet: state.kind != .folder || row == nil || marks.contains(.attributes)
        )
    }

    /// What has to be opened to be known; `nil` when the name stands for something else by now.
    private func details(
        _ place: LocalPlace,
        _ state: LocalState,
        _ row: SyncedItem?,
        _ marks: LocalChange.Aspects
    ) throws -> (LocalContent, [[UInt8]: [UInt8]])? {
        if state.kind == .symlink {
            guard let target = try unlessGone({ () throws(Errno) in try self.target(of: place) }) else { return nil }
            return (.symlink(target: target), [:])
        }
        guard let extended = try unlessGone({ () throws(Errno) in try self.extendedAttributes(of: place, state.key) }) else {
            return nil
        }
        if state.kind == .folder { return (.folder, extended) }
        if let placeholder = state.placeholder { return (.dataless(placeholder.revision), extended) }
        return (isUnchanged(state, row, marks) ? .unchanged : .unread(size: state.size), extended)
    }

    private func target(of place: LocalPlace) throws(Errno) -> [UInt8] {
        let folder = try replica.tree.openFolder(key: place.folder)
        return try replica.tree.readLink(in: folder.raw, place.name)
    }

    private func extendedAttributes(of place: LocalPlace, _ key: InodeKey) throws(Errno) -> [[UInt8]: [UInt8]] {
        let folder = try replica.tree.openFolder(key: place.folder)
        let file = OwnedDescriptor(try replica.tree.openPath(in: folder.raw, place.name))
        if try InodeKey(descriptor: file.raw) != key { throw .stale }
        return try replica.tree.extendedAttributes(descriptor: file.raw)
    }

    private func unlessGone<Value>(_ body: () throws(Errno) -> Value) throws(Errno) -> Value? {
        do throws(Errno) { return try body() } catch {
            if error == .noSuchFileOrDirectory || error == .stale { return nil }
            throw error
        }
    }

    /// Whether a whole file still has the bytes of its synced row. An inode's change time moves with its name and mode as well:
    /// then the driver's word counts, which sees every write.
    private func isUnchanged(_ state: LocalState, _ row: SyncedItem?, _ marks: LocalChange.Aspects) -> Bool {
        guard let local = row?.local, !local.isDataless, local.key == state.key, local.size == state.size else { return false }
        if local.modified == state.modified, local.changed == state.changed { return true }
        return !marks.isEmpty && !marks.contains(.content)
    }

    // MARK: An item that others changed

    private func collect(_ item: ItemID, _ work: Work, into pass: Pass) throws {
        guard pass.visitedItems.insert(item).inserted else { return }
        if let row = try replica.database.synced(item) {
            if let place = try localPlace(of: row) {
                try collect(place, work, into: pass)
                if let candidate = pass.candidates[item] {
                    candidate.works.insert(work)
                    return
                }
            }
            let candidate = pass.candidate(item, work)
            candidate.remote = try replica.database.remote(item)
            candidate.synced = agreedRow(row, candidate.remote)
            candidate.deletionIsProven = try isProvenDeletion(row)
            return
        }
        let candidate = pass.candidate(item, work)
        guard candidate.found == nil else { return }
        candidate.remote = try replica.database.remote(item)
        guard let remote = candidate.remote, !remote.isDeleted else { return }
        // Folders first, and whatever of this device has the name already.
        if remote.place.parent != .root, folderKey(of: remote.place.parent) == nil {
            try collect(.item(remote.place.parent), into: pass)
        }
        if let folder = folderKey(of: remote.place.parent) {
            let place = LocalPlace(folder: folder, name: remote.place.name)
            if try observe(place) != nil { try collect(.place(place), into: pass) }
        }
    }

    /// Where a synced item is in the backing tree, as far as is known.
    func localPlace(of row: SyncedItem) throws -> LocalPlace? {
        if let key = row.local?.key, let place = currentPlace(of: key) { return place }
        return folderKey(of: row.place.parent).map { LocalPlace(folder: $0, name: row.place.name) }
    }

    private func currentPlace(of key: InodeKey) -> LocalPlace? {
        if let entry = replica.folders.entry(key) { return LocalPlace(folder: entry.parent, name: entry.name) }
        return moves[key]
    }

    // MARK: Who is it?

    /// The item that a folder is; makes sure that a new one is examined before what lies in it.
    private func parentItem(of place: LocalPlace, _ work: Work, into pass: Pass) throws -> ItemID? {
        if place.folder == replica.tree.rootKey { return .root }
        let rows = try replica.database.synced(key: place.folder)
        if let row = rows.first(where: { $0.content == .folder }) { return row.id }
        guard let entry = replica.folders.entry(place.folder) else { return nil }
        try collect(.place(LocalPlace(folder: entry.parent, name: entry.name)), into: pass)
        if let continued = pass.all.first(where: { $0.found?.state.key == place.folder }) { return continued.id }
        return newItems[place.folder]
    }

    /// The item that this inode was, if it has moved here.
    private func movedItem(_ state: LocalState, to place: LocalPlace, nameIsTaken: Bool) throws -> SyncedItem? {
        for row in try replica.database.synced(key: state.key) {
            if state.kind == .folder { return row.content == .folder ? row : nil }
            guard !nameIsTaken, row.content.kind == kind(of: state) else { continue }
            guard let folder = folderKey(of: row.place.parent) else { return row }
            let old = LocalPlace(folder: folder, name: row.place.name)
            if try old == place || observe(old) == nil { return row }
        }
        return nil
    }

    private func kind(of state: LocalState) -> ItemKind? {
        switch state.kind {
        case .file: .file
        case .folder: .folder
        case .symlink: .symlink
        case .other: nil
        }
    }

    /// `nil`: nothing is there, or its folder is gone.
    func observe(_ place: LocalPlace) throws -> LocalState? {
        try unlessGone { () throws(Errno) in try self.state(at: place) } ?? nil
    }

    private func state(at place: LocalPlace) throws(Errno) -> LocalState? {
        let folder = try replica.tree.openFolder(key: place.folder)
        return try replica.tree.observe(in: folder.raw, place.name)
    }

    // MARK: What stays here

    func localOnlyReason(_ place: LocalPlace, _ path: ItemPath) -> LocalOnly.Reason? {
        if let reason = LocalOnly.reason(for: path) { return reason }
        if let database = LocalOnly.databaseOfSharedMemory(place.name),
            (try? observe(LocalPlace(folder: place.folder, name: database))) ?? nil != nil
        {
            return .sharedMemoryOfDatabase
        }
        return nil
    }

    /// An item that was moved to where nothing is sent from leaves the other devices; its content must be here first.
    private func collectLocalOnly(
        _ place: LocalPlace,
        _ state: LocalState?,
        _ row: SyncedItem?,
        _ reason: LocalOnly.Reason,
        _ work: Work,
        into pass: Pass
    ) throws {
        if let row, state == nil || row.local?.key != state?.key { try collectAbsent(row, work, into: pass) }
        guard let state else { return }
        for row in try replica.database.synced(key: state.key) where state.kind == .folder || state.linkCount == 1 {
            if state.isDataless {
                pass.verdicts[work] = .later(.seconds(1))
                fetchWhole(place)
                continue
            }
            let candidate = pass.candidate(row.id, work)
            candidate.synced = row
            candidate.remote = try replica.database.remote(row.id)
            candidate.deletionIsProven = true
            if state.kind == .folder { try collectChildrenLeaving(row.id, work, into: pass) }
        }
    }

    private func collectChildrenLeaving(_ folder: ItemID, _ work: Work, into pass: Pass) throws {
        for row in try replica.database.syncedChildren(of: folder) {
            if row.local?.isDataless == true {
                pass.verdicts[work] = .later(.seconds(1))
                if let key = folderKey(of: folder) { fetchWhole(LocalPlace(folder: key, name: row.place.name)) }
                continue
            }
            let candidate = pass.candidate(row.id, work)
            candidate.synced = row
            candidate.remote = try replica.database.remote(row.id)
            candidate.deletionIsProven = true
            if row.content == .folder { try collectChildrenLeaving(row.id, work, into: pass) }
        }
    }
}
