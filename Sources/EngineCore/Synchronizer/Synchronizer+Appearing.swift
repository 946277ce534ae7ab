import Reconciliation
import UbiquityModel

/// What comes into being here: many files are published one after the other, without a word to the engine between, and small ones perhaps
/// with their content.
extension Synchronizer {
    /// Small files that are about to appear, and have a folder to appear in, may come with their content.
    func bring(_ candidates: [Candidate], _ pass: Pass) async -> [ItemID: String] {
        let arriving = candidates.compactMap { candidate -> RemoteItem? in
            guard candidate.appears, let remote = candidate.remote, case .file(let file) = remote.content,
                !file.isPackage, file.content != nil, file.size > 0, file.size <= Device.smallArrival,
                localFolder(of: remote.place.parent, pass) != nil
            else { return nil }
            return remote
        }
        return arriving.isEmpty ? [:] : await device.bring(arriving)
    }

    /// Of items about which nothing else is to be done.
    func appear(_ candidates: [Candidate], _ pass: Pass) async {
        await makeAppear(candidates, pass)
        for candidate in candidates { conclude(candidate, pass) }
    }

    private struct Appearance {
        var candidate: Candidate
        var remote: RemoteItem
        var place: LocalPlace
        var path: ItemPath
        /// By what name it is published.
        var staged: String
    }

    /// Prepares all of them, publishes them, and notes what came of each.
    func makeAppear(_ candidates: [Candidate], _ pass: Pass) async {
        var appearances: [Appearance] = []
        for candidate in candidates where candidate.verdict == nil {
            if let appearance = await appearance(of: candidate, pass) { appearances.append(appearance) }
        }
        device.recordMade()
        appearances.removeAll { wasMadeMeanwhile($0) }
        guard !appearances.isEmpty else { return }
        let unrecorded = appearances.filter { $0.candidate.synced == nil }
        device.willAppear(unrecorded.map { (item: $0.candidate.id, name: $0.staged) })
        let results = await device.perform(
            appearances.map { appearance in
                let place = appearance.place
                return (
                    .publish(staged: appearance.staged, parent: place.folder, name: place.name, expecting: .absent),
                    appearance.path
                )
            }
        )
        for (appearance, result) in zip(appearances, results) {
            let candidate = appearance.candidate
            guard let state = noted(result, appearance.path, candidate, staged: appearance.staged)?.state else {
                if staleCounts[candidate.id, default: 0] > 3 {
                    await clear(appearance.place, of: appearance.remote.place, pass)
                }
                continue
            }
            await appeared(appearance, state, pass)
        }
    }

    /// Somebody has asked for it while it was prepared, in a folder that populates itself: it is here, or was until a program removed it.
    private func wasMadeMeanwhile(_ appearance: Appearance) -> Bool {
        let candidate = appearance.candidate
        guard candidate.synced == nil, (try? device.synced(candidate.id)) ?? nil != nil else { return false }
        device.discard(appearance.staged)
        candidate.verdict = .again
        return true
    }

    /// Prepares it beside the tree. If that cannot be, the verdict says why.
    private func appearance(of candidate: Candidate, _ pass: Pass) async -> Appearance? {
        guard let remote = candidate.remote else { return nil }
        guard let folder = localFolder(of: remote.place.parent, pass) else {
            candidate.verdict = .later(.seconds(1))
            return nil
        }
        let place = LocalPlace(folder: folder, name: remote.place.name)
        guard let path = device.path(of: place) else {
            candidate.verdict = .later(.seconds(1))
            return nil
        }
        if let reason = LocalOnly.reason(for: path) {
            noteProblem(candidate, "stays in the cloud: \(reason.description)")
            candidate.verdict = .parked
            wait(candidate, forFoldersAround: remote)
            return nil
        }
        if remote.isAnnounced, isTaken(place, remote.place) {
            // An announcement claims no name: who it is shows when its content is known.
            candidate.verdict = .parked
            if candidate.synced != nil, candidate.found == nil {
                // Its placeholder was replaced here: the row leads to a place that nothing will ever come to. The item alone waits.
                pass.removeRow(candidate.id)
                candidate.works = candidate.works.filter { if case .item = $0 { true } else { false } }
            }
            return nil
        }
        if let brought = pass.brought.removeValue(forKey: remote.id) {
            if let revision = remote.content.revision { device.noteRevision(revision, of: remote.id) }
            return Appearance(candidate: candidate, remote: remote, place: place, path: path, staged: brought)
        }
        guard let staged = await stage(candidate, remote) else { return nil }
        return Appearance(candidate: candidate, remote: remote, place: place, path: path, staged: staged)
    }

    /// The folder that is not synced any more may be moved back, or comes back since the cloud keeps it with this item in it: then this is
    /// looked at again.
    private func wait(_ candidate: Candidate, forFoldersAround remote: RemoteItem) {
        var folder = remote.place.parent
        var levels = 0
        // What others say could make a circle.
        while folder != .root, levels < 1000 {
            tracker.waitingForNews[folder, default: []].formUnion(candidate.works)
            guard let next = (try? device.remote(folder)) ?? nil else { return }
            folder = next.place.parent
            levels += 1
        }
    }

    private func appeared(_ appearance: Appearance, _ state: LocalState, _ pass: Pass) async {
        let (candidate, remote, place) = (appearance.candidate, appearance.remote, appearance.place)
        await settleApplied(remote, state, place, pass)
        candidate.formerKey = candidate.synced?.local?.key
        candidate.synced = pass.syncedRow(candidate.id)
    }
}
