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
        noteNamedLater(sends)
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

    private func leavesAlone(_ candidate: Candidate) -> Bool {
        crossings[candidate.id, default: 0] > 5 && !circling.contains(candidate.id)
    }

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
            case .create where send.candidate.isNamedLater: return (.create, [.move(target)])
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

    /// New folders whose names are those of deleted ones, which are not empty there before something of them is in the new ones. All of it is one
    /// commit, as far as that goes in one, or such a folder would keep the name between if this device never came back.
    private func noteNamedLater(_ sends: [PlannedSend]) {
        let deleted = Set(sends.lazy.filter(\.isDeletion).map(\.candidate.id))
        guard !deleted.isEmpty else { return }
        for send in sends {
            guard let holder = nameHolders[send.candidate.id], deleted.contains(holder) else { continue }
            send.candidate.isNamedLater =
                send.candidate.remote == nil && send.candidate.found?.state.kind == .folder
                && crossings[send.candidate.id, default: 0] > 1
        }
    }

    // MARK: When the cloud has answered

    /// As often as what others are to leave is waited for: about 16 seconds in all, besides what they themselves wait for.
    private static var mostCrossings: Int { 40 }

    /// So that what waits for each other goes in one commit.
    private func wake(_ items: [ItemID]) {
        for item in items { handle(.woken(.item(item))) }
        handle(.pendingLoaded(items, isLast: false))
    }

    /// As many as go in one commit.
    private static var wokenChildren: Int { 200 }

    func nameTaken(by rival: ItemID, _ candidate: Candidate, _ pass: Pass) throws {
        try noteBack(candidate, pass)
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
                wake(folders)
            } else if candidate.remote == nil, candidate.found?.state.kind == .folder, other.synced?.content == .folder
            {
                // What lies in that one there may have been moved into this one here.
                crossings[candidate.id, default: 0] += 1
                nameHolders[candidate.id] = rival
                wake([rival] + (try device.remoteChildren(of: rival).prefix(Self.wokenChildren).map(\.id)))
            }
            candidate.verdict = .again
        } else if let other = pass.candidates[rival], other.found?.place != candidate.found?.place, isLeaving(other),
            !other.waitsForPrograms
        {
            // That is sent in this very pass. If it waits for this one's name in turn, one of them takes another name on the way.
            crossings[candidate.id, default: 0] += 1
            crossings[rival, default: 0] += 1
            candidate.verdict = .later(Self.pause(until: other))
        } else if let delay = try delay(ofLeaving: rival, candidate, pass) {
            candidate.verdict = .later(delay)
        } else if let known = try device.remote(rival), !known.isDeleted,
            try candidate.synced != nil || device.synced(rival) != nil
                || crossings[candidate.id, default: 0] >= Self.mostCrossings
        {
            noteUncrossed(candidate.id)
            candidate.applies = [.aside]
        } else {
            if try device.remote(rival) == nil, isNeverTold(rival, candidate) {
                noteUncrossed(candidate.id)
                candidate.applies = [.aside]
                return
            }
            // The feed is about to say who it is: then they can be compared. (Not if it is none that ever comes here, as one that only its
            // case tells apart, in a folder that is made on request.)
            crossings[candidate.id, default: 0] += 1
            candidate.verdict = .later(.milliseconds(50))
        }
    }

    /// Whether who has the name is one that cannot be represented here: it never comes, and keeps the name. Of all others the feed tells within
    /// a moment, if it tells anything.
    private func isNeverTold(_ rival: ItemID, _ candidate: Candidate) -> Bool {
        let known = untoldHolders[candidate.id]
        let count = known?.rival == rival ? (known?.count ?? 0) + 1 : 1
        untoldHolders[candidate.id] = count > Self.mostUntold ? nil : (rival, count)
        return count > Self.mostUntold
    }

    private static var mostUntold: Int { 200 }

    /// Until one that is to be sent is looked at again: what is read, or waits for its turn to be, takes a while. All others are to meet this
    /// one in a pass.
    private static func pause(until other: Candidate) -> Duration {
        switch other.verdict {
        case .later(let delay) where delay > .seconds(2): .milliseconds(500)
        case .transferring: .milliseconds(500)
        case .later, .done, .sent, .again, .next, .parked, .failed, nil: .milliseconds(20)
        }
    }

    /// It had left its name in the same commit, and is back where it was: the cloud's word of what it was called between counts no more.
    func noteBack(_ candidate: Candidate, _ pass: Pass) throws {
        guard candidate.isOnItsWay else { return }
        candidate.isOnItsWay = false
        candidate.verdict = nil
        guard let known = try device.remote(candidate.id), !known.isDeleted else { return }
        // In an earlier commit it has not been put back by this one's answer.
        for index in pass.answered.indices.dropFirst(pass.answeredBefore)
        where pass.answered[index].id == candidate.id {
            guard TransitionalName.matches(pass.answered[index].place.name) else { continue }
            pass.answered[index].place = known.place
            candidate.remote = pass.answered[index]
            tracker.putBack[candidate.id] = pass.answered[index].position
            if var row = candidate.synced, TransitionalName.matches(row.place.name) {
                // What was announced has been created under that name, and is where it was announced. With the name in its row it would be
                // taken for what has made room here, and moved there.
                row.place = known.place
                candidate.synced = row
                pass.setRow(row)
            }
        }
    }

    /// Who had the name here as well has left it, and that is not told yet: because the content has to come first of a file that was renamed over
    /// another one and is not here, say. Whoever has the name by now waits for that, unless it may take for ever: for an author who is away.
    private func delay(ofLeaving rival: ItemID, _ candidate: Candidate, _ pass: Pass) throws -> Duration? {
        guard let row = try device.synced(rival), let place = candidate.local?.place,
            try row.place == place || isTwin(row, ofLeft: place),
            !tracker.refusedMoves.contains(rival), crossings[candidate.id, default: 0] < Self.mostCrossings,
            // Who has made room comes back to the name as soon as it is free.
            try !isBetween(row, pass)
        else { return nil }
        if let other = pass.candidates[rival], other.found?.place == candidate.found?.place { return nil }
        // Until it is closed, or quiet, or free, nothing of it is told.
        if let key = row.local?.key, device.hasWriter(key) { return .milliseconds(500) }
        let own = try pass.candidates[rival]?.found?.place ?? tracker.localPlace(of: row)
        if let path = own.flatMap({ device.path(of: $0) }), !device.mayRead(path) { return .milliseconds(500) }
        if let other = pass.candidates[rival] {
            switch other.verdict {
            case .parked, .failed: return nil
            case .later(let delay):
                // The claim has ended since. Or it waits for its turn to be sent.
                if delay == EngineCore.claimPause { return .milliseconds(other.waitsForPrograms ? 50 : 500) }
                guard delay <= .seconds(2) else { return nil }
                if let key = row.local?.key { tracker.waits(candidate.works, forContentOf: key) }
                return delay
            case .transferring: return .milliseconds(500)
            case .done, .sent, .again, .next, nil: break
            }
        }
        let attempts = crossings[candidate.id, default: 0] + 1
        crossings[candidate.id] = attempts
        wake([rival])
        return .milliseconds(20 * attempts)
    }

    /// The cloud has where it goes in it itself. If that is because a program has taken a folder out of it, and that is not told yet, it waits;
    /// else it goes back.
    func movesIntoItself(_ candidate: Candidate, _ pass: Pass) throws -> Verdict {
        try noteBack(candidate, pass)
        if crossings[candidate.id, default: 0] < Self.mostCrossings, let parent = candidate.found?.parent,
            let folder = try folderLeaving(candidate.id, from: parent, pass)
        {
            let attempts = crossings[candidate.id, default: 0] + 1
            crossings[candidate.id] = attempts
            circling.insert(candidate.id)
            wake([folder])
            return attempts > 5 ? .later(.milliseconds(20 * attempts)) : .again
        }
        noteUncrossed(candidate.id)
        tracker.refusedMoves.insert(candidate.id)
        return .again
    }

    /// - Returns: the first of a folder, and those that it lies in in the cloud, which lies there in that item and has left its place here.
    private func folderLeaving(_ item: ItemID, from folder: ItemID, _ pass: Pass) throws -> ItemID? {
        var next = folder
        // Rows could make a circle.
        for _ in 0..<1000 where next != .root && next != item {
            // In this very commit, but after this one.
            if pass.candidates[next]?.isOnItsWay ?? false { return next }
            guard let remote = try device.remote(next), let row = try device.synced(next) else { return nil }
            if row.place.parent == remote.place.parent, !tracker.refusedMoves.contains(next),
                let place = try tracker.ownPlace(of: row), try tracker.knownItem(of: place.folder) != row.place.parent
            {
                return next
            }
            next = remote.place.parent
        }
        return nil
    }

    /// In a container without case its name is the same, and nothing is there any more.
    private func isTwin(_ row: SyncedItem, ofLeft place: Place) throws -> Bool {
        guard row.place.parent == place.parent, row.place.name.folded == place.name.folded,
            let folder = tracker.folderKey(of: place.parent)
        else { return false }
        return try device.observe(LocalPlace(folder: folder, name: row.place.name)) == nil
    }

    /// Whether it bears the name that an item has while it makes room for another one.
    private func isBetween(_ row: SyncedItem, _ pass: Pass) throws -> Bool {
        let place = try pass.candidates[row.id]?.found?.place ?? tracker.localPlace(of: row)
        return place.map { TransitionalName.matches($0.name) } ?? false
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
        guard let place = candidate.local?.place, !candidate.isInTransit, !TransitionalName.matches(place.name),
            !tracker.refusedMoves.contains(candidate.id),
            let known = candidate.agreed?.place ?? candidate.remote?.place
        else { return false }
        return place != known
    }

    private func noteUncrossed(_ item: ItemID) {
        crossings[item] = nil
        nameHolders[item] = nil
        untoldHolders[item] = nil
        circling.remove(item)
    }

    /// From the name on the way it goes on at once, if not in the same commit.
    func noteName(_ name: Name, _ candidate: Candidate) {
        if TransitionalName.matches(name) {
            candidate.isOnItsWay = true
            candidate.verdict = .later(.milliseconds(50))
        } else {
            noteUncrossed(candidate.id)
            if candidate.isOnItsWay { candidate.verdict = .sent }
            candidate.isOnItsWay = false
        }
    }
}
