package import UbiquityModel

/// Packages (semantics section 5): folders that are one document. What lies in one is no item, and what becomes part of one ceases to be.
extension ItemTracker {
    /// A place in a package: whatever changed there has changed the package. What was an item until it was moved there is one no more.
    func collect(_ place: LocalPlace, in package: LocalPlace, _ work: Work, into pass: Pass) throws {
        if let state = try view.observe(place) { try collectLeaving(place, state, work, into: pass) }
        try collect(package, work, into: pass)
    }

    /// A folder that is an item has become a package: by its name, or by its attribute. It is another item from now on, made of what lies in
    /// it, and what were items leave the cloud, but not before it is here to take their place.
    /// - Returns: false while that cannot be.
    func collectBecomingPackage(
        _ row: SyncedItem,
        _ place: LocalPlace,
        _ parent: ItemID,
        _ state: LocalState,
        _ work: Work,
        into pass: Pass
    ) throws -> Bool {
        let candidate = pass.candidate(row.id, work)
        candidate.synced = row
        let rest = quietRest(of: state)
        guard rest <= .zero else {
            candidate.verdict = .later(rest)
            return false
        }
        return try collectLeaving(place, state, work, into: pass)
    }

    /// What has become part of a package stays in the cloud until that is sent with it in it: to read and send that may take hours, and until
    /// then others would have it among what is deleted only.
    /// - Returns: what goes now.
    func awaitPackages(_ sends: [PlannedSend], _ pass: Pass) -> [PlannedSend] {
        guard sends.contains(where: { $0.candidate.joins != nil }) else { return sends }
        // What has no verdict by now is sent in this pass, before what is deleted. Or it is to be moved here first, perhaps to what lies in it.
        var awaited: [LocalPlace: (item: ItemID, verdict: Verdict)] = [:]
        for candidate in pass.all where !candidate.isIgnored {
            guard let found = candidate.found, found.state.kind == .package, let verdict = candidate.verdict,
                verdict != .done
            else { continue }
            awaited[found.place] = (candidate.item, verdict)
        }
        guard !awaited.isEmpty else { return sends }
        return sends.filter { send in
            guard send.isDeletion, let package = send.candidate.joins.flatMap({ awaited[$0] }) else { return true }
            // The work that both have goes on when a transfer has ended; what leads here alone is told.
            send.candidate.verdict = package.verdict == .transferring ? .later(.seconds(60)) : package.verdict
            waitingForNews[package.item, default: []].formUnion(send.candidate.works)
            return false
        }
    }

    /// How long a package has to stay as it is until it is whole in itself, if nobody has anything in it open.
    package func quietRest(of state: LocalState) -> Duration {
        guard let facts = state.facts else { return .zero }
        let now = view.wallClock
        // Changed in the time to come: the clock was set back since, and nobody waits for it to get there again.
        if facts.newestChange.age(at: now) == .zero, now.age(at: facts.newestChange) > .seconds(1) { return .zero }
        return max(.zero, EngineCore.quietPeriod - facts.newestChange.age(at: now))
    }
}
