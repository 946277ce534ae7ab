import Reconciliation
import UbiquityModel

/// Others have given an item another name, or put it into another folder.
extension Synchronizer {
    /// A program has given the file that name as well, and it is nobody else's.
    private func isNamed(
        _ candidate: Candidate,
        _ found: Candidate.Found,
        _ place: LocalPlace,
        _ target: Place
    ) -> Bool {
        guard found.state.hasOtherNames,
            ((try? device.observe(place)) ?? nil)?.key == found.state.key
        else { return false }
        return (try? device.synced(at: target).allSatisfy { $0.id == candidate.id }) ?? false
    }

    func move(_ candidate: Candidate, to target: Place, _ pass: Pass) async {
        guard let found = candidate.found, var row = candidate.synced, let from = device.path(of: found.place),
            let folder = localFolder(of: target.parent, pass)
        else {
            // In the cloud only, it comes when somebody asks for its name: not if that is what this item is still called here.
            if isNothing(try device.synced(target.parent)), target.parent != .root {
                handle(.pendingLoaded([target.parent], isLast: false))
            }
            candidate.verdict = .later(.milliseconds(200))
            return
        }
        if found.state.kind == .folder, tracker.lies(folder, in: found.state.key) {
            // That one has to get out first, and is on its way out in the cloud.
            note(.stale, candidate)
            return
        }
        let place = LocalPlace(folder: folder, name: target.name)
        if isNamed(candidate, found, place, target) {
            if TransitionalName.matches(found.place.name) {
                // Nobody has given it that name.
                let mutation = Mutation.remove(
                    parent: found.place.folder,
                    name: found.place.name,
                    expecting: LocalEvidence(found.state),
                    isFolder: false
                )
                guard await performed(mutation, from, candidate, pass) else { return }
                pass.foldersTouched.insert(found.place.folder)
            }
            if tracker.moves[found.state.key] == found.place { tracker.moves[found.state.key] = nil }
            row.place = target
            pass.setRow(row)
            candidate.synced = row
            candidate.found?.place = place
            // What it was is the name of something new, if it is any.
            handle(.changed(found.place, isOpen: false))
            handle(.changed(place, isOpen: false))
            return
        }
        let mutation = Mutation.move(
            fromParent: found.place.folder,
            fromName: found.place.name,
            toParent: folder,
            toName: target.name,
            expecting: LocalEvidence(found.state)
        )
        let staleCount = staleCounts[candidate.id] ?? 0
        guard let result = await perform(mutation, result: from, candidate) else {
            // However often that has been so: room may be made only now, when a claim has ended, say.
            guard staleCounts[candidate.id] ?? 0 > staleCount else { return }
            if let remote = candidate.remote, remote.isAnnounced,
                isTaken(place, target)
            {
                // An announcement claims no name: it goes there, or to another, when its content is known.
                candidate.verdict = .parked
                return
            }
            await makeRoom(candidate, found, folder, target, pass)
            return
        }
        guard let state = result.state else { return }
        noteOtherContent(at: found.place)
        if state.kind == .folder { noteLeftUnread(state.key, from: found.place.folder) }
        if state.kind == .folder || state.kind == .package { noteFolderMoved(state.key, to: place) }
        // Attributes that were set just before were, or will be, reported under the old name. (Of a folder all are compared but the time, which
        // is another one wherever something was put into it.)
        let marks = state.kind == .folder ? tracker.aspects[found.place] ?? [] : .attributes
        if !marks.isEmpty { tracker.aspects[place, default: []].formUnion(marks) }
        handle(.changed(place, isOpen: false))
        tracker.refusedMoves.remove(candidate.id)
        row.place = target
        if result.isUnchanged {
            // What a program has set of a folder's or a placeholder's attributes since the look is in its change time, and compared by nobody.
            row.local = LocalEvidence(unheard: state)
        } else {
            // Written to meanwhile: what is known of the old bytes is known no more.
            noteWritten(place)
        }
        pass.setRow(row)
        candidate.synced = row
        candidate.found?.place = place
        candidate.found?.state = state
        pass.foldersTouched.formUnion([found.place.folder, folder])
        hurryWhoWaits(for: found.place)
        if tracker.moves[state.key] == found.place { tracker.moves[state.key] = nil }
    }

    /// Unless a program has moved it on meanwhile: its word is the newer one.
    func noteFolderMoved(_ key: InodeKey, to place: LocalPlace) {
        let known = device.place(ofFolder: key)
        if isStill(key, at: place) { device.folders.note(key, at: place, unlessMovedFrom: known) }
    }
}
