import Reconciliation
import UbiquityModel

/// Placeholders away from their item.
extension ItemTracker {
    /// A placeholder whose revision belongs to another item: a dataless file was renamed over this name, linked to it, or swapped
    /// with it. It becomes whole first, and is then content like any other. If nobody has that content, it says nothing of this item either.
    func isForeign(
        _ placeholder: Placeholder,
        _ key: InodeKey,
        at place: LocalPlace,
        _ id: ItemID,
        _ row: SyncedItem?,
        _ remote: RemoteItem?
    ) throws -> Bool {
        let rows = try view.synced(key: key)
        if rows.contains(where: { $0.id != id && $0.content.revision == placeholder.revision }) { return true }
        // A program has put it over the item, and what it was has gone on as something else, or has ended: no apply has left it.
        let isByProgram = moves[key] == place || aspects[place]?.contains(.entry) ?? false
        guard let row, isByProgram, !rows.contains(where: { $0.id == id }) else { return false }
        guard row.content.revision != placeholder.revision, remote?.content.revision != placeholder.revision else {
            return false
        }
        // Others have deleted the item, and what a folder that was set back shows under its name is here under its own.
        let isLeftover = remote?.isDeleted ?? false && rows.isEmpty && moves[key] != place
        return try !(isLeftover && isHere(placeholder.revision))
    }

    /// The live item of that revision is where its row says.
    private func isHere(_ revision: RevisionID) throws -> Bool {
        guard let own = try view.remote(revision: revision), let row = try view.synced(own.id),
            let key = row.local?.key,
            let place = try localPlace(of: row)
        else { return false }
        return try view.observe(place)?.key == key
    }

    /// The item's placeholder went to another name, where its content is still wanted: until that is here, the item keeps its row,
    /// by which the content is found.
    func waitsForStranded(_ row: SyncedItem, _ candidate: Candidate) throws -> Bool {
        guard let local = row.local, local.isDataless, !isAbsent(local.key),
            case .file(let file) = row.content,
            let place = moves[local.key], let state = try view.observe(place), state.key == local.key,
            state.placeholder?.revision == file.revision
        else { return false }
        candidate.synced = row
        bringWhole(place, state, candidate)
        return true
    }

    func bringWhole(_ place: LocalPlace, _ state: LocalState, _ candidate: Candidate) {
        waits(candidate.works, forContentOf: state.key)
        if let refusal = refusal(of: state.key) {
            view.noteProblem(candidate.id, at: candidate.found?.place, "its content is not here, and cannot be fetched")
            candidate.verdict = refusal
            return
        }
        candidate.verdict = .later(isAwaited(state, candidate) ? .seconds(60) : .seconds(2))
        view.fetchWhole(place, state.key)
    }

    /// Its author, who may be away for weeks, has not sent it: then its item changes, and this is looked at again.
    private func isAwaited(_ state: LocalState, _ candidate: Candidate) -> Bool {
        guard let revision = state.placeholder?.revision, let remote = (try? view.remote(revision: revision)) ?? nil,
            remote.isAnnounced
        else { return false }
        waitingForNews[remote.id, default: []].formUnion(candidate.works)
        return true
    }
}
