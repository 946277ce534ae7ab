package import Reconciliation
package import UbiquityModel

/// What stays on this device (semantics section 2), and what leaves the others because it was moved there.
extension ItemTracker {
    package func localOnlyReason(_ place: LocalPlace, _ path: ItemPath) -> LocalOnly.Reason? {
        if let reason = LocalOnly.reason(for: path) { return reason }
        if isSharedMemory(place) {
            sharedMemory.insert(place)
            return .sharedMemoryOfDatabase
        }
        return nil
    }

    /// A file beside the database whose shared memory it is: not a folder, and not a document that was synced before there was a file of the
    /// other name, or that others have sent.
    private func isSharedMemory(_ place: LocalPlace) -> Bool {
        guard let database = LocalOnly.databaseOfSharedMemory(place.name),
            let state = (try? view.observe(place)) ?? nil, state.kind == .file,
            ((try? view.observe(LocalPlace(folder: place.folder, name: database))) ?? nil)?.kind == .file,
            ((try? view.synced(key: state.key)) ?? []).isEmpty
        else { return false }
        guard let parent = (try? knownItem(of: place.folder)) ?? nil else { return true }
        let own = Place(parent: parent, name: place.name)
        return ((try? view.synced(at: own)) ?? []).isEmpty
            && ((try? view.remote(at: own)) ?? []).allSatisfy(\.isDeleted)
    }

    /// What is not sent because of what has the name `place`, and may be when that has gone.
    func takeSharedMemory(beside place: LocalPlace) -> LocalPlace? {
        guard !sharedMemory.isEmpty, let name = LocalOnly.sharedMemory(of: place.name) else { return nil }
        return sharedMemory.remove(LocalPlace(folder: place.folder, name: name))
    }

    /// A folder that is where nothing is sent from, and has not left the cloud yet: what belongs in it leaves with it, or stays if it is
    /// moved back before.
    func folderToLeaveWith(_ place: LocalPlace, _ state: LocalState?, _ row: SyncedItem?) throws -> LocalPlace? {
        guard place.folder != view.rootKey, try knownItem(of: place.folder) != nil,
            let folder = view.place(ofFolder: place.folder), localOnlyReason(at: folder) != nil
        else { return nil }
        // What was an item elsewhere leaves by itself.
        if let state, row?.local?.key != state.key, try !view.synced(key: state.key).isEmpty { return nil }
        return folder
    }

    /// An item that was moved to where nothing is sent from leaves the other devices; its content must be here first.
    func collectLocalOnly(
        _ place: LocalPlace,
        _ state: LocalState?,
        _ row: SyncedItem?,
        _ reason: LocalOnly.Reason,
        _ work: Work,
        into pass: Pass
    ) throws {
        if let row, state == nil || row.local?.key != state?.key { try collectAbsent(row, work, into: pass) }
        guard let state else { return }
        if state.kind == .folder { pass.unsentFolders.insert(state.key) }
        try collectLeaving(place, state, work, into: pass)
        if state.isDataless, try view.synced(key: state.key).isEmpty, !isAbsent(state.key) {
            // It was part of a package, say: the cloud keeps its content for a while only.
            pass.verdicts[work] = fetch(place, state, [work])
        }
    }

    /// What an inode is an item of ceases to be one, with all that lies in it.
    /// - Returns: whether its contents are here, so that the cloud can do without it.
    @discardableResult
    func collectLeaving(_ place: LocalPlace, _ state: LocalState, _ work: Work, into pass: Pass) throws -> Bool {
        var isWhole = true
        for row in try view.synced(key: state.key) where canBe(row, state) {
            // One of several names: those that are still where they were go on, and the content is here.
            if state.hasOtherNames, try !hasLeft(row, state.key, for: place) { continue }
            // What has become a package goes as the folder that it was.
            if state.kind == .package, row.content != .folder, try view.package(around: place.folder) == nil,
                localOnlyReason(at: place) == nil
            {
                continue
            }
            // A placeholder of what nobody has: what has its name is the item from now on.
            let isLeftover = try state.lacksContent && isAbsent(state.key) && hasSuccessor(row, besides: place)
            let candidate = pass.candidate(isLeftover ? view.newItem() : row.id, work)
            if !isLeftover { candidate.synced = row }
            if state.lacksContent, try isLeftover || !neverComes(state, row) {
                isWhole = false
                if !settleAbsent(place, state, row, candidate) { bringWhole(place, state, candidate) }
                continue
            }
            if row.content == .folder, try !isWholeBelow(row.id) {
                // All of it goes, or none.
                isWhole = false
                candidate.verdict = .later(fetching.isEmpty ? .seconds(1) : .milliseconds(100))
                continue
            }
            // Of what nobody has there is nothing to wait for: the package waits for it.
            let package = state.lacksContent ? nil : try packageJoined(by: row, at: place, state)
            try noteLeaving(row, candidate, package)
            candidate.leavesFor = place
            if row.content == .folder { try collectChildrenLeaving(row.id, package, work, into: pass) }
        }
        return isWhole
    }

    /// Whether the item's own name stands for something else by now, or lies where nothing is sent from.
    private func hasLeft(_ row: SyncedItem, _ key: InodeKey, for place: LocalPlace) throws -> Bool {
        guard let folder = folderKey(of: row.place.parent) else { return false }
        let own = LocalPlace(folder: folder, name: row.place.name)
        // It is where it was, and its folder is one from which nothing is sent by now.
        if own == place { return true }
        // Another of its names may just have got another one that is sent.
        return try moves[key] == place && view.observe(own)?.key != key
    }

    /// Whether an announced file's author is no device of the account any more: there is nothing to wait for, and nothing that the cloud
    /// could lose.
    private func neverComes(_ state: LocalState, _ row: SyncedItem) throws -> Bool {
        guard isAbsent(state.key), absences[state.key] == .gone, let remote = try view.remote(row.id) else {
            return false
        }
        return remote.isAnnounced && !remote.isDeleted && remote.content.revision == state.placeholder?.revision
    }

    /// Nobody will ever bring the content of a file that leaves: it goes with what follows that, if anything does.
    private func settleAbsent(
        _ place: LocalPlace,
        _ state: LocalState,
        _ row: SyncedItem,
        _ candidate: Candidate
    ) -> Bool {
        guard let placeholder = state.placeholder, candidate.found == nil, isAbsent(state.key) else { return false }
        findOwners(of: state)
        if let remote = successor(of: state) {
            candidate.applies = [.refer(remote)]
        } else if willNeverCome(state) {
            candidate.applies = [.planned(.vanish)]
        } else {
            return false
        }
        candidate.found = Candidate.Found(placeholder, at: place, in: row.place.parent, state, row.attributes)
        return true
    }

    func localOnlyReason(at place: LocalPlace) -> LocalOnly.Reason? {
        view.path(of: place).flatMap { localOnlyReason(place, $0) }
    }

    private static var fetchesAtOnce: Int { 32 }

    /// Whether all contents below a folder are here; brings what is not.
    private func isWholeBelow(_ folder: ItemID) throws -> Bool {
        guard fetching.count < Self.fetchesAtOnce else { return false }
        // What was lacking is gone on with. To look through all again for each few that have come would take for ever.
        if let known = lackingBelow.removeValue(forKey: folder) {
            let inFlight = fetching.count
            let lacking = try bring(known)
            if fetching.count > inFlight {
                lackingBelow[folder] = lacking
                return false
            }
        }
        guard try view.populateBelow(folder) else { return false }
        let lacking = try bring(view.syncedSubtree(of: folder).filter { $0.local?.isDataless == true }.map(\.id))
        if !lacking.isEmpty { lackingBelow[folder] = lacking }
        return lacking.isEmpty
    }

    /// Brings as many contents as may come at once.
    /// - Returns: the items of which the contents are not here.
    private func bring(_ items: [ItemID]) throws -> [ItemID] {
        var lacking: [ItemID] = []
        for (index, item) in items.enumerated() {
            guard let row = try view.synced(item), let local = row.local,
                let place = try placeLackingContent(row, local)
            else { continue }
            lacking.append(item)
            if refusal(of: local.key) == nil { view.fetchWhole(place, local.key) }
            // It is looked through again when some have come.
            if fetching.count >= Self.fetchesAtOnce { return lacking + items[(index + 1)...] }
        }
        return lacking
    }

    private func placeLackingContent(_ row: SyncedItem, _ local: LocalEvidence) throws -> LocalPlace? {
        guard local.isDataless, let parent = folderKey(of: row.place.parent), !isAbsent(local.key) else { return nil }
        let own = LocalPlace(folder: parent, name: row.place.name)
        // Its row may not say yet that its content has come, nor that it has another name.
        return try [own, moves[local.key]].compactMap { $0 }.first { place in
            guard let state = try view.observe(place) else { return false }
            return state.key == local.key && state.lacksContent
        }
    }

    private func collectChildrenLeaving(
        _ folder: ItemID,
        _ package: LocalPlace?,
        _ work: Work,
        into pass: Pass
    ) throws {
        for row in try view.syncedChildren(of: folder) where try !hasGoneElsewhere(row) {
            try noteLeaving(row, pass.candidate(row.id, work), row.local?.isDataless ?? false ? nil : package)
            if row.content == .folder { try collectChildrenLeaving(row.id, package, work, into: pass) }
        }
    }

    /// The package that the item has become, or a part of which. What else has the item's name by now needs that in the cloud, and waits for
    /// no package.
    private func packageJoined(by row: SyncedItem, at place: LocalPlace, _ state: LocalState) throws -> LocalPlace? {
        let around = try view.package(around: place.folder)
        guard let package = around ?? (state.kind == .package ? place : nil) else { return nil }
        guard let folder = folderKey(of: row.place.parent) else { return package }
        let own = LocalPlace(folder: folder, name: row.place.name)
        return try own == place && around != nil || view.observe(own) == nil ? package : nil
    }

    /// What this device has sent of it without an answer is here as well.
    private func noteLeaving(_ row: SyncedItem, _ candidate: Candidate, _ package: LocalPlace?) throws {
        candidate.joins = package
        candidate.remote = try view.remote(row.id)
        candidate.synced = agreedRow(row, candidate.remote)
        candidate.deletionIsProven = true
        candidate.isLeaving = true
    }

    /// It was moved out of what leaves, and goes on where it is by now.
    private func hasGoneElsewhere(_ row: SyncedItem) throws -> Bool {
        guard let key = row.local?.key, let place = currentPlace(of: key), try view.observe(place)?.key == key,
            let folder = folderKey(of: row.place.parent), place != LocalPlace(folder: folder, name: row.place.name)
        else { return false }
        return try view.package(around: place.folder) == nil && localOnlyReason(at: place) == nil
    }
}
