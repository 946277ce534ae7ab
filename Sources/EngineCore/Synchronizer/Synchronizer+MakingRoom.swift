import Logging
import UbiquityModel

/// An item is to come where another one still is: that goes out of the way, under a name that is never taken for a user's.
extension Synchronizer {
    /// The name that an item shall get is another's, which is to move as well: two that swapped names wait for each other. One of
    /// them goes out of the way, under a name that is never taken for a user's.
    func makeRoom(
        _ candidate: Candidate,
        _ found: Candidate.Found,
        _ folder: InodeKey,
        _ target: Place,
        _ pass: Pass
    ) async {
        let place = LocalPlace(folder: folder, name: target.name)
        guard let row = candidate.synced, let occupant = (try? device.observe(place)) ?? nil else { return }
        guard !TransitionalName.matches(found.place.name) else {
            // It is out of the way already. Only what claims no name would never leave.
            await withdrawAnnounced(occupant, place, target, pass)
            return
        }
        if occupant.kind == .other {
            noteProblem(candidate, "something that cannot be synced has its name")
            candidate.verdict = .failed
            return
        }
        if let unheardOf = unheardOf(occupant) {
            await moveAside(unheardOf, place, target, occupant, pass)
            return
        }
        if let (row, to) = renamedMeanwhile(occupant, place, target, pass) {
            await follow(row, to, place, target, occupant, pass)
            return
        }
        guard leaving(occupant, place, target) != nil || isAbandoned(occupant, with: found) else {
            // Then there is room the next time.
            if await !withdrawAnnounced(occupant, place, target, pass) { lookAtStranger(occupant, place, pass) }
            return
        }
        // Into the folder where it is to be: the occupant may be a folder that it lies in, and has to get out of.
        guard let moved = await moveOutOfTheWay(row, found.place, found.state, to: folder, target.parent, pass) else {
            return
        }
        candidate.found?.place = moved.place
        candidate.found?.state = moved.state
        candidate.synced = pass.syncedRow(candidate.id)
    }

    /// Something is about to come where an item still is that has to leave, and cannot: into a folder of its own name, say, that is not
    /// here yet.
    func clear(_ place: LocalPlace, of target: Place, _ pass: Pass) async {
        guard let occupant = (try? device.observe(place)) ?? nil else { return }
        if let (row, to) = renamedMeanwhile(occupant, place, target, pass) {
            await follow(row, to, place, target, occupant, pass)
        } else if let row = leaving(occupant, place, target) ?? abandoned(occupant, place, target) {
            let moved = await moveOutOfTheWay(row, place, occupant, to: place.folder, target.parent, pass)
            if let moved, let candidate = pass.candidates[row.id], candidate.found?.state.key == occupant.key,
                candidate.remote?.isDeleted ?? false
            {
                // It is taken away in this very pass, if it is empty by then.
                candidate.found?.place = moved.place
                candidate.found?.state = moved.state
                candidate.synced = pass.syncedRow(row.id)
            }
        } else if await withdrawAnnounced(occupant, place, target, pass) {
            return
        } else if let row = unheardOf(occupant) {
            await moveAside(row, place, target, occupant, pass)
        } else {
            lookAtStranger(occupant, place, pass)
        }
    }

    /// What has the name is no item that this device knows of, and was not looked at as one: it is told of, or gets another name.
    private func lookAtStranger(_ occupant: LocalState, _ place: LocalPlace, _ pass: Pass) {
        // What this very pass has looked at comes again by itself: a program may be writing it.
        let rows = (try? device.synced(key: occupant.key)) ?? []
        // By another of its names it may be an item all the same.
        guard rows.isEmpty || occupant.hasOtherNames && !rows.contains(where: { leads($0, to: place) }),
            !pass.all.contains(where: { $0.found?.place == place && $0.found?.state.key == occupant.key })
        else { return }
        handle(.changed(place, isOpen: false))
    }

    private func leads(_ row: SyncedItem, to place: LocalPlace) -> Bool {
        row.place.name == place.name && tracker.folderKey(of: row.place.parent) == place.folder
    }

    /// An announcement claims no name. It comes again when its content is known, under the name that it gets then.
    /// - Returns: false for anything else, and while there is something about it that is still to be sent.
    @discardableResult
    private func withdrawAnnounced(
        _ occupant: LocalState,
        _ place: LocalPlace,
        _ target: Place,
        _ pass: Pass
    ) async -> Bool {
        guard let row = announced(occupant, target), tracker.aspects[place] == nil, let path = device.path(of: place)
        else { return false }
        let mutation = Mutation.remove(
            parent: place.folder,
            name: place.name,
            expecting: LocalEvidence(occupant),
            isFolder: false
        )
        if case .success? = await act(mutation, at: path) {
            pass.removeRow(row.id)
            pass.foldersTouched.insert(place.folder)
        }
        return true
    }

    /// A restored server knows nothing of the item, whose content is not here: who has that brings it back under the name that it gets then.
    private func unheardOf(_ occupant: LocalState) -> SyncedItem? {
        guard occupant.isDataless else { return nil }
        let rows = (try? device.synced(key: occupant.key)) ?? []
        return rows.first { ((try? device.remote($0.id)) ?? nil) == nil }
    }

    private func moveAside(
        _ row: SyncedItem,
        _ from: LocalPlace,
        _ place: Place,
        _ known: LocalState,
        _ pass: Pass
    ) async {
        guard let path = device.path(of: from), let to = secondPlace(for: from.name, in: from.folder, place.parent)
        else { return }
        let mutation = Mutation.move(
            fromParent: from.folder,
            fromName: from.name,
            toParent: to.folder,
            toName: to.name,
            expecting: LocalEvidence(known)
        )
        guard case .success(let result)? = await act(mutation, at: path), let state = result.state else {
            return
        }
        var row = row
        // A program's move, which nobody can be told, is no part of what was agreed on.
        if row.place == place { row.place.name = to.name }
        // What was not compared with the row is no more known to be what the row says than before.
        if result.isUnchanged, row.local?.describes(known) ?? false { row.local = LocalEvidence(unheard: state) }
        tracker.moves[state.key] = to
        noteWritten(to)
        pass.setRow(row)
        pass.foldersTouched.insert(from.folder)
        logger.notice("a second name was given", metadata: ["path": "\(path)", "name": "\(to.name)"])
    }

    /// The item of which only name and size are known, and which is there.
    private func announced(_ occupant: LocalState, _ target: Place) -> SyncedItem? {
        guard let placeholder = occupant.placeholder else { return nil }
        let rows = (try? device.synced(key: occupant.key)) ?? []
        return rows.first { row in
            guard row.place == target, let remote = (try? device.remote(row.id)) ?? nil else { return false }
            return remote.isAnnounced && !remote.isDeleted && remote.content.revision == placeholder.revision
        }
    }

    /// The item that is there and has another place in the cloud.
    private func leaving(_ occupant: LocalState, _ place: LocalPlace, _ target: Place) -> SyncedItem? {
        var rows = (try? device.synced(key: occupant.key)) ?? []
        // A backup that was restored has the same names and other inodes.
        if rows.isEmpty {
            // Not if that item's file is known to have gone elsewhere: then a program's new file has its name.
            let named = (try? tracker.rows(at: place, in: target.parent, nil)) ?? []
            rows = named.prefix(1).filter { (try? tracker.isElsewhere($0, than: place)) == false }
        }
        return rows.first { row in
            // What was on its way already, a program may have renamed.
            guard row.place == target || TransitionalName.matches(row.place.name),
                let remote = (try? device.remote(row.id)) ?? nil
            else { return false }
            // Where it is only on the way there, too, by this device's own sending, it goes from here when it is known where to.
            return !remote.isDeleted && remote.place != target && !TransitionalName.matches(remote.place.name)
        }
    }

    /// Others have deleted the folder that is there, after they had moved out of it what is still in it here: perhaps to where the other one of
    /// its name is about to come, and then neither that one, nor this one's going, nor the move can be the first.
    private func abandoned(_ occupant: LocalState, _ place: LocalPlace, _ target: Place) -> SyncedItem? {
        guard occupant.kind == .folder else { return nil }
        var rows = (try? device.synced(key: occupant.key)) ?? []
        if rows.isEmpty { rows = Array(((try? tracker.rows(at: place, in: target.parent, occupant)) ?? []).prefix(1)) }
        guard let row = rows.first(where: { $0.content == .folder }), !tracker.revivals.contains(row.id),
            let remote = (try? device.remote(row.id)) ?? nil, remote.isDeleted
        else { return nil }
        let lay = (try? device.syncedSubtree(of: row.id)) ?? []
        let hasSomethingMoved = lay.contains { item in
            guard let remote = (try? device.remote(item.id)) ?? nil, !remote.isDeleted else { return false }
            return remote.place.parent != item.place.parent
        }
        return hasSomethingMoved ? row : nil
    }

    /// What goes on as the item of the name waits for a content that is not here, perhaps for weeks. Others have given that item another name,
    /// and this one to what is to come: for that nothing has to be known of the content.
    private func renamedMeanwhile(
        _ occupant: LocalState,
        _ place: LocalPlace,
        _ target: Place,
        _ pass: Pass
    ) -> (row: SyncedItem, to: Place)? {
        guard occupant.isDataless, let row = (try? tracker.rows(at: place, in: target.parent, occupant))?.first,
            row.content.kind == .file, let key = row.local?.key, key != occupant.key,
            pass.candidates[row.id]?.found == nil, !tracker.refusedMoves.contains(row.id),
            let remote = (try? device.remote(row.id)) ?? nil, !remote.isDeleted, remote.place != target,
            !TransitionalName.matches(remote.place.name)
        else { return nil }
        // Nor have others moved here what its inode was.
        let others = (try? device.synced(key: occupant.key)) ?? []
        let isTheirs = others.contains { ((try? device.remote($0.id)) ?? nil)?.place == target }
        return isTheirs ? nil : (row, remote.place)
    }

    private func follow(
        _ row: SyncedItem,
        _ to: Place,
        _ place: LocalPlace,
        _ target: Place,
        _ occupant: LocalState,
        _ pass: Pass
    ) async {
        if let folder = localFolder(of: to.parent, pass),
            isNothing(try device.observe(LocalPlace(folder: folder, name: to.name)))
        {
            _ = await moveOutOfTheWay(row, place, occupant, to: folder, to.parent, pass, as: to.name)
        } else {
            // A second name, until that one is free.
            await moveAside(row, place, target, occupant, pass)
        }
    }

    /// Others have deleted the folder, after they had taken out of it what is to get its name: that has to get out here as well.
    private func isAbandoned(_ occupant: LocalState, with found: Candidate.Found) -> Bool {
        guard occupant.kind == .folder, tracker.lies(found.place.folder, in: occupant.key),
            let item = (try? tracker.knownItem(of: occupant.key)) ?? nil
        else { return false }
        return ((try? device.remote(item)) ?? nil)?.isDeleted ?? false
    }

    /// The row goes along: under the name that it leaves, another item is about to be.
    private func moveOutOfTheWay(
        _ row: SyncedItem,
        _ from: LocalPlace,
        _ known: LocalState,
        to folder: InodeKey,
        _ parent: ItemID,
        _ pass: Pass,
        as name: Name? = nil
    ) async -> (place: LocalPlace, state: LocalState)? {
        guard let name = name ?? TransitionalName.of(row.id), let path = device.path(of: from) else { return nil }
        let mutation = Mutation.move(
            fromParent: from.folder,
            fromName: from.name,
            toParent: folder,
            toName: name,
            expecting: LocalEvidence(known)
        )
        let knownMove = tracker.moves[known.key]
        guard case .success(let result)? = await act(mutation, at: path), let state = result.state else {
            return nil
        }
        let place = LocalPlace(folder: folder, name: name)
        if state.kind == .folder { noteLeftUnread(state.key, from: from.folder) }
        if state.kind == .folder || state.kind == .package {
            noteFolderMoved(state.key, to: place)
        }
        if state.kind != .folder, tracker.moves[state.key] == knownMove { tracker.moves[state.key] = place }
        var row = row
        row.place = Place(parent: parent, name: name)
        // What was not compared with the row is no more known to be what the row says than before. A folder has no bytes.
        if result.isUnchanged, known.kind == .folder || row.local?.describes(known) ?? false {
            row.local = LocalEvidence(unheard: state)
        } else {
            noteWritten(place)
        }
        pass.setRow(row)
        pass.foldersTouched.formUnion([from.folder, folder])
        return (place, state)
    }
}
