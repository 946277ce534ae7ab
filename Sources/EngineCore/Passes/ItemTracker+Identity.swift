import Reconciliation
package import UbiquityModel

/// Which item is it that lies at a place, and where does an item lie?
extension ItemTracker {
    // MARK: Where is it?

    /// Where a synced item is in the backing tree, as far as is known.
    package func localPlace(of row: SyncedItem) throws -> LocalPlace? {
        if let key = row.local?.key, let place = currentPlace(of: key) { return place }
        return folderKey(of: row.place.parent).map { LocalPlace(folder: $0, name: row.place.name) }
    }

    /// Where the cloud has it, if its inode is there: it was moved here, and that was not recorded.
    func placeByRemote(_ row: SyncedItem) throws -> LocalPlace? {
        guard let key = row.local?.key, let remote = try view.remote(row.id), !remote.isDeleted,
            remote.place != row.place, let folder = folderKey(of: remote.place.parent)
        else { return nil }
        let place = LocalPlace(folder: folder, name: remote.place.name)
        guard try view.observe(place)?.key == key,
            // By a further name, which is another item's, it is there without having moved.
            try view.synced(key: key).allSatisfy({ $0.id == row.id || $0.place != remote.place })
        else { return nil }
        moves[key] = place
        return place
    }

    /// Where what was sent as the item, without an answer, has gone since. Its row tells of what that had replaced, and where that is missed
    /// nothing says that the item goes on.
    func placeSentAs(_ row: SyncedItem) throws -> LocalPlace? {
        guard !sentAs.isEmpty else { return nil }
        for key in sentAs.filter({ $0.value == row.id }).keys.sorted() where key != row.local?.key {
            if let place = moves[key], try view.observe(place)?.key == key { return place }
        }
        return nil
    }

    package func currentPlace(of key: InodeKey) -> LocalPlace? {
        if let place = view.place(ofFolder: key) { return place }
        return moves[key]
    }

    /// Where the inode of a row is; `nil` as well if it has gone on as another item, of which there is a row by now.
    package func ownPlace(of row: SyncedItem) throws -> LocalPlace? {
        guard let key = row.local?.key, let place = try localPlace(of: row) else { return nil }
        if try view.synced(key: key).allSatisfy({ $0.id == row.id }) { return place }
        return folderKey(of: row.place.parent) == place.folder && row.place.name == place.name ? place : nil
    }

    /// The local folder of a synced folder item; `nil` while it is not here.
    package func folderKey(of item: ItemID) -> InodeKey? { folderKey(of: item, below: 1000) }

    /// - Parameter levels: that are followed, since rows could make a circle.
    private func folderKey(of item: ItemID, below levels: Int) -> InodeKey? {
        if item == .root { return view.rootKey }
        guard let row = try? view.synced(item) else {
            // A new one, of which the cloud has not been told, or has not answered: what lies in it may have its row already.
            return newItems.key(of: item).flatMap { view.place(ofFolder: $0) == nil ? nil : $0 }
        }
        guard case .folder = row.content, let key = row.local?.key else { return nil }
        // A backup that was restored has another inode under its name: what lies in that is not missed.
        guard view.place(ofFolder: key) == nil, levels > 0,
            let folder = folderKey(of: row.place.parent, below: levels - 1),
            let state = (try? view.observe(LocalPlace(folder: folder, name: row.place.name))) ?? nil,
            state.kind == .folder, madeFolders[state.key] == nil, (try? view.synced(key: state.key).isEmpty) ?? false
        else { return key }
        return state.key
    }

    // MARK: Who is it?

    /// The item that a folder is; makes sure that a new one is examined before what lies in it.
    func parentItem(of place: LocalPlace, _ work: Work, into pass: Pass) throws -> ItemID? {
        if let known = pass.parents[place.folder] { return known }
        let parent = try parentItem(ofChildrenIn: place.folder, work, into: pass)
        pass.parents[place.folder] = parent
        return parent
    }

    private func parentItem(ofChildrenIn folder: InodeKey, _ work: Work, into pass: Pass) throws -> ItemID? {
        if let known = try knownItem(of: folder) { return known }
        guard let own = view.place(ofFolder: folder) else { return nil }
        try collect(.place(own), into: pass)
        if let continued = pass.all.first(where: { $0.found?.state.key == folder && !$0.isIgnored }) {
            return continued.id
        }
        // What was sent as that item has come here from the cloud as another folder: what lies in this one is none of its items.
        guard let item = newItems[folder], try view.synced(item)?.local?.key ?? folder == folder else { return nil }
        return item
    }

    /// The item that this inode was, if it has moved here.
    func movedItem(_ state: LocalState, to place: LocalPlace, nameIsTaken: Bool) throws -> SyncedItem? {
        for row in try view.synced(key: state.key) {
            if state.kind == .folder { return row.content == .folder ? row : nil }
            guard !nameIsTaken, row.content.kind == kind(of: state), !isSentAsAnother(row.id, than: state.key) else {
                continue
            }
            if try isThereInTheCloud(row, place), try !isFurtherName(place, of: state, row) { return row }
            if try !hasSuccessor(row, besides: place) { return row }
        }
        return nil
    }

    /// By another of its names the file is known to have gone elsewhere, and something else has the item's own: as in `livesElsewhere`, that goes
    /// on as the item, if it can, also if the cloud has moved the item to this very name. Else the item were at both for ever.
    private func isFurtherName(_ place: LocalPlace, of state: LocalState, _ row: SyncedItem) throws -> Bool {
        guard state.hasOtherNames, let moved = moves[state.key], moved != place,
            let folder = folderKey(of: row.place.parent),
            let own = try view.observe(LocalPlace(folder: folder, name: row.place.name))
        else { return false }
        return own.key != state.key
    }

    /// Another file has gone on as the item, and that was sent. Whether it has arrived is not known: then this one is new.
    private func isSentAsAnother(_ item: ItemID, than key: InodeKey) -> Bool {
        sentAs.contains { $0.value == item && $0.key != key }
    }

    /// Whether something is at the item's old name that goes on as this item.
    func hasSuccessor(_ row: SyncedItem, besides place: LocalPlace) throws -> Bool {
        guard let folder = folderKey(of: row.place.parent) else { return false }
        let old = LocalPlace(folder: folder, name: row.place.name)
        guard old != place, let successor = try view.observe(old) else { return false }
        // A folder, say, does not go on as the file that had its name; nor does another item that belongs there.
        guard kind(of: successor) == row.content.kind else { return false }
        return try !view.synced(key: successor.key).contains { $0.id != row.id && $0.place == row.place }
    }

    /// The item of a file that moved here, which is not sent yet, and that was replaced since: the name goes on with it.
    func movedItem(replacedBy state: LocalState, at place: LocalPlace) throws -> SyncedItem? {
        for key in moves.keys(at: place) where key != state.key {
            let row = try view.synced(key: key).first { $0.content != .folder && $0.content.kind == kind(of: state) }
            if let row, try !hasSuccessor(row, besides: place) { return row }
        }
        return nil
    }

    /// The item that made room for another and is to go on from here. Whatever has its old name by now is that other one. Its inode may be
    /// one that is not written down yet.
    func itemInTransit(_ state: LocalState, at place: LocalPlace) throws -> SyncedItem? {
        guard let item = TransitionalName.item(of: place.name), let own = try view.synced(item),
            own.content.kind == kind(of: state)
        else { return nil }
        guard let key = own.local?.key, key != state.key else { return own }
        for elsewhere in [currentPlace(of: key), try localPlace(of: own)] {
            if let elsewhere, try view.observe(elsewhere)?.key == key { return nil }
        }
        // Where a folder was set back to a moment at which names changed, no inode is known: the item is what has its name.
        if own.place.name != place.name, let home = try localPlace(of: own), let there = try view.observe(home),
            kind(of: there) == own.content.kind, try view.synced(key: there.key).isEmpty
        {
            return nil
        }
        return own
    }

    /// Whether an inode is of the row's kind, as far as that cannot change: where a tree was set back, what has its number may be another one.
    func canBe(_ row: SyncedItem, _ state: LocalState) -> Bool {
        switch (row.content.kind, state.kind) {
        case (.file, .file), (.symlink, .symlink), (.folder, .folder), (.folder, .package), (.package, .package),
            (.package, .folder):
            true
        default: false
        }
    }

    func kind(of state: LocalState) -> ItemKind? {
        switch state.kind {
        case .file: .file
        case .folder: .folder
        case .symlink: .symlink
        case .package: .package
        case .other: nil
        }
    }
}
