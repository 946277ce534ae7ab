package import UbiquityModel

/// What is remembered, and what is not, once a pass has ended.
extension ItemTracker {
    /// Ends a pass: what came of each piece of work, and what need not be remembered any more.
    /// - Returns: the verdicts, places that changed by another name of their file while the pass looked at it, and work that waited for
    ///   what has ended.
    package func settle(
        _ pass: Pass,
        _ works: [Work]
    ) -> (verdicts: [Work: Verdict], changed: [LocalPlace], woken: [Work]) {
        var verdicts = pass.verdicts
        var woken: [Work] = []
        var ended: [DeletionEntry] = []
        // What has come to wait in this very pass goes on waiting.
        lazy var waiting = Set(pass.all.filter(\.waits).flatMap(\.works))
        for candidate in pass.all {
            let verdict = candidate.verdict ?? .done
            settle(candidate, verdict, pass, &ended)
            if verdict == .parked { waitingForNews[candidate.id, default: []].formUnion(candidate.works) }
            if verdict == .done || verdict == .sent {
                if let waited = waitingForNews.removeValue(forKey: candidate.item) {
                    woken += waited.subtracting(works).sorted()
                    let stay = waited.intersection(waiting)
                    if !stay.isEmpty { waitingForNews[candidate.item] = stay }
                }
                // It may have gone, or stand for something else by now.
                if !waitingForContent.isEmpty, let key = candidate.found?.state.key,
                    let waited = waitingForContent.removeValue(forKey: key)
                {
                    woken += waited.subtracting(works).sorted()
                    let stay = waited.intersection(waiting)
                    if !stay.isEmpty { waitingForContent[key] = stay }
                }
            }
            for work in candidate.works { verdicts[work] = worse(verdicts[work], verdict) }
        }
        for work in works {
            if verdicts[work] == nil { verdicts[work] = .done }
            if case .place(let place) = work, verdicts[work] == .done || verdicts[work] == .sent,
                changedAt[place] ?? 0 <= pass.seenUpTo
            {
                // What was said since then is for the next pass.
                forget(place)
            }
        }
        madeFolders = [:]
        withdraw(ended)
        let changed = changedByOtherNames(pass)
        // Only what the core handed out may come back.
        if verdicts.count > works.count {
            let asked = Set(works)
            verdicts = verdicts.filter { asked.contains($0.key) }
        }
        return (verdicts, changed, woken)
    }

    /// What was noted of a place: most of it is noted of few, and asked of all.
    private func forget(_ place: LocalPlace) {
        if !changedAt.isEmpty { changedAt[place] = nil }
        if !aspects.isEmpty { aspects[place] = nil }
        if !editedAt.isEmpty { editedAt[place] = nil }
        if !unwitnessed.isEmpty { unwitnessed.remove(place) }
        if !vanished.isEmpty { vanished.remove(place) }
        forgetWhatCame(to: place)
        if !unnamed.isEmpty, let keys = unnamed[place]?.filter({ moves[$0] == place }) {
            // They are still to be told of.
            unnamed[place] = keys.isEmpty ? nil : keys
        }
        if !snapshots.isEmpty { snapshots.remove(place) }
    }

    /// It has gone from there, and no item was it: nobody asks any more where it went.
    private func forgetWhatCame(to place: LocalPlace) {
        guard !moves.isEmpty else { return }
        for key in moves.keys(at: place) {
            do {
                if try view.observe(place)?.key != key, try view.synced(key: key).isEmpty { moves[key] = nil }
            } catch {
                // It is asked the next time.
            }
        }
    }

    /// A piece of work may concern several items: it is done when all of them are.
    private func worse(_ one: Verdict?, _ other: Verdict) -> Verdict {
        guard let one else { return other }
        func rank(_ verdict: Verdict) -> Int {
            switch verdict {
            case .done: 0
            case .sent: 1
            case .parked: 2
            case .later: 3
            case .again, .next: 4
            case .failed: 5
            case .transferring: 6
            }
        }
        return rank(one) >= rank(other) ? one : other
    }

    /// An inode was changed by another of its names while this pass looked at it, or goes on as an item by one of them: then what it was
    /// called is something new.
    private func changedByOtherNames(_ pass: Pass) -> [LocalPlace] {
        var changed: [LocalPlace] = []
        for candidate in pass.all where candidate.verdict == .done || candidate.verdict == .sent {
            for place in candidate.formerPlaces.sorted() where place != candidate.found?.place {
                // It may have got another inode under the name by which it goes on. What a failing disk cannot tell is asked again.
                let keys = [candidate.found?.state.key, candidate.linkedKey]
                let found = Result { try view.observe(place).map { keys.contains($0.key) } ?? false }
                if (try? found.get()) ?? true { changed.append(place) }
            }
        }
        guard !linkedChanges.isEmpty else { return changed }
        for candidate in pass.all {
            guard let found = candidate.found, let change = linkedChanges[found.state.key], change > pass.seenUpTo
            else { continue }
            changedAt[found.place] = change
            aspects[found.place, default: []].formUnion([.content, .attributes])
            changed.append(found.place)
        }
        linkedChanges = linkedChanges.filter { $0.value > pass.seenUpTo }
        return changed
    }

    /// Deletions that the cloud knows, and those of files that it never knew.
    package func withdraw(_ ended: [DeletionEntry] = []) {
        var ended = ended
        // While a transfer or a commit is on its way, a row may still be written.
        if transferring.isEmpty, !freshDeletions.isEmpty {
            let strange = (try? view.strange(among: freshDeletions.sorted())) ?? []
            ended.append(contentsOf: strange.map { .inode($0) })
            freshDeletions = []
        }
        if !ended.isEmpty { view.withdraw(ended) }
    }

    private func settle(
        _ candidate: Candidate,
        _ verdict: Verdict,
        _ pass: Pass,
        _ ended: inout [DeletionEntry]
    ) {
        guard verdict == .done || verdict == .sent else { return }
        lookAfterRest(of: candidate, pass)
        if !imported.isEmpty, imported.contains(candidate.item) { broughtBack.insert(candidate.item) }
        if !absentSince.isEmpty { absentSince[candidate.item] = nil }
        if !contested.isEmpty { contested.remove(candidate.item) }
        view.settled(candidate.id, candidate.found?.state.key)
        if let adopted = candidate.adoptedAs { view.settled(adopted, candidate.found?.state.key) }
        if let key = candidate.found?.state.key {
            if moves[key] == candidate.found?.place, !candidate.isInTransit { forgetMove(of: key, candidate, pass) }
            // Not while no row leads to it: what was sent and not answered is only known by this.
            let hasRow = candidate.synced?.local != nil || pass.syncedRow(candidate.id) != nil
            if hasRow || verdict == .sent { newItems.remove(key) }
        }
        if !leftItems.isEmpty { leftItems.remove(candidate.item) }
        if !replacingLinks.isEmpty { replacingLinks.remove(candidate.item) }
        if !putBack.isEmpty, let before = putBack[candidate.item], candidate.remote?.position ?? 0 > before {
            putBack[candidate.item] = nil
        }
        if candidate.found == nil, verdict == .sent, let key = newItems.key(of: candidate.id) {
            // It has been taken back: what it was is new wherever it comes from now on.
            newItems.remove(key)
        }
        if !sentAs.isEmpty {
            sentAs = sentAs.filter { $0.value != candidate.item && $0.key != candidate.found?.state.key }
        }
        let key = candidate.found?.state.key ?? candidate.synced?.local?.key
        if let former = candidate.formerKey, former != key {
            forgetMove(of: former, candidate, pass)
            if others(of: former, besides: candidate)?.isEmpty ?? false {
                ended.append(contentsOf: [.inode(former), .replacing(former)])
            }
        }
        if let found = candidate.found, changedAt[found.place] ?? 0 <= pass.seenUpTo,
            view.isLogged(.item(candidate.item)), isStillThere(found)
        {
            // It is there after all.
            ended.append(.item(candidate.item))
        }
        // What has just come into being may have been removed since, and that is for the next pass.
        if candidate.found == nil, let key = candidate.synced?.local?.key,
            pass.syncedRow(candidate.id)?.local?.key != key
        {
            forgetMove(of: key, candidate, pass)
            if others(of: key, besides: candidate)?.isEmpty ?? false {
                ended.append(contentsOf: [.inode(key), .replacing(key)])
            }
        }
    }

    /// A program may have removed it in this moment, and not have told yet.
    private func isStillThere(_ found: Candidate.Found) -> Bool {
        ((try? view.observe(found.place)) ?? nil)?.key == found.state.key
    }

    /// Other items that were what this one is, or was, until now: that it has been moved or removed since has still to be told of them.
    /// - Returns: `nil` if that cannot be told now: then what is known is kept.
    private func others(of key: InodeKey, besides candidate: Candidate) -> [SyncedItem]? {
        (try? view.synced(key: key))?.filter { $0.id != candidate.id }
    }

    private func forgetMove(of key: InodeKey, _ candidate: Candidate, _ pass: Pass) {
        guard let place = moves[key] else { return }
        // Whoever looks there next has to know that a program has put it there.
        if let change = changedAt[place], change > pass.seenUpTo || pass.visitedPlaces[place] == nil { return }
        // By that alone it shows that they have not just disappeared.
        let isAwaited = others(of: key, besides: candidate)?.contains { row in
            row.place.name != place.name || folderKey(of: row.place.parent) != place.folder
        }
        guard isAwaited == false else { return }
        moves[key] = nil
        unnamed[place]?.remove(key)
        if unnamed[place]?.isEmpty ?? false { unnamed[place] = nil }
    }
}
