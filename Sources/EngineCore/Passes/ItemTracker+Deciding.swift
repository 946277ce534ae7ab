import Reconciliation
import UbiquityModel

/// What is to be done about each item of a pass.
extension ItemTracker {
    /// What each candidate has to send; what it has to apply is kept for later in `applies`.
    /// - Returns: what goes out now, and what is so large that it has to be read and uploaded beside the pass before.
    package func decide(_ pass: Pass) -> (sends: [PlannedSend], transfers: [Candidate]) {
        var sends: [PlannedSend] = []
        var transfers: [Candidate] = []
        var adopted: Set<ItemID> = []
        for candidate in pass.all where candidate.synced == nil {
            if let state = candidate.found?.state, state.isDataless { noteOwners(of: state, among: pass.all) }
        }
        settleIgnored(pass)
        for candidate in pass.all where candidate.verdict == nil {
            if let parent = candidate.found?.parent, adopted.contains(parent) {
                // Its folder is another item than it was taken for.
                candidate.verdict = .next
                continue
            }
            if transferring.contains(candidate.id) {
                candidate.verdict = .later(.milliseconds(500))
                continue
            }
            // What leaves without its content.
            if !candidate.applies.isEmpty { continue }
            if candidate.isStrayInTransit {
                candidate.applies = [.aside]
                continue
            }
            if pass.givingWay.contains(candidate.id), let place = secondPlace(of: candidate) {
                candidate.givesWay = true
                sends.append(PlannedSend(candidate: candidate, actions: [.move(place)]))
                continue
            }
            if let place = placeAfterRest(of: candidate) {
                candidate.givesWay = true
                sends.append(PlannedSend(candidate: candidate, actions: [.move(place)]))
                continue
            }
            if candidate.found != nil, candidate.remote?.isDeleted ?? false, leftItems.contains(candidate.id) {
                // This device has deleted it in the cloud, and it is back here: it is new. That is remembered, should the disk not write this.
                if let place = candidate.found?.place { pass.lookAlsoAt.insert(place) }
                pass.changes.removals.append(candidate.id)
                candidate.verdict = .again
                continue
            }
            switch decision(candidate) {
            case .nothing:
                candidate.verdict = .done
            case .agree:
                agree(candidate, pass)
            case .forget:
                pass.changes.removals.append(candidate.id)
                candidate.verdict = .done
            case .adopt(let rival):
                adopt(rival, candidate, pass)
                adopted.insert(candidate.id)
            case .renameAside:
                candidate.applies = [.aside]
            case .split:
                candidate.applies = [.asideAsAnother]
            case .unavailable where candidate.synced == nil && candidate.found?.state.isDataless == true:
                // A placeholder that nobody knows: an older revision perhaps, or one of an item that is deleted by now.
                guard let found = candidate.found else { continue }
                settleUnknown(found, candidate)
            case .unavailable where standsForAnother(candidate):
                // What the item was is nowhere: what is here is looked at as what nobody knows.
                pass.changes.removals.append(candidate.id)
                candidate.verdict = .again
            case .unavailable where isInTheWay(candidate):
                candidate.applies = [.aside]
            case .unavailable:
                followRestored(candidate, pass)
                let reason = "its content is neither here nor in the cloud"
                view.noteProblem(candidate.id, at: candidate.found?.place, reason)
                candidate.verdict = .parked
                waitingForNews[candidate.id, default: []].formUnion(candidate.works)
            case .read:
                beginTransfer(candidate, isNew: false, &sends, &transfers)
            case .send(let actions):
                if needsContent(actions), candidate.read == nil, case .unread? = candidate.found?.content {
                    beginTransfer(candidate, isNew: actions == [.create], &sends, &transfers)
                } else if needsContent(actions), let found = candidate.found, case .dataless = found.content {
                    // Another item's placeholder, under the name of one that this device has announced.
                    if candidate.synced == nil {
                        settleUnknown(found, candidate)
                    } else {
                        bringWhole(found.place, found.state, candidate)
                    }
                } else {
                    sends.append(PlannedSend(candidate: candidate, actions: actions))
                }
            case .apply(let steps):
                agreeOnEqualAttributes(candidate)
                candidate.applies = steps.map { .planned($0) }
            }
        }
        noteRulePlaces(pass)
        return (awaitPackages(sends, pass), transfers)
    }

    /// What both sides have already is agreed on by whatever row a step writes: its evidence vouches for all of the inode. (What was sent may
    /// have come there without an answer.)
    private func agreeOnEqualAttributes(_ candidate: Candidate) {
        guard let local = candidate.local, let remote = candidate.remote, !remote.isDeleted else { return }
        let (here, there) = (local.attributes, remote.attributes)
        if here.mode == there.mode { candidate.synced?.attributes.mode = there.mode }
        if here.modified == there.modified { candidate.synced?.attributes.modified = there.modified }
        if local.extendedKnown, here.extended == there.extended {
            candidate.synced?.attributes.extended = there.extended
        }
    }

    func decision(_ candidate: Candidate) -> Decision {
        var agreed = candidate.agreed
        if refusedMoves.contains(candidate.id) || candidate.isInTransit, let local = candidate.local {
            agreed?.place = local.place
        } else if let before = putBack[candidate.id], let remote = candidate.remote, remote.position > before {
            agreed?.place = remote.place
        }
        if revivals.contains(candidate.id), candidate.found?.state.kind == .folder, candidate.remote?.isDeleted ?? false
        {
            return .send([.revive])
        }
        if candidate.found == nil, candidate.synced == nil, let remote = candidate.remote,
            isOwnAnnouncement(remote) || wasDeletedWhileCreated(remote) || candidate.leavesFor != nil
                || isForgottenAnnouncement(remote)
        {
            // It went before its content was sent: the announcement is taken back. Or before the answer came.
            return .send([.delete(base: remote.content.revision)])
        }
        if wentOverDeletedLink(candidate) || linkWentOn(candidate) || linkCameBack(candidate) {
            return .send([.create])
        }
        var rival = candidate.rival
        if let known = rival, let local = candidate.local, let row = (try? view.synced(known.id)) ?? nil {
            // This device has that item too: it is not this one made twice. If it had this name, it has left it, and that is sent;
            // else it is about to come here, or to come back.
            guard row.place == local.place, !refusedMoves.contains(known.id) else { return .renameAside }
            rival = nil
        }
        // A file is no package, whatever their bytes.
        if let rival, candidate.synced == nil, isPackage(candidate) != (rival.content.kind == .package) {
            return .renameAside
        }
        return Planner.decide(
            local: candidate.local,
            synced: agreed,
            remote: candidate.remote,
            rival: rival,
            deletionIsLogged: candidate.deletionIsProven,
            isKept: imported.contains(candidate.id)
        )
    }

    /// A link leads to where another one led that others have deleted, and has taken its name: its own item ends with that, so it is not
    /// what they have deleted. (Of a file whose content is the same as what they have deleted, the cloud keeps that.)
    private func wentOverDeletedLink(_ candidate: Candidate) -> Bool {
        guard candidate.remote?.isDeleted ?? false, let row = candidate.synced, let found = candidate.found,
            case .symlink = found.content, let key = row.local?.key, key != found.state.key
        else { return false }
        return ((try? view.synced(key: found.state.key)) ?? []).contains { $0.id != candidate.id }
    }

    /// A link had taken another item's name and was told to be that one, so that this device deleted what it was; a program moved it on before
    /// the answer came, and this process knows nothing of that. What only this device has deleted is not gone where it is. (Of a file the
    /// cloud keeps the content.)
    private func linkWentOn(_ candidate: Candidate) -> Bool {
        guard let remote = candidate.remote, remote.isDeleted, remote.author == view.deviceName,
            let row = candidate.synced, let found = candidate.found, case .symlink = found.content,
            row.local?.key == found.state.key, let local = candidate.local
        else { return false }
        return local.place != row.place
    }

    /// What was sent of a link has come there, without an answer, and this device has deleted that; since then a program has put what leads to
    /// the same under its name. Sent as it was before it would be no edit, and only this device has deleted it.
    private func linkCameBack(_ candidate: Candidate) -> Bool {
        guard let remote = candidate.remote, remote.isDeleted, remote.author == view.deviceName,
            let row = candidate.synced, let found = candidate.found, case .symlink(let target) = found.content,
            row.local?.key != found.state.key
        else { return false }
        return sentLinks[candidate.id]?.target == target && remote.content == .symlink(target: target)
    }

    /// A server that was restored knows nothing of it, or only that it is deleted, nobody has its content, and the cloud has given its name to
    /// another: that one would never come.
    func isInTheWay(_ candidate: Candidate) -> Bool {
        guard candidate.remote?.isDeleted ?? true, let found = candidate.found else { return false }
        let there = (try? view.remote(at: Place(parent: found.parent, name: found.place.name))) ?? []
        return there.contains { $0.id != candidate.id && !$0.isDeleted && !$0.isAnnounced }
    }

    /// A folder was set back to when another item had the name of one that a restored server knows nothing of, or when that one had just been
    /// another's placeholder under a new name: it is here again.
    private func standsForAnother(_ candidate: Candidate) -> Bool {
        guard candidate.remote == nil, let row = candidate.synced, let placeholder = candidate.found?.state.placeholder
        else { return false }
        return placeholder.revision != row.content.revision
    }

    /// A restored backup has other inodes than its rows say, and so does this placeholder, of which nobody has the content: its row leads to it
    /// from now on, so that its user can remove it. (What can be had gets a new row with that.)
    private func followRestored(_ candidate: Candidate, _ pass: Pass) {
        guard let found = candidate.found, var row = candidate.synced, let local = row.local,
            local.key != found.state.key, found.state.placeholder?.revision == row.content.revision
        else { return }
        row.local = LocalEvidence(found.state)
        // It still waits.
        row.local = row.local?.untrusted
        pass.setRow(row)
    }

    private func isPackage(_ candidate: Candidate) -> Bool { candidate.found?.state.kind == .package }

    /// A placeholder that is at no row's place has what it stands for, or what follows that, or is nothing.
    private func settleUnknown(_ found: Candidate.Found, _ candidate: Candidate) {
        findOwners(of: found.state)
        if wasLeftBehind(found) {
            candidate.applies = [.planned(.vanish)]
        } else if let remote = successor(of: found.state) {
            candidate.applies = [.refer(remote)]
        } else if willNeverCome(found.state) {
            candidate.applies = [.planned(.vanish)]
        } else if (try? isLeaving(candidate.rival, from: found.place)) ?? false {
            // That is about to be told, or is at this moment, or somebody is being asked about it.
            candidate.verdict = .later(.milliseconds(250))
        } else if isInTheWay(candidate), isAbsent(found.state.key) || candidate.rival?.content.kind != .file {
            // What it stands for may never come; where it does, it cannot go on as a folder.
            candidate.applies = [.aside]
        } else {
            bringWhole(found.place, found.state, candidate)
        }
    }

    /// Whoever the cloud has under the name has left it here, by moving or for ever, and does not come back since others have changed it.
    private func isLeaving(_ rival: RemoteItem?, from place: LocalPlace) throws -> Bool {
        guard let rival, !refusedMoves.contains(rival.id), let row = try view.synced(rival.id) else { return false }
        guard try isElsewhere(row, than: place), let own = row.local.flatMap({ currentPlace(of: $0.key) }) else {
            return try isAgreed(rival, row) && isProvenDeletion(row)
        }
        // Who has made room comes back to the name as soon as it is free. There it may be no item.
        return try !TransitionalName.matches(own.name) && view.package(around: own.folder) == nil
            && localOnlyReason(at: own) == nil
    }

    /// A file went elsewhere before its content had come, and that has not come, but what follows it has: the newest is what it has.
    func successor(of state: LocalState) -> RemoteItem? {
        guard isAbsent(state.key), absences[state.key] == .superseded, let revision = state.placeholder?.revision else {
            return nil
        }
        let remotes = (owners[state.key] ?? []).sorted().compactMap { (try? view.remote($0)) ?? nil }
        return remotes.first { remote in
            guard !remote.isDeleted, !remote.isAnnounced, case .file(let file) = remote.content else { return false }
            return file.revision != revision
        }
    }

    /// There is no byte of it anywhere, or only among what is deleted, and nobody looks for it there.
    func willNeverCome(_ state: LocalState) -> Bool {
        isWithdrawn(state) || isDeletedElsewhere(state) || neverCame(state)
    }

    /// A placeholder of what nobody has ever had, and nobody has announced again.
    private func isWithdrawn(_ state: LocalState) -> Bool {
        guard absences[state.key] == .withdrawn, let revision = state.placeholder?.revision else { return false }
        return isNothing(try view.remote(revision: revision))
    }

    /// A placeholder that an apply put here before it was written down, where the cloud had it until others deleted it. It was asked for
    /// again and again, and nobody looks for its content among what is deleted.
    private func wasLeftBehind(_ found: Candidate.Found) -> Bool {
        guard let revision = found.state.placeholder?.revision, found.state.linkCount == 1,
            (try? view.synced(key: found.state.key).isEmpty) ?? false,
            isNothing(try view.remote(revision: revision)),
            let deleted = (try? view.deletedRemote(revision: revision)) ?? nil,
            isNothing(try view.synced(deleted.id))
        else { return false }
        return deleted.place == Place(parent: found.parent, name: found.place.name)
    }

    /// A placeholder of what was announced, of which this device does not know any more whose it was: its author has sent something else,
    /// or nothing. There is no byte of it anywhere, and nobody will bring one.
    private func neverCame(_ state: LocalState) -> Bool {
        guard isAbsent(state.key), let placeholder = state.placeholder, placeholder.wasAnnounced else { return false }
        return isNothing(try view.remote(revision: placeholder.revision))
    }

    /// A file went elsewhere before its content had come, and while nobody has that, others have deleted what it was.
    private func isDeletedElsewhere(_ state: LocalState) -> Bool {
        guard isAbsent(state.key), let items = owners[state.key], !items.isEmpty,
            let revision = state.placeholder?.revision,
            isNothing(try view.remote(revision: revision))
        else { return false }
        return items.allSatisfy { ((try? view.remote($0)) ?? nil)?.isDeleted ?? false }
    }

    /// What this device has announced and knows nothing of: its disk is an older one, or lost its power. Nobody else has the content.
    private func isForgottenAnnouncement(_ remote: RemoteItem) -> Bool {
        remote.isAnnounced && !remote.isDeleted && remote.author == view.deviceName && sending[remote.id] == nil
    }

    /// A program has deleted what this device was just about to create in the cloud.
    func wasDeletedWhileCreated(_ remote: RemoteItem) -> Bool {
        (view.isLogged(.item(remote.id)) || replacingLinks.contains(remote.id)) && isUntouched(remote)
    }

    /// Whether nobody has changed it in the cloud since this device has created it.
    func isUntouched(_ remote: RemoteItem) -> Bool {
        guard !remote.isDeleted else { return false }
        switch remote.content {
        case .file: return sentRevision(remote) != nil
        // Whoever gives it another target is its author from then on.
        case .symlink: return remote.author == view.deviceName
        case .folder: return true
        }
    }

    private func needsContent(_ actions: [Send]) -> Bool {
        actions.contains { action in
            switch action {
            case .create, .edit: true
            case .move, .attributes, .delete, .revive: false
            }
        }
    }

    private func agree(_ candidate: Candidate, _ pass: Pass) {
        candidate.verdict = .done
        guard let remote = candidate.remote, let found = candidate.found else { return }
        if candidate.synced == nil {
            // Only the content was compared: it may have another name by now. From here on it is found by its row.
            candidate.verdict = .again
            newItems.remove(found.state.key)
        }
        let isKnown = candidate.synced != nil
        let row = isKnown ? SyncedItem(remote, local: LocalEvidence(found.state)) : comparedByContent(remote, found)
        if isKnown, isWritten(row, pass), candidate.read == nil { return }
        pass.setRow(row)
        if let manifest = candidate.read?.manifest, let content = candidate.read?.content {
            pass.manifests[content] = manifest
        }
        if sending.removeValue(forKey: candidate.id) != nil { pass.changes.answered.append(candidate.id) }
        pass.written.append(found.place)
    }

    /// There is nothing to write down: of what was sent, the cloud tells once more by its feed.
    private func isWritten(_ row: SyncedItem, _ pass: Pass) -> Bool {
        guard pass.syncedRow(row.id) == nil, sending[row.id] == nil else { return false }
        return ((try? view.synced(row.id)) ?? nil) == row
    }

    /// Made twice, the same both times: the local item continues the cloud's.
    private func adopt(_ rival: ItemID, _ candidate: Candidate, _ pass: Pass) {
        guard let found = candidate.found, let remote = candidate.rival, remote.id == rival else { return }
        var row = comparedByContent(remote, found)
        row.place = Place(parent: found.parent, name: found.place.name)
        if let placeholder = found.state.placeholder, case .file(let file) = remote.content,
            (file.revision, file.size) != (placeholder.revision, placeholder.size)
        {
            // What an apply left half-way is an older state of that item, and no more than that is agreed on: the newer one is applied.
            let older = FileContent(revision: placeholder.revision, content: nil, size: placeholder.size)
            row.content = .file(older)
            row.attributes = found.attributes
        }
        pass.setRow(row)
        // That of a single chunk came with the item.
        if let read = candidate.read, read.manifest.entries.count > 1 { pass.manifests[read.content] = read.manifest }
        pass.written.append(found.place)
        newItems.remove(found.state.key)
        candidate.leavesAnnouncement = candidate.remote.map { $0.isAnnounced && !$0.isDeleted } ?? false
        if differsInNothing(candidate, found, remote) {
            candidate.adoptedAs = rival
            candidate.verdict = .done
        } else {
            // What differs besides the content is compared once more, now as one item. It may have been found on the way to something else, and
            // that is all that would be looked at again.
            candidate.verdict = .again
            pass.lookAlsoAt.insert(found.place)
        }
    }

    /// Of an item that was made twice: the next look would find that all is agreed on.
    private func differsInNothing(
        _ candidate: Candidate,
        _ found: Candidate.Found,
        _ remote: RemoteItem
    ) -> Bool {
        guard !found.state.isDataless, !candidate.isIgnored, !candidate.isInTransit,
            !refusedMoves.contains(remote.id), var local = candidate.local
        else { return false }
        // As one that has a row: its entries may have come one after the other.
        local.timeWasSet = found.state.kind != .folder || (aspects[found.place] ?? []).contains(.attributes)
        let agreed = AgreedItem(place: remote.place, content: remote.content, attributes: remote.attributes)
        return Planner.decide(local: local, synced: agreed, remote: remote) == .agree
    }

    /// Only their contents are known to be the same. Where attributes differ, nobody knows who has set or removed what: none is lost here
    /// for that, and if the engine ends before it has compared them, a scan finds that they were not.
    private func comparedByContent(_ remote: RemoteItem, _ found: Candidate.Found) -> SyncedItem {
        var row = SyncedItem(remote, local: LocalEvidence(found.state))
        if found.attributes.extended != remote.attributes.extended {
            if found.attributes.extended.isEmpty { row.attributes.extended = [:] }
            row.local = row.local?.untrusted
        } else if found.attributes.mode != remote.attributes.mode {
            row.local = row.local?.untrusted
        }
        return row
    }

    /// A large content is read and uploaded beside the passes; a new one is announced first.
    private func beginTransfer(
        _ candidate: Candidate,
        isNew: Bool,
        _ sends: inout [PlannedSend],
        _ transfers: inout [Candidate]
    ) {
        if candidate.found == nil {
            candidate.verdict = .done
        } else if isNew, candidate.remote == nil, !isPackage(candidate) {
            // The transfer begins in the next pass, when the others know the name.
            sends.append(PlannedSend(candidate: candidate, actions: [], isAnnouncement: true))
        } else if !uploads.begin(candidate.id, candidate.works) {
            candidate.verdict = .later(TransferSlots.longestWait)
        } else {
            candidate.verdict = .transferring
            transferring.insert(candidate.id)
            transfers.append(candidate)
        }
    }
}
