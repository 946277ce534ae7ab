package import Reconciliation
package import UbiquityModel

/// What stays on this device (semantics section 2), and what leaves the others because it was moved there.
extension ItemTracker {
    package func localOnlyReason(_ place: LocalPlace, _ path: ItemPath) -> LocalOnly.Reason? {
        if let reason = LocalOnly.reason(for: path) { return reason }
        if let database = LocalOnly.databaseOfSharedMemory(place.name),
            (try? view.observe(LocalPlace(folder: place.folder, name: database))) ?? nil != nil
        {
            return .sharedMemoryOfDatabase
        }
        return nil
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
        for row in try view.synced(key: state.key) where state.kind == .folder || state.linkCount == 1 {
            let candidate = pass.candidate(row.id, work)
            if state.isDataless {
                candidate.synced = row
                bringWhole(place, state, candidate)
                continue
            }
            candidate.synced = row
            if state.kind == .folder, try !view.populateBelow(row.id) || !isWholeBelow(row.id) {
                // All of it goes, or none.
                candidate.verdict = .later(fetching.isEmpty ? .seconds(1) : .milliseconds(100))
                continue
            }
            candidate.remote = try view.remote(row.id)
            candidate.deletionIsProven = true
            if state.kind == .folder { try collectChildrenLeaving(row.id, work, into: pass) }
        }
    }

    /// Whether all contents below a folder are here; brings what is not.
    private func isWholeBelow(_ folder: ItemID) throws -> Bool {
        var isWhole = true
        for row in try view.syncedSubtree(of: folder) where row.local?.isDataless == true {
            guard let parent = folderKey(of: row.place.parent), let local = row.local,
                !isAbsent(local.key)
            else { continue }
            isWhole = false
            if fetching.count < 32, refusal(of: local.key) == nil {
                view.fetchWhole(LocalPlace(folder: parent, name: row.place.name), local.key)
            }
        }
        return isWhole
    }

    private func collectChildrenLeaving(_ folder: ItemID, _ work: Work, into pass: Pass) throws {
        for row in try view.syncedChildren(of: folder) {
            let candidate = pass.candidate(row.id, work)
            candidate.synced = row
            candidate.remote = try view.remote(row.id)
            candidate.deletionIsProven = true
            if row.content == .folder { try collectChildrenLeaving(row.id, work, into: pass) }
        }
    }
}
