import Logging
import Reconciliation
package import UbiquityModel

/// Comparing the backing tree with the synced tree.
extension Synchronizer {
    /// Learns where all folders are, and marks every place that differs from its synced row. What is missing comes back: whoever removes it
    /// behind the mount is no program that deletes it.
    /// - Parameter isAfterCleanStop: everything had been sent. What differs was changed while nothing ran, and may be an old state that
    ///   somebody has restored. What is not sent is known to be so, and not looked at one by one.
    package func scan(isAfterCleanStop: Bool) throws {
        defer { formerDeletions = [] }
        // What is remembered of a former stop was sent before this one.
        if isAfterCleanStop { tracker.unwitnessed.removeAll { _ in true } }
        let isComplete = try scanFolders(isAfterCleanStop ? .afterCleanStop : .everything)
        if isAfterCleanStop, !isComplete {
            logger.warning("something has gone from the container's folder while nothing ran: comparing everything")
            _ = try scanFolders(.everything)
        }
        forgetEqualPlaces()
        storeUnwitnessed()
    }

    /// What could not be read before may be readable by now.
    func lookIntoFolders(_ pass: Pass) {
        for candidate in pass.all where candidate.verdict == nil {
            guard let found = candidate.found, found.state.kind == .folder,
                device.place(ofFolder: found.state.key) == nil
            else { continue }
            // The scan could not look at it.
            noteFolder(found.state.key, at: found.place)
            foldersToScan.insert(found.state.key)
        }
        guard !foldersToScan.isEmpty else { return }
        forgetFoldersThatHaveGone(pass)
        for candidate in pass.all where candidate.verdict == nil {
            // What lies in a package is no item, however it was taken for a folder before.
            guard let state = candidate.found?.state, state.kind != .package, foldersToScan.contains(state.key) else {
                continue
            }
            if !isScanned(state.key, candidate.id) { candidate.verdict = .failed }
        }
        // What stays here is no candidate: what lies in it may be wanted all the same.
        for key in pass.unsentFolders.sorted() where foldersToScan.contains(key) { _ = isScanned(key, nil) }
    }

    /// In a folder below one that could not be read nobody knows what lies: what is not found there has not gone.
    func waitForUnreadFolders(_ pass: Pass) {
        guard !foldersToScan.isEmpty else { return }
        for candidate in pass.all where candidate.verdict == nil && candidate.found == nil {
            guard !candidate.deletionIsProven, let row = candidate.synced, row.local != nil, liesUnread(row) else {
                continue
            }
            candidate.verdict = .later(.seconds(1))
        }
    }

    private func liesUnread(_ row: SyncedItem) -> Bool {
        var (folder, isAbove) = (row.place.parent, false)
        // Rows could make a circle.
        for _ in 0..<1000 {
            guard let key = tracker.folderKey(of: folder) else { return false }
            if key == device.rootKey || device.place(ofFolder: key) != nil {
                return isAbove && foldersToScan.contains(key)
            }
            guard let next = (try? device.synced(folder))??.place.parent else { return false }
            (folder, isAbove) = (next, true)
        }
        return false
    }

    /// A failing disk could not say that a program had just removed a folder when the scan was to read it.
    private func forgetFoldersThatHaveGone(_ pass: Pass) {
        for key in foldersToScan.sorted() {
            guard let place = device.place(ofFolder: key), pass.visitedPlaces[place] != nil, hasGone(key) else {
                continue
            }
            foldersToScan.remove(key)
        }
    }

    /// A folder leaves one that could not be read yet, or one in that: whoever reads that will not find it there. Or it left one that has
    /// been read before anybody had looked into it: it came to one, or was given a name, behind the scan's back.
    func noteLeftUnread(_ key: InodeKey, from folder: InodeKey) {
        let wasMissed = scannedFolders.contains(folder) && !scannedFolders.contains(key)
        if wasMissed || foldersToScan.contains(where: { tracker.lies(folder, in: $0) }) { foldersToScan.insert(key) }
    }

    /// Hears what programs did until now.
    /// - Returns: false while one is just moving something, and has not told of it.
    func hearPrograms() -> Bool {
        let isComplete = device.noteChanges()
        if isComplete { scannedFolders = [] }
        return isComplete
    }

    /// A program has moved a folder to where another item's was, as which it goes on: after a backup was restored, both are known by their names
    /// only. Or it has become a new item there, and the answer to that was lost. What lies in it was another's.
    func lookIntoSuccessors(_ pass: Pass) {
        guard !tracker.moves.isEmpty else { return }
        for candidate in pass.all {
            guard let state = candidate.found?.state, state.kind == .folder, tracker.moves[state.key] != nil,
                candidate.synced?.local?.key != state.key,
                candidate.verdict == .done || pass.syncedRow(candidate.id)?.local?.key == state.key
            else { continue }
            foldersToScan.insert(state.key)
            candidate.verdict = .again
        }
    }

    /// A folder that this device has told the cloud is no more, without an answer, is back here, and has just lost its row. What lies in it was
    /// compared with the rows of what the folder was: it is looked at again with those of what it becomes. (By its move that would not show: it
    /// need not have moved, and the move is forgotten in this very pass if the package that it was meanwhile ends.)
    func lookIntoReturned(_ pass: Pass) {
        guard !tracker.leftItems.isEmpty else { return }
        for candidate in pass.all where candidate.verdict == .again && tracker.leftItems.contains(candidate.id) {
            guard let state = candidate.found?.state, state.kind == .folder, candidate.remote?.isDeleted ?? false
            else { continue }
            foldersToScan.insert(state.key)
        }
    }

    /// The root is at no place: it is work of its own.
    func lookIntoRoot() -> Verdict {
        guard foldersToScan.contains(device.rootKey) else { return .done }
        return isScanned(device.rootKey, .root) ? .done : .failed
    }

    /// - Parameter item: that the folder is; `nil` if it is none.
    func isScanned(_ folder: InodeKey, _ item: ItemID?) -> Bool {
        foldersToScan.remove(folder)
        do { _ = try scanTree(from: folder, item: item, .whileRunning) } catch {
            foldersToScan.insert(folder)
        }
        return !foldersToScan.contains(folder)
    }

    private enum Extent {
        case afterCleanStop, everything
        /// Programs are at work: a deletion that is announced may be about to be done.
        case whileRunning
    }

    /// - Returns: whether everything is here that should be.
    private func scanFolders(_ extent: Extent) throws -> Bool {
        foldersToScan = []
        strangeFolders = []
        var scanned = Result<Bool, any Error>.success(true)
        device.askingTogether {
            scanned = Result {
                try scanTree(from: device.rootKey, item: .root, extent)
            }
        }
        let isComplete = try scanned.get()
        _ = hearPrograms()
        // Their folder was about to come back when the engine ended: no place leads to them. Nor do they differ from the cloud's, so that a stop
        // is clean although they wait.
        handle(.pendingLoaded(try device.syncedOrphans(), isLast: false))
        return isComplete
    }

    private func scanTree(from top: InodeKey, item: ItemID?, _ extent: Extent) throws -> Bool {
        var folders: [(key: InodeKey, item: ItemID?)] = [(top, item)]
        var missing: [SyncedItem] = []
        while let folder = folders.popLast() {
            try scanFolder(folder.key, item: folder.item, extent, into: &folders, &missing)
            // The rest is learned together with what is missing.
            if extent == .afterCleanStop, !missing.isEmpty { return false }
        }
        for folder in missing where folder.content == .folder {
            guard folder.local.map({ device.folders.entry($0.key) == nil }) ?? true else { continue }
            // No place leads to what lay in it.
            let lost = try device.syncedSubtree(of: folder.id).map(\.id)
            handle(.pendingLoaded(lost, isLast: false))
        }
        return missing.isEmpty
    }

    private func scanFolder(
        _ key: InodeKey,
        item: ItemID?,
        _ extent: Extent,
        into folders: inout [(key: InodeKey, item: ItemID?)],
        _ missing: inout [SyncedItem]
    ) throws {
        var rows: [Name: SyncedItem] = [:]
        if let item {
            for row in try device.syncedChildren(of: item) where rows.updateValue(row, forKey: row.place.name) != nil {
                // A restored server has given the name back to another one, which is missed although something is there.
                markScanned(LocalPlace(folder: key, name: row.place.name))
            }
        }
        // Where there is no row at all, a file is new, whatever inode it is: its pass finds out the rest.
        let isAllNew = try extent == .everything && !device.hasSynced()
        func isNew(_ name: Name, _ kind: LocalKind) -> Bool {
            guard isAllNew, kind == .file || kind == .symlink, !IgnoreRules.isName(name) else { return false }
            markScanned(LocalPlace(folder: key, name: name))
            return true
        }
        do {
            try device.forEachEntry(of: key, unless: isNew) { name, state in
                do {
                    let row = rows.removeValue(forKey: name)
                    guard let state else {
                        // It has gone, or cannot be looked at now: its pass finds out which.
                        markScanned(LocalPlace(folder: key, name: name))
                        return
                    }
                    tracker.ignoring.noteScanned(
                        name,
                        state,
                        in: key,
                        isUnknown: row == nil && item == nil && extent == .afterCleanStop
                    )
                    if extent == .everything { withdrawDeletion(of: state.key, row) }
                    let place = LocalPlace(folder: key, name: name)
                    if extent != .afterCleanStop {
                        try compare(state, row, at: place)
                    } else if item != nil, try compare(state, row, at: place) {
                        // The mount is there before this: what a program has told of is its act.
                        if tracker.changedAt[place] == nil { tracker.unwitnessed.insert(place) }
                        // Also one that goes on as the item that had its name: not only what that had lies in it.
                        if state.kind == .folder, try folderItem(state.key) == nil { strangeFolders.insert(state.key) }
                    }
                    // Nothing in it is an item, but whoever changes something there changes it.
                    if state.kind == .package { noteFolder(state.key, at: place) }
                    if state.kind == .folder {
                        noteFolder(state.key, at: place)
                        folders.append((state.key, row?.local?.key == state.key ? row?.id : try folderItem(state.key)))
                    }
                } catch {
                    throw Unanswered(error: error)
                }
            }
        } catch let error as Unanswered {
            throw error.error
        } catch {
            if hasGone(key) { return }
            // What it has told until then is taken; of the rest nothing is known, so nothing is missing.
            logger.error(
                "a folder cannot be read",
                metadata: ["path": "\(String(describing: device.folders.path(of: key)))", "why": "\(error)"]
            )
            foldersToScan.insert(key)
            if key == device.rootKey {
                handle(.pendingLoaded([.root], isLast: false))
            } else if let place = device.place(ofFolder: key) {
                markScanned(place)
            }
            return
        }
        scannedFolders.insert(key)
        for (name, row) in rows.sorted(by: { $0.key < $1.key }) {
            if row.local != nil || row.content == .folder { missing.append(row) }
            if extent != .afterCleanStop { markScanned(LocalPlace(folder: key, name: name)) }
        }
    }

    /// Where a folder is said to be already, it may have been moved to since it was looked at.
    private func noteFolder(_ key: InodeKey, at place: LocalPlace) {
        let known = device.place(ofFolder: key)
        if known == nil {
            device.folders.add(key, parent: place.folder, name: place.name)
        } else if known != place, (try? device.observe(place))??.key == key {
            device.folders.note(key, at: place, unlessMovedFrom: known)
        }
    }

    /// A program has removed the folder since it was found, and tells of it: whatever it says, nothing is to be read there.
    private func hasGone(_ key: InodeKey) -> Bool {
        guard let place = device.place(ofFolder: key) else { return false }
        do { guard try device.observe(place)?.key != key else { return false } } catch { return false }
        // Or has moved it in this very moment.
        guard device.folders.note(key, at: nil, unlessMovedFrom: place) else { return false }
        markScanned(place)
        return true
    }

    /// The database did not answer, which is not the folder's fault.
    private struct Unanswered: Error { var error: any Error }

    /// - Returns: whether there is something to look at.
    @discardableResult
    private func compare(_ state: LocalState, _ row: SyncedItem?, at place: LocalPlace) throws -> Bool {
        guard state.kind != .other else { return false }
        if row?.local?.key != state.key, state.linkCount == 1 || state.kind == .folder,
            try !device.synced(key: state.key).isEmpty
        {
            // It was moved while nobody looked.
            tracker.moves[state.key] = place
        }
        guard try !matches(state, row, at: place) else { return false }
        markScanned(place)
        return true
    }

    /// The deletion was announced and not done before this device died. Left in the log, it would prove a later accident to be an act.
    private func withdrawDeletion(of key: InodeKey, _ row: SyncedItem?) {
        var entries = [DeletionEntry.inode(key)]
        if let row, row.local?.key == key { entries.append(.item(row.id)) }
        // A program may have announced it since, and be about to do it.
        entries.removeAll { !formerDeletions.contains($0) || !device.isLogged($0) }
        guard !entries.isEmpty else { return }
        do { try device.unlog(entries) } catch {
            // On a full disk: whoever makes room there, looks for what to remove first. It has to be mounted for that.
            logger.warning("a deletion that was not done stays in the log", metadata: ["why": "\(error)"])
        }
    }

    private func folderItem(_ key: InodeKey) throws -> ItemID? {
        try device.synced(key: key).first { if case .folder = $0.content { true } else { false } }?.id
    }

    private func matches(_ state: LocalState, _ row: SyncedItem?, at place: LocalPlace) throws -> Bool {
        guard let row, let local = row.local, local.key == state.key else { return false }
        guard state.kind == .folder || state.kind == .package else {
            guard local == LocalEvidence(state) else { return try isAsAgreed(state, row, local, at: place) }
            return hasAgreedAttributes(state, row, at: place)
        }
        guard row.attributes.mode == state.mode else { return false }
        if state.kind == .package {
            guard local == LocalEvidence(state) else { return false }
            if changedPackages.contains(state.key) {
                placesOfChangedPackages[place] = state.key
                return false
            }
        }
        // Whatever comes into a folder moves its change time, which tells nothing, whether it is the same or not.
        return try extended(of: place, state) == row.attributes.extended
    }

    /// Its times vouch for its bytes, not for these: set within the tick in which the file came here or was looked at, they move no time,
    /// and the driver's word of that may be lost with the process. (A link has none.)
    private func hasAgreedAttributes(_ state: LocalState, _ row: SyncedItem, at place: LocalPlace) -> Bool {
        guard state.kind == .file else { return true }
        guard row.attributes.mode == state.mode else { return false }
        // What cannot be read is looked at by itself, and told of: it keeps no others from being looked at.
        do { return try extended(of: place, state) == row.attributes.extended } catch { return false }
    }

    /// A placeholder of whose times nothing is concluded: all that a program could have changed of it is compared.
    private func isAsAgreed(
        _ state: LocalState,
        _ row: SyncedItem,
        _ local: LocalEvidence,
        at place: LocalPlace
    ) throws -> Bool {
        guard let placeholder = state.placeholder, local == LocalEvidence(state).untrusted,
            row.attributes.modified == state.modified, row.attributes.mode == state.mode,
            Planner.agrees(.dataless(placeholder.revision, size: placeholder.size), with: row.content)
        else { return false }
        return try extended(of: place, state) == row.attributes.extended
    }

    /// What the look at it has told already is not asked for again.
    private func extended(of place: LocalPlace, _ state: LocalState) throws -> [[UInt8]: [UInt8]]? {
        state.mayHaveAttributes ? try device.extendedAttributes(of: place, state.key) : [:]
    }

    package func markScanned(_ place: LocalPlace) {
        tracker.aspects[place, default: []].formUnion([.content, .entry])
        handle(.changed(place, isOpen: false))
    }
}
