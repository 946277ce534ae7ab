import Reconciliation
package import UbiquityModel

/// What a `.ubiquityignore` keeps here (semantics section 1): what is new and has such a name. What the cloud has already stays synced,
/// wherever it is moved, as in git.
extension ItemTracker {
    // MARK: What is new

    /// What is to become of something new, before it is an item.
    /// - Parameter item: that it is, if that is known.
    func ruling(
        onNew place: LocalPlace,
        _ state: LocalState,
        as item: ItemID?,
        into pass: Pass
    ) throws -> IgnoreRuling {
        if try isSent(item) { return .sent }
        let ruling = try ruling(place, state, &pass.ignoreRules)
        switch ruling {
        case .sent: break
        case .ignored, .waits: ignoring.withUnsent.insert(place.folder)
        }
        return ruling
    }

    /// It stays here. If the cloud has another item of that name, they are compared: an equal one it goes on as, since an apply may have
    /// put it here before that was written down.
    /// - Parameter there: what the cloud has under that name.
    func collectIgnored(
        _ place: LocalPlace,
        _ parent: ItemID,
        _ state: LocalState,
        _ there: [RemoteItem],
        _ work: Work,
        into pass: Pass
    ) throws {
        noteIgnored(place, state, into: pass)
        let rival = try there.first { try !$0.isDeleted && !$0.isAnnounced && meets($0, place, parent) }
        guard let rival else { return }
        let id = view.newItem()
        try found(id, place, parent, state, nil, work, into: pass)
        guard let candidate = pass.candidates[id] else { return }
        candidate.rival = rival
        candidate.isIgnored = true
        try collect(.item(rival.id), into: pass)
    }

    private func noteIgnored(_ place: LocalPlace, _ state: LocalState, into pass: Pass) {
        if state.kind == .folder {
            pass.unsentFolders.insert(state.key)
            ignoring.unsentFolders.insert(state.key)
        }
        if let item = newItems[state.key] {
            // It may have waited for these very rules.
            view.settled(item, state.key)
            newItems.remove(state.key)
        }
        if moves[state.key] == place { moves[state.key] = nil }
    }

    /// Whether the cloud's item is to be at that place here as well. If it was here under that name, it has left it.
    private func meets(_ rival: RemoteItem, _ place: LocalPlace, _ parent: ItemID) throws -> Bool {
        guard let row = try view.synced(rival.id) else { return true }
        return row.place != Place(parent: parent, name: place.name) || refusedMoves.contains(rival.id)
    }

    /// Until the rules are here, something new is not sent.
    func wait(for unread: UnreadRules, _ candidate: Candidate, into pass: Pass) throws {
        guard candidate.verdict == nil else { return }
        guard let state = unread.state, state.isDataless else {
            candidate.verdict = .later(.milliseconds(200))
            if unread.state == nil, let item = unread.item { try collect(.item(item), into: pass) }
            return
        }
        candidate.verdict = fetch(unread.place, state, candidate.works)
        guard refusal(of: state.key) != nil else { return }
        let reason = "waits for \(unread.path), which is not here and cannot be fetched"
        view.noteProblem(candidate.id, at: candidate.found?.place, reason)
    }

    /// The work waits for the content of a file that is here without it.
    func fetch(_ place: LocalPlace, _ state: LocalState, _ works: Set<Work>) -> Verdict {
        waits(works, forContentOf: state.key)
        if let refusal = refusal(of: state.key) { return refusal }
        view.fetchWhole(place, state.key)
        return .later(.seconds(2))
    }

    /// The file's place has changed: what it says is found out at once if anything is kept here that may be sent now.
    func lookAtRules(at place: LocalPlace, _ work: Work, into pass: Pass) throws {
        ignoring.noteName(place.name, in: place.folder)
        pass.ignoreRules[place.folder] = nil
        ignoring.looked[place.folder] = try view.observe(place).map { LocalEvidence($0) }
        guard place.folder == view.rootKey || view.place(ofFolder: place.folder) != nil,
            case .unknown(let unread) = try rules(in: place.folder, &pass.ignoreRules),
            unread.place == place || unread.state != nil || unread.item != nil,
            ignoring.withUnsent.contains(where: { lies($0, in: place.folder) })
        else { return }
        guard work == .place(place) else {
            // It came here by chance, and waits for something else.
            pass.lookAlsoAt.insert(place)
            return
        }
        // A file above it that is not here decides as well.
        if let state = unread.state, state.isDataless {
            pass.verdicts[work] = fetch(unread.place, state, [work])
        } else {
            pass.verdicts[work] = .later(.milliseconds(200))
            if unread.state == nil, let item = unread.item { try collect(.item(item), into: pass) }
        }
    }

    /// Something in a folder that is no item. In one that is ignored it stays here; but what is synced already stays so wherever it is
    /// moved: then the folder goes along.
    func lookAtHomeless(_ place: LocalPlace, _ work: Work, into pass: Pass) throws {
        // Nor is there anything to be done in what a package was, where programs that walked in before go on.
        guard view.place(ofFolder: place.folder) != nil, view.path(of: place) != nil else { return }
        guard pass.unsentFolders.contains(place.folder) else {
            pass.verdicts[work] = .later(.milliseconds(200))
            return
        }
        guard let state = try view.observe(place), state.kind != .other else { return }
        // A placeholder is an item of the cloud's, or was one: its content has to come here.
        let wasMoved =
            try (state.kind == .folder || state.linkCount == 1)
            && movedItem(state, to: place, nameIsTaken: false) != nil
        // A folder that has become a package there was another item until then, which leaves the cloud.
        let wasFolder = try state.kind == .package && knownItem(of: state.key) != nil
        if wasMoved || wasFolder || state.isDataless {
            try need(place.folder, pass)
            pass.verdicts[work] = .again
            return
        }
        noteIgnored(place, state, into: pass)
    }

    private func need(_ folder: InodeKey, _ pass: Pass) throws {
        var next = folder
        while try knownItem(of: next) == nil, ignoring.needed.insert(next).inserted,
            let place = view.place(ofFolder: next)
        {
            pass.lookAlsoAt.insert(place)
            next = place.folder
        }
    }

    package func lies(_ folder: InodeKey, in ancestor: InodeKey) -> Bool {
        var next = folder
        // A stale entry could close a circle.
        for _ in 0..<10_000 {
            if next == ancestor { return true }
            guard let place = view.place(ofFolder: next) else { return false }
            next = place.folder
        }
        return false
    }

    // MARK: What others send

    /// Others have an item where something ignored is, and a different one: the ignored one keeps its name, so that one gets another, in the
    /// cloud.
    func settleIgnored(_ pass: Pass) {
        var continued: Set<ItemID> = []
        for candidate in pass.all where candidate.isIgnored && candidate.verdict == nil {
            if case .adopt(let rival) = decision(candidate) {
                continued.insert(rival)
                continue
            }
            candidate.verdict = .done
            if let rival = candidate.rival { pass.givingWay.insert(rival.id) }
        }
        guard !ignoring.withUnsent.isEmpty else { return }
        for candidate in pass.all where candidate.verdict == nil && !continued.contains(candidate.id) {
            if (try? meetsIgnored(candidate, pass)) == true { pass.givingWay.insert(candidate.id) }
        }
    }

    /// Something ignored is where the cloud has the item, whether that was looked at in this pass or not.
    private func meetsIgnored(_ candidate: Candidate, _ pass: Pass) throws -> Bool {
        guard let remote = candidate.remote, !remote.isDeleted, let folder = folderKey(of: remote.place.parent),
            ignoring.withUnsent.contains(folder)
        else { return false }
        let place = LocalPlace(folder: folder, name: remote.place.name)
        guard let state = try view.observe(place), state.kind != .other, state.key != candidate.found?.state.key,
            // Under another name it may be an item.
            try view.synced(key: state.key).allSatisfy({ state.linkCount > 1 && $0.place != remote.place }),
            try !isSent(newItems[state.key]),
            // A backup that was restored has the same names and other inodes.
            try !view.synced(at: remote.place).contains(where: { row in
                row.content.kind == kind(of: state)
                    && (row.id != candidate.id || row.local?.key != candidate.found?.state.key)
            }),
            case .ignored = try ruling(place, state, &pass.ignoreRules)
        else { return false }
        return true
    }

    /// Whether something else is there than when it was last looked at. In a package there are no rules, and nobody looks for any.
    func hasChanged(rulesAt place: LocalPlace) -> Bool {
        if ((try? view.package(around: place.folder)) ?? nil) != nil { return false }
        guard let found = try? view.observe(place) else { return ignoring.looked[place.folder] != nil }
        return ignoring.looked[place.folder] != LocalEvidence(found)
    }

    /// Where the engine is about to change something, a file with rules may be: it is looked at again.
    func noteRulePlaces(_ pass: Pass) {
        for candidate in pass.all where !candidate.applies.isEmpty {
            if let place = candidate.found?.place, IgnoreRules.isName(place.name) { pass.rulePlaces.insert(place) }
        }
    }

    /// The second name of an item that is about to come where something ignored is.
    func secondPlace(of candidate: Candidate) -> Place? {
        guard let remote = candidate.remote, case .apply(let steps) = decision(candidate),
            steps.contains(.appear) || steps.contains(.move(remote.place)),
            let folder = folderKey(of: remote.place.parent),
            let free = secondPlace(for: remote.place.name, in: folder, remote.place.parent)
        else { return nil }
        return Place(parent: remote.place.parent, name: free.name)
    }

    /// The next name that is free, here and in the cloud.
    func secondPlace(for base: Name, in folder: InodeKey, _ parent: ItemID) -> LocalPlace? {
        for number in 2..<10_000 {
            let place = LocalPlace(folder: folder, name: base.numbered(number))
            if isFree(place, parent) { return place }
        }
        return nil
    }

    /// Here and in the cloud.
    func isFree(_ place: LocalPlace, _ parent: ItemID) -> Bool {
        let isTaken = (try? view.observe(place)) ?? nil != nil || (try? view.hasTwin(place)) ?? false
        let there = Place(parent: parent, name: place.name)
        let others = [try? view.remote(at: there), try? view.remote(like: there)]
        return !isTaken && others.allSatisfy { $0?.isEmpty ?? true }
    }
}
