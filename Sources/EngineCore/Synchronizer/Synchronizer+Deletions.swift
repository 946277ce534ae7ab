import Logging
import Reconciliation
package import UbiquityModel

/// Deletions that wait: for somebody's word, or for others that have to go first.
extension Synchronizer {
    func holdBackDeletions(_ sends: [PlannedSend], _ pass: Pass) -> [PlannedSend] {
        let deletions = sends.filter(\.isDeletion)
        guard !deletions.isEmpty else { return sends }
        let ids = deletions.map(\.candidate.id).filter { !confirmedDeletions.contains($0) && !tidiesRepository($0) }
        guard !ids.isEmpty else { return sends }
        releaseIfRemoved()
        var held = Set(ids).intersection(heldDeletions)
        let others = ids.filter { !held.contains($0) }
        var uncounted: Set<ItemID> = []
        do {
            if try !admit(others) { held.formUnion(others) }
        } catch {
            logger.warning("deletions wait: it cannot be counted whether they are many", metadata: ["why": "\(error)"])
            uncounted.formUnion(others)
        }
        guard !held.isEmpty || !uncounted.isEmpty else { return sends }
        if !held.isEmpty { hold(held.sorted()) }
        for deletion in deletions {
            let candidate = deletion.candidate
            if held.contains(candidate.id) { candidate.verdict = .parked }
            guard uncounted.contains(candidate.id) else { continue }
            noteProblem(candidate, "its deletion waits: the device's database cannot be read")
            candidate.verdict = .failed
        }
        return sends.filter { !held.contains($0.candidate.id) && !uncounted.contains($0.candidate.id) }
    }

    /// - Throws: when it is not known how many there are.
    private func admit(_ ids: [ItemID]) throws -> Bool {
        // Each is counted once, however often it has to be sent.
        let fresh = ids.filter { !admittedDeletions.contains($0) }
        guard !fresh.isEmpty else { return true }
        let began = device.now
        let folder = commonPath(of: ids)
        func judge(_ known: Int) throws -> DeletionGuard.Answer {
            let total = try deletionGuard.dependsOnTotal(known, at: device.now) ? itemTotal() : 0
            return deletionGuard.judge(
                fresh.count,
                known: known,
                below: folder,
                total: total,
                at: device.now,
                isRemoved: { isGone($0) }
            )
        }
        let toCome = try deletionsToCome()
        var answer = try judge(max(fresh.count, toCome))
        if case .held = answer, heldDeletions.isEmpty, let counted = itemsCounted, counted.at < began {
            // Many may have come since: by a former count nothing is held that would be the first.
            itemsCounted = nil
            answer = try judge(max(fresh.count, toCome))
        }
        if case .held = answer, toCome > fresh.count { answer = try judge(max(fresh.count, untidiedToCome())) }
        switch answer {
        case .admitted:
            admittedDeletions.formUnion(fresh)
            deletionsAhead?.remove(fresh)
            return true
        case .held(let folder):
            awaitedRemoval = heldDeletions.isEmpty ? folder : folder.flatMap { awaitedRemoval?.common(with: $0) }
            return false
        }
    }

    /// To count all takes a second where there are a million, and their deletion takes thousands of passes.
    private func itemTotal() throws -> Int {
        if let known = itemsCounted, device.now - known.at < Self.countingPause { return known.count }
        let count = try device.itemCount()
        itemsCounted = CountedItems(count: count, at: device.now)
        return count
    }

    /// Deletions that programs have done and no pass has come to: of a thousand not the first half goes before it is seen that they are many.
    private func deletionsToCome() throws -> Int {
        guard device.loggedDeletions > DeletionGuard.smallestContainer / 2 else { return 0 }
        if let known = deletionsAhead, device.now - known.at < Self.countingPause { return known.items.count }
        // What was held more than a minute ago is a question of its own: it holds nothing else.
        let isRecent = heldAt.map { device.now - $0 <= DeletionGuard.window } ?? false
        let others = confirmedDeletions.union(admittedDeletions).union(isRecent ? [] : heldDeletions)
        // One more than are too many in any case.
        let logged = try device.itemsDeletedHere(limit: DeletionGuard.mostItems + 1 + others.count)
        let ahead = DeletionsAhead(items: logged.subtracting(others), at: device.now)
        deletionsAhead = ahead
        return ahead.items.count
    }

    /// Those of them that lose something.
    private func untidiedToCome() -> Int {
        guard let ahead = deletionsAhead else { return 0 }
        if let count = ahead.untidied { return count }
        let count = ahead.items.count { !tidiesRepository($0) }
        deletionsAhead?.untidied = count
        return count
    }

    /// To look each of ten thousand up takes a part of a second.
    private static var countingPause: Duration { .seconds(5) }

    /// Somebody has said that what is held may go, with all else that programs have deleted by now: it is never held again, however long it
    /// takes until it is sent.
    package func confirmDeletions() {
        let logged = (try? device.itemsDeletedHere(limit: .max)) ?? []
        let confirmed = heldDeletions.union(logged).subtracting(confirmedDeletions)
        confirmedDeletions.formUnion(confirmed)
        do { try device.write(confirmed: true, confirmed.sorted()) } catch {
            logger.warning("confirmed deletions are not recorded", metadata: ["why": "\(error)"])
        }
        deletionGuard.forgetRecent()
        sentDeletions = []
        releaseHeld()
    }

    /// Nothing is held any more.
    package func releaseHeld() {
        let released = heldDeletions
        heldDeletions = []
        awaitedRemoval = nil
        heldAt = nil
        deletionsAhead = nil
        itemsCounted = nil
        storeHeld(released)
    }

    /// They are sent, or nothing was deleted.
    package func forgetConfirmed(_ items: some Sequence<ItemID>) {
        let settled = items.filter { confirmedDeletions.contains($0) }
        guard !settled.isEmpty else { return }
        confirmedDeletions.subtract(settled)
        do { try device.write(confirmed: false, settled) } catch {
            logger.warning("confirmed deletions stay recorded", metadata: ["why": "\(error)"])
        }
    }

    /// What was sent within the minute before others were held belongs to them.
    func noteSent(deletion item: ItemID) {
        itemsCounted?.count -= 1
        guard heldDeletions.isEmpty else { return }
        // Not for each: there may be ten thousand.
        if let first = sentDeletions.first, device.now - first.at > DeletionGuard.window * 2 { dropFormerSent() }
        if sentDeletions.count < DeletionGuard.mostItems { sentDeletions.append((item, device.now)) }
    }

    private func dropFormerSent() {
        let now = device.now
        sentDeletions.removeAll { now - $0.at > DeletionGuard.window }
    }

    /// `git gc` packs a repository's objects and removes the loose ones: hundreds of deletions that lose nothing, in a `.git` that
    /// stays.
    private func tidiesRepository(_ item: ItemID) -> Bool {
        let names = remotePath(of: item).names
        guard let index = names.lastIndex(where: { $0.bytes.elementsEqual(".git".utf8) }), index < names.count - 1
        else {
            return false
        }
        return isHere(ItemPath(Array(names[...index])))
    }

    /// What cannot be looked at is neither here nor gone: nothing goes for it.
    private func isHere(_ path: ItemPath) -> Bool { ((try? inode(at: path)) ?? nil) != nil }
    private func isGone(_ path: ItemPath) -> Bool { isNothing(try inode(at: path)) }

    private func inode(at path: ItemPath) throws -> InodeKey? {
        var folder = device.rootKey
        for name in path.names {
            guard let state = try device.observe(LocalPlace(folder: folder, name: name)) else { return nil }
            folder = state.key
        }
        return folder
    }

    /// What was held, or confirmed, is here again, or gone everywhere: nobody is asked about it any more.
    func releaseSettledDeletions(_ pass: Pass) {
        guard !heldDeletions.isEmpty || !confirmedDeletions.isEmpty else { return }
        let settled = pass.all.filter { $0.verdict == .done || $0.verdict == .sent }.map(\.id)
        forgetConfirmed(settled)
        let released = settled.filter { heldDeletions.contains($0) }
        guard !released.isEmpty else { return }
        heldDeletions.subtract(released)
        storeHeld(released)
    }

    private func hold(_ ids: [ItemID]) {
        let before = heldDeletions.count
        if before == 0 { dropFormerSent() }
        heldAt = device.now
        let fresh = ids.filter { heldDeletions.insert($0).inserted }
        storeHeld(fresh)
        // Once, and again whenever they are twice as many.
        guard before == 0 || before.leadingZeroBitCount != heldDeletions.count.leadingZeroBitCount else { return }
        logger.warning("deletions are held", metadata: ["count": "\(heldDeletions.count)"])
    }

    private func storeHeld(_ changed: some Sequence<ItemID>) {
        do {
            try heldMarks.write(changed, held: heldDeletions) { isHeld, items in
                try device.write(held: isHeld, items)
            }
        } catch {
            logger.warning("held deletions are not recorded", metadata: ["why": "\(error)"])
        }
    }

    /// The folder that everything held was in has gone: somebody has removed that one.
    package func releaseIfRemoved() {
        guard !heldDeletions.isEmpty, let folder = awaitedRemoval, !folder.isRoot, isGone(folder) else { return }
        let released = heldDeletions.sorted()
        releaseHeld()
        handle(.pendingLoaded(released, isLast: false))
    }

    private func commonPath(of ids: [ItemID]) -> ItemPath {
        guard let first = ids.first else { return .root }
        return ids.dropFirst().reduce(remotePath(of: first)) { path, id in
            path.isRoot ? path : path.common(with: remotePath(of: id))
        }
    }

    // MARK: What is here only from now on

    /// What leaves the cloud for where nothing is sent from lasts there before the cloud is told. Else a power loss could set it back to its
    /// name, from which the cloud's word would then take it. Nor is a link's new target sent before it lasts that the former link went
    /// elsewhere, by an exchange say: the cloud keeps no versions of links.
    /// - Returns: what is sent.
    func lasting(_ sends: [PlannedSend]) async -> [PlannedSend] {
        let leaving = sends.filter { $0.candidate.leavesFor != nil && $0.isDeletion }
        let relinked = sends.filter(\.replacesLink)
        guard !leaving.isEmpty || !relinked.isEmpty else { return sends }
        if !leaving.isEmpty {
            for send in sends where send.candidate.isLeaving && send.isDeletion {
                tracker.leftItems.insert(send.candidate.id)
            }
        }
        let places = leaving.compactMap(\.candidate.leavesFor) + relinked.compactMap(\.candidate.found?.place)
        let left = (leaving + relinked).compactMap {
            $0.candidate.synced.flatMap { tracker.folderKey(of: $0.place.parent) }
        }
        if await device.makeDurable(places, Set(left)) { return sends }
        for send in leaving { noteProblem(send.candidate, "it cannot leave the cloud: the disk does not write") }
        for send in relinked { noteProblem(send.candidate, "it cannot be sent: the disk does not write") }
        // What went over a link leaves the cloud when it is there as that one.
        let kept = Set(relinked.compactMap(\.candidate.found?.state.key))
        let gone = sends.filter { send in
            send.isDeletion && send.candidate.synced?.local.map { kept.contains($0.key) } ?? false
        }
        let refused = leaving + relinked + gone
        for send in refused { send.candidate.verdict = .failed }
        let ids = Set(refused.map(\.candidate.id))
        return sends.filter { !ids.contains($0.candidate.id) }
    }

    // MARK: Folders that are not empty

    /// The cloud keeps a folder whose deletion was sent, because something lies in it.
    func folderIsNotEmpty(_ candidate: Candidate, _ pass: Pass) throws -> Verdict {
        // By itself, too: what it has become may be replaced meanwhile, and no place leads to it then.
        if candidate.isLeaving { handle(.due(.item(candidate.id), after: .milliseconds(300))) }
        var waiting: [ItemID] = []
        for child in try device.remoteChildren(of: candidate.id) where !child.isDeleted {
            guard try isAboutToGo(child, from: candidate.id) else {
                // What has just been done to that one may not have been told, or written down.
                let attempts = unexplainedFolders[candidate.id, default: 0] + 1
                unexplainedFolders[candidate.id] = attempts
                if attempts > 4 { return forget(candidate, pass) }
                handle(.pendingLoaded([child.id], isLast: false))
                return .later(.milliseconds(250))
            }
            waiting.append(child.id)
        }
        if waiting.isEmpty {
            // Something that this device cannot know (a name that it refuses, say) stays: so does the folder.
            let attempts = unexplainedFolders[candidate.id, default: 0] + 1
            unexplainedFolders[candidate.id] = attempts
            if attempts > 10 { return forget(candidate, pass) }
        }
        // Nothing known survives in it: what lies there is still to be sent away, or the feed is about to tell of it.
        if !waiting.isEmpty { handle(.pendingLoaded(waiting, isLast: false)) }
        if waiting.contains(where: { heldDeletions.contains($0) }) {
            hold([candidate.id])
            return .parked
        }
        return .later(.milliseconds(300))
    }

    /// Whether this device itself has taken the item out of the folder, and has still to say so.
    private func isAboutToGo(_ child: RemoteItem, from folder: ItemID) throws -> Bool {
        // The cloud has refused that it goes: it comes back here.
        if tracker.refusedMoves.contains(child.id) { return false }
        guard let row = try device.synced(child.id) else {
            return try tracker.wasDeletedWhileCreated(child) || tracker.isOwnAnnouncement(child)
                || tracker.placeLeftFor(byNew: child) != nil
        }
        let former = tracker.folderKey(of: row.place.parent).map { LocalPlace(folder: $0, name: row.place.name) }
        if let key = row.local?.key, var place = tracker.currentPlace(of: key), try device.observe(place)?.key == key {
            // By a further name it is there without having moved.
            if let former, try device.observe(former)?.key == key { place = former }
            // What has become a part of a package, or stays here, is deleted there and not moved: what others have changed is not.
            if try device.package(around: place.folder) != nil || tracker.localOnlyReason(at: place) != nil {
                return tracker.isAgreed(child, row)
            }
            let parent = try tracker.knownItem(of: place.folder)
            // What was this one goes on as another, and that is written down: it moves nowhere, and comes back, unless a program has removed what
            // had its name, or has replaced it.
            let isAnother = try device.synced(key: key).contains {
                $0.id != child.id && $0.place.parent == parent && $0.place.name == place.name
            }
            if isAnother { return try tracker.isAgreed(child, row) && tracker.isProvenDeletion(row) }
            // Others have moved it here, and it has only not come yet, whatever a program has called it on the way.
            let isOnItsWay = TransitionalName.matches(place.name) || TransitionalName.matches(row.place.name)
            let isComing =
                parent == row.place.parent && place.name == row.place.name
                || isOnItsWay && !TransitionalName.matches(child.place.name)
            return parent != folder && !isComing
        }
        if let moved = try placeOfSuccessor(child, row) { return try tracker.knownItem(of: moved.folder) != folder }
        // Others have changed it since: it stays, and the folder with it.
        guard tracker.isAgreed(child, row) else { return false }
        // Moved, unanswered, and removed there: what has its former name goes on as well.
        for place in Set([try tracker.localPlace(of: row), former].compactMap(\.self)) {
            guard let state = try device.observe(place), try !isOthers(place, than: child.id, state) else { continue }
            guard try isSentFrom(place) else { continue }
            // It is where it was, or was removed there and made anew: that goes on as this item, and goes to where others have moved it.
            if try state.key == row.local?.key || device.synced(key: state.key).isEmpty { return false }
        }
        return try heldDeletions.contains(child.id) || tracker.isProvenDeletion(row)
    }

    /// Where a program has moved its file, which was replaced there by another one before that was told: the item goes on with that. (Not in a
    /// package, nor where nothing is sent from: what is there now is no item.)
    private func placeOfSuccessor(_ child: RemoteItem, _ row: SyncedItem) throws -> LocalPlace? {
        guard let key = row.local?.key, let place = tracker.currentPlace(of: key),
            let state = try device.observe(place), try isSentFrom(place),
            let parent = try tracker.knownItem(of: place.folder),
            try tracker.rows(at: place, in: parent, state).isEmpty,
            try tracker.movedItem(replacedBy: state, at: place)?.id == child.id
        else { return nil }
        return place
    }

    private func isSentFrom(_ place: LocalPlace) throws -> Bool {
        try device.package(around: place.folder) == nil && tracker.localOnlyReason(at: place) == nil
    }

    /// Whether another item has the name: what is there goes on as that one.
    private func isOthers(_ place: LocalPlace, than item: ItemID, _ state: LocalState) throws -> Bool {
        guard let parent = try tracker.knownItem(of: place.folder),
            let owner = try tracker.rows(at: place, in: parent, state).first
        else { return false }
        return owner.id != item
    }
}
