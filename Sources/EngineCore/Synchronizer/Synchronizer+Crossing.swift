import Reconciliation
import UbiquityModel

/// Names that items take from each other: who steps aside in the cloud, and who gets another name here.
extension Synchronizer {
    // MARK: Before they are sent

    /// Names that wait for each other: whatever has been refused its name since that is another's which is on the move as well, leaves its own
    /// first and gets the new one last. All of that is one commit, so that nobody ever sees the name between. If they do not meet in one,
    /// since one of them is long being read, it leaves its name alone, for one that it could keep.
    func steppingAside(_ sends: [PlannedSend]) -> [PlannedSend] {
        guard !crossings.isEmpty else { return sends }
        var first: [PlannedSend] = []
        var rest: [PlannedSend] = []
        var last: [PlannedSend] = []
        for send in sends {
            guard crossings[send.candidate.id] != nil, let (step, afterwards) = steps(of: send) else {
                rest.append(send)
                continue
            }
            first.append(PlannedSend(candidate: send.candidate, actions: [step]))
            if !leavesAlone(send.candidate) {
                last.append(PlannedSend(candidate: send.candidate, actions: afterwards))
            }
        }
        return first + rest + last
    }

    private func leavesAlone(_ candidate: Candidate) -> Bool { crossings[candidate.id, default: 0] > 5 }

    /// What somebody who makes room is called until it has the name that it is to get.
    func nameBetween(_ candidate: Candidate, in parent: ItemID, _ wanted: Name) -> Name? {
        guard leavesAlone(candidate) else { return TransitionalName.of(candidate.id) }
        return tracker.folderKey(of: parent).flatMap { tracker.secondPlace(for: wanted, in: $0, parent) }?.name
    }

    private func steps(of send: PlannedSend) -> (Send, [Send])? {
        guard let found = send.candidate.found, !send.candidate.givesWay, !send.isAnnouncement else { return nil }
        let target = Place(parent: found.parent, name: found.place.name)
        for action in send.actions {
            switch action {
            case .move(let place):
                // Where it is, unless that folder waits for it to get out.
                var parent = send.candidate.remote?.place.parent ?? place.parent
                if !isHere(folder: parent) { parent = place.parent }
                guard let name = nameBetween(send.candidate, in: parent, place.name) else { return nil }
                return (.move(Place(parent: parent, name: name)), send.actions)
            case .create where send.candidate.remote?.isAnnounced == true:
                // It is announced in the folder whose name it has by now, and that cannot go before it.
                return (.create, [.move(target)])
            case .create, .edit, .attributes, .delete, .revive: continue
            }
        }
        return nil
    }

    // MARK: When the cloud has answered

    func nameTaken(by rival: ItemID, _ candidate: Candidate, _ pass: Pass) throws {
        if candidate.isOnItsWay {
            // It is back where it was.
            candidate.isOnItsWay = false
            candidate.verdict = nil
        }
        if candidate.givesWay {
            // Others were quicker: then it is the next one.
            candidate.verdict = .later(.milliseconds(50))
        } else if let other = pass.candidates[rival], other.appears {
            // It comes, or comes back since others have changed it, and had the name first.
            candidate.applies = [.aside]
        } else if let other = pass.candidates[rival], other.found == nil, other.deletionIsProven {
            // Its deletion goes in this very pass. If this one lies in it there, that waits in turn.
            if let folders = folders(around: candidate, upTo: rival) {
                crossings[candidate.id, default: 0] += 1
                // It gets out in the commit in which all of them go, or not at all.
                for folder in folders { handle(.woken(.item(folder))) }
                handle(.pendingLoaded(folders, isLast: false))
            }
            candidate.verdict = .again
        } else if let other = pass.candidates[rival], other.found?.place != candidate.found?.place, isLeaving(other) {
            // That is sent in this very pass. If it waits for this one's name in turn, one of them takes another name on the way.
            crossings[candidate.id, default: 0] += 1
            crossings[rival, default: 0] += 1
            candidate.verdict = .later(.milliseconds(20))
        } else if let delay = try delay(ofLeaving: rival, candidate, pass) {
            candidate.verdict = .later(delay)
        } else if let known = try device.remote(rival), !known.isDeleted,
            try candidate.synced != nil || device.synced(rival) != nil
        {
            crossings[candidate.id] = nil
            candidate.applies = [.aside]
        } else {
            // The feed is about to say who it is: then they can be compared.
            candidate.verdict = .later(.milliseconds(50))
        }
    }

    /// Who had the name here as well has left it, and that is not told yet: because the content has to come first of a file that was renamed over
    /// another one and is not here, say. Whoever has the name by now waits for that, unless it may take for ever: for an author who is away.
    private func delay(ofLeaving rival: ItemID, _ candidate: Candidate, _ pass: Pass) throws -> Duration? {
        guard let row = try device.synced(rival), row.place == candidate.local?.place,
            !tracker.refusedMoves.contains(rival), crossings[candidate.id, default: 0] < 20
        else { return nil }
        if let other = pass.candidates[rival] {
            guard other.found?.place != candidate.found?.place else { return nil }
            switch other.verdict {
            case .parked, .failed: return nil
            case .later(let delay):
                guard delay <= .seconds(2) else { return nil }
                if let key = row.local?.key { tracker.waits(candidate.works, forContentOf: key) }
                return delay
            case .transferring: return .milliseconds(500)
            case .done, .sent, .again, .next, nil: break
            }
        }
        crossings[candidate.id, default: 0] += 1
        handle(.woken(.item(rival)))
        handle(.pendingLoaded([rival], isLast: false))
        return .milliseconds(20)
    }

    /// Its row outlives it until its deletion is sent: what has gone from the disk, is a package's, or lies where nothing is sent from.
    private func isHere(folder: ItemID) -> Bool {
        guard folder != .root else { return true }
        guard let key = tracker.folderKey(of: folder), let place = device.place(ofFolder: key) else { return false }
        return ((try? device.package(around: key)) ?? nil) == nil && tracker.localOnlyReason(at: place) == nil
    }

    /// - Returns: the folders in which it lies in the cloud, up to that one; `nil` if it does not lie in that one.
    private func folders(around candidate: Candidate, upTo folder: ItemID) -> [ItemID]? {
        var found: [ItemID] = []
        var next = candidate.remote?.place.parent
        // Rows could make a circle.
        while found.count < 1000, let item = next, item != .root {
            found.append(item)
            if item == folder { return found }
            next = ((try? device.remote(item)) ?? nil)?.place.parent
        }
        return nil
    }

    /// It is elsewhere here than in the cloud, because a program has moved it: not on its way to where the cloud has it, nor back there.
    private func isLeaving(_ candidate: Candidate) -> Bool {
        guard let place = candidate.local?.place, !candidate.isInTransit, !tracker.refusedMoves.contains(candidate.id),
            let known = candidate.agreed?.place ?? candidate.remote?.place
        else { return false }
        return place != known
    }

    /// From the name on the way it goes on at once, if not in the same commit.
    func noteName(_ name: Name, _ candidate: Candidate) {
        if TransitionalName.matches(name) {
            candidate.isOnItsWay = true
            candidate.verdict = .later(.milliseconds(50))
        } else {
            crossings[candidate.id] = nil
            if candidate.isOnItsWay { candidate.verdict = .sent }
            candidate.isOnItsWay = false
        }
    }
}
