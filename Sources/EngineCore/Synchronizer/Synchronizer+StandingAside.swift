import Logging
import Reconciliation
import UbiquityModel

/// Second names: what cannot have the name under which it is here gets the next free one.
extension Synchronizer {
    /// The local item takes the next free name, and is looked at anew under it.
    func moveAside(_ candidate: Candidate, _ pass: Pass) async {
        guard let found = candidate.found, let path = device.path(of: found.place) else {
            candidate.verdict = .later(.seconds(1))
            return
        }
        // That may last, whatever keeps the other one: not for ever.
        if isStillAnother(found.state, than: candidate.id, pass), putOffAsides[candidate.id, default: 0] < 20 {
            putOffAsides[candidate.id, default: 0] += 1
            candidate.verdict = .later(.milliseconds(50))
            return
        }
        putOffAsides[candidate.id] = nil
        guard let place = secondPlace(for: nameToNumber(found.place.name), in: found.place.folder, found.parent) else {
            candidate.verdict = .failed
            return
        }
        let knownMove = tracker.moves[found.state.key]
        guard let state = await perform(found.rename(to: place.name), path, candidate) else { return }
        noteOtherContent(at: found.place)
        if state.kind == .package {
            noteFolderMoved(state.key, to: place)
            // By that name it is one, and what lies in it is no item any more. Some of that gets its row in this very pass.
            if found.state.kind == .folder { lookAtItems(in: state.key, candidate.id, pass) }
        }
        if state.kind == .folder {
            noteFolderMoved(state.key, to: place)
            // What lies in it may be items' of the folder for which it was taken.
            let goesOnAsAnother = candidate.synced == nil || candidate.remote?.isDeleted ?? true
            if goesOnAsAnother { foldersToScan.insert(state.key) }
            // Rules that named what lies in it may do so no more.
            tracker.ignoring.changed.insert(state.key)
        }
        // A program's word of where it has moved it on meanwhile is newer.
        if tracker.moves[state.key] == knownMove { tracker.moves[state.key] = place }
        tracker.aspects[place, default: []].formUnion([.entry, .content])
        handle(.changed(place, isOpen: false))
        logger.notice("a second name was given", metadata: ["path": "\(path)", "name": "\(place.name)"])
        // What had taken the item's name is another one from here on, and no place leads to the item any more. So, perhaps, of a file with
        // several names: it is whatever has that name, not what it was.
        if let key = candidate.synced?.local?.key, key != state.key || state.hasOtherNames, candidate.remote != nil {
            candidate.verdict = .again
        }
        guard var row = candidate.synced, candidate.remote == nil else { return }
        // A restored server knows nothing of it, but others have it: it comes back as the item that it was.
        row.place.name = place.name
        row.local = LocalEvidence(state)
        row.local = row.local?.untrusted
        pass.setRow(row)
    }

    /// What has taken an item's name was another one's that is deleted in the cloud, or just had its deletion sent. As long as that one's row
    /// knows it by its inode, it would be taken for having gone on under the second name, and would go with it.
    private func isStillAnother(_ state: LocalState, than item: ItemID, _ pass: Pass) -> Bool {
        guard state.kind != .folder, !state.hasOtherNames else { return false }
        var isAnother = false
        for other in ((try? device.synced(key: state.key)) ?? []).map(\.id) where other != item {
            let candidate = pass.candidates[other]
            guard candidate?.found == nil, let remote = (try? device.remote(other)) ?? nil else { continue }
            if remote.isDeleted {
                // It has ended, and that is written down first.
                pass.removeRow(other)
                isAnother = true
            } else if candidate?.deletionIsProven ?? false, !heldDeletions.contains(other) {
                handle(.pendingLoaded([other], isLast: false))
                isAnother = true
            }
        }
        return isAnother
    }

    /// The item comes back as what the others have of it.
    func leave(_ candidate: Candidate, _ pass: Pass) async {
        await moveAside(candidate, pass)
        guard candidate.verdict == nil || candidate.verdict == .again else { return }
        pass.removeRow(candidate.id)
        if let key = candidate.found?.state.key { tracker.newItems.remove(key) }
        candidate.verdict = .again
    }

    private func lookAtItems(in folder: InodeKey, _ item: ItemID, _ pass: Pass) {
        let rows = ((try? device.syncedSubtree(of: item)) ?? []).map(\.id)
        let found = pass.all.filter { $0.found.map { tracker.lies($0.place.folder, in: folder) } ?? false }.map(\.id)
        handle(.pendingLoaded(rows + found, isLast: false))
    }

    /// The next name that is free, here and in the cloud.
    func secondPlace(for base: Name, in folder: InodeKey, _ parent: ItemID) -> LocalPlace? {
        tracker.secondPlace(for: base, in: folder, parent)
    }
}
