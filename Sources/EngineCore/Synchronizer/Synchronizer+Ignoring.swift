import Logging
import Reconciliation
import UbiquityModel

/// When other rules hold than before, what they kept here is looked at again.
extension Synchronizer {
    /// The cloud may have rules for folders that are here.
    func noteRemoteRules(_ items: [RemoteItem]) {
        for item in items where IgnoreRules.isName(item.place.name) {
            guard let folder = tracker.folderKey(of: item.place.parent) else { continue }
            handle(.changed(LocalPlace(folder: folder, name: item.place.name), isOpen: false))
        }
    }

    /// At the end of a pass, when its rows are written.
    func lookAtWhatWasIgnored(_ pass: Pass) {
        for candidate in pass.all { noteApplied(candidate, pass) }
        for place in pass.rulePlaces.sorted() where tracker.hasChanged(rulesAt: place) {
            handle(.changed(place, isOpen: false))
        }
        for place in pass.lookAlsoAt.sorted() { handle(.changed(place, isOpen: false)) }
        lookIntoFoldersThatAreSent(pass)
        guard !tracker.ignoring.changed.isEmpty else { return }
        tracker.ignoring.forget { $0 == device.rootKey || device.place(ofFolder: $0) != nil }
        let changed = tracker.ignoring.changed
        tracker.ignoring.changed = []
        for folder in tracker.ignoring.withUnsent.sorted()
        where changed.contains(where: { tracker.lies(folder, in: $0) }) {
            lookAgainIn(folder)
        }
        for folder in changed.sorted() {
            guard let fault = tracker.ignoring.faults[folder] else { continue }
            let path = device.path(of: LocalPlace(folder: folder, name: IgnoreRules.name))
            logger.warning(
                "a file with rules means nothing",
                metadata: ["path": "\(path?.description ?? "")", "why": "\(fault)"]
            )
        }
    }

    /// What this device itself puts there, moves or takes away, nobody reports.
    private func noteApplied(_ candidate: Candidate, _ pass: Pass) {
        guard !candidate.applies.isEmpty else { return }
        for step in candidate.applies {
            if case .planned(.move) = step, let found = candidate.found, found.state.kind == .folder {
                tracker.ignoring.changed.insert(found.state.key)
            }
        }
        let hasFailed = candidate.verdict == .failed
        if let place = candidate.found?.place, IgnoreRules.isName(place.name) { noteRules(at: place, hasFailed, pass) }
        for place in [candidate.remote?.place, candidate.synced?.place] {
            guard let place, IgnoreRules.isName(place.name), let folder = tracker.folderKey(of: place.parent) else {
                continue
            }
            noteRules(at: LocalPlace(folder: folder, name: place.name), hasFailed, pass)
        }
    }

    /// It is looked at in a moment. Until then the next pass, which may begin at once, knows that there are such: what was made meanwhile
    /// would be sent.
    /// - Parameter hasFailed: it is tried again, and looked at then: a program may have the file open meanwhile.
    private func noteRules(at place: LocalPlace, _ hasFailed: Bool, _ pass: Pass) {
        if !hasFailed { pass.rulePlaces.insert(place) }
        tracker.ignoring.noteName(place.name, in: place.folder)
    }

    /// Folders that were ignored and have become items: nobody has looked at what lies in them.
    private func lookIntoFoldersThatAreSent(_ pass: Pass) {
        guard !tracker.ignoring.unsentFolders.isEmpty else { return }
        for candidate in pass.all {
            guard let found = candidate.found, tracker.ignoring.unsentFolders.contains(found.state.key),
                // It may go on as one that the cloud has.
                let item = (try? tracker.knownItem(of: found.state.key)) ?? nil
            else { continue }
            tracker.ignoring.endUnsent(found.state.key)
            if !isScanned(found.state.key, item) { markScanned(found.place) }
        }
    }

    private func lookAgainIn(_ folder: InodeKey) {
        do {
            var rows: [Name: SyncedItem] = [:]
            if let item = try tracker.knownItem(of: folder) {
                for row in try device.syncedChildren(of: item) { rows[row.place.name] = row }
            }
            var unsent: [LocalPlace] = []
            try device.forEachEntry(of: folder) { name, state in
                guard let state, rows[name]?.local?.key != state.key else { return }
                unsent.append(LocalPlace(folder: folder, name: name))
            }
            tracker.ignoring.endWithUnsent(folder)
            for place in unsent.sorted() { markScanned(place) }
        } catch {
            // It is read when it can be.
            logger.error("what rules kept here cannot be looked at", metadata: ["why": "\(error)"])
            foldersToScan.insert(folder)
            if folder == device.rootKey {
                handle(.pendingLoaded([.root], isLast: false))
            } else if let place = device.place(ofFolder: folder) {
                markScanned(place)
            }
        }
    }
}
