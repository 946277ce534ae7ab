import Logging
import Reconciliation
package import UbiquityModel

import struct SystemPackage.Errno

/// What others changed, applied here: prepared beside the tree, published by one rename that checks what it replaces.
extension Synchronizer {
    /// Applies that run at the same time.
    private static var width: Int { 8 }
    /// New files that are published one after the other, without a word to the engine between.
    private static var appearances: Int { 64 }
    static var staleDelay: Duration { .milliseconds(30) }

    func apply(_ pass: Pass) async {
        let waiting = pass.all.filter { $0.verdict == nil && !$0.applies.isEmpty }
        guard !waiting.isEmpty else { return }
        let structural = waiting.filter(isStructural).map { ($0, applyDepth($0)) }
        // Folders come into being from the top down and go from the bottom up; files in between, side by side.
        for (candidate, _) in structural.filter({ !vanishes($0.0) }).sorted(by: { $0.1 < $1.1 }) {
            await apply(candidate, pass)
        }
        let files = waiting.filter { !isStructural($0) }
        pass.brought = await bring(files, pass)
        let (appearing, others) = (files.filter(onlyAppears), files.filter { !onlyAppears($0) })
        for group in groups(of: Self.appearances, in: appearing) { await appear(group, pass) }
        for group in groups(of: Self.width, in: others) { await applyTogether(group, pass) }
        for (candidate, _) in structural.filter({ vanishes($0.0) }).sorted(by: { $0.1 > $1.1 }) {
            await apply(candidate, pass)
        }
        // What did not appear after all.
        for (_, staged) in pass.brought { device.discard(staged) }
        pass.brought = [:]
    }

    private func groups(of count: Int, in candidates: [Candidate]) -> [[Candidate]] {
        stride(from: 0, to: candidates.count, by: count).map {
            Array(candidates[$0..<min(candidates.count, $0 + count)])
        }
    }

    /// The engine takes each up again where its disk work ends; nothing of the candidates is shared across threads.
    private func applyTogether(
        _ group: [Candidate],
        _ pass: Pass,
        isolation: isolated (any Actor)? = #isolation
    ) async {
        let ids = group.map(\.id)
        let box = PassBox(synchronizer: self, pass: pass)
        await withTaskGroup(of: Void.self) { tasks in
            for id in ids { tasks.addTask { await box.apply(id, isolation: isolation) } }
        }
    }

    /// Carries the pass across tasks that all run where the engine does.
    ///
    /// `@unchecked Sendable`: nothing but `apply` looks into it, and that runs in the isolation of the pass.
    private struct PassBox: @unchecked Sendable {
        let synchronizer: Synchronizer
        let pass: Pass

        func apply(_ id: ItemID, isolation: isolated (any Actor)?) async {
            if let candidate = pass.candidates[id] { await synchronizer.apply(candidate, pass) }
        }
    }

    private func isStructural(_ candidate: Candidate) -> Bool {
        let kind = candidate.remote?.content.kind ?? candidate.synced?.content.kind
        if kind == .folder { return true }
        return candidate.applies.contains { step in
            switch step {
            case .planned(.move), .aside, .asideAsAnother: true
            case .refer, .planned(.appear), .planned(.replace), .planned(.attributes), .planned(.vanish): false
            }
        }
    }

    private func onlyAppears(_ candidate: Candidate) -> Bool { candidate.applies.count == 1 && candidate.appears }

    private func vanishes(_ candidate: Candidate) -> Bool {
        candidate.applies.contains { if case .planned(.vanish) = $0 { true } else { false } }
    }

    private func applyDepth(_ candidate: Candidate) -> Int {
        if let found = candidate.found { return device.folders.path(of: found.place.folder)?.names.count ?? 0 }
        return remotePath(of: candidate.id).names.count
    }

    private func apply(_ candidate: Candidate, _ pass: Pass) async {
        for step in candidate.applies where candidate.verdict == nil {
            switch step {
            case .aside: await moveAside(candidate, pass)
            case .asideAsAnother: await leave(candidate, pass)
            case .refer(let remote): await refer(candidate, to: remote)
            case .planned(.appear): await makeAppear([candidate], pass)
            case .planned(.replace): await replace(candidate, pass)
            case .planned(.move(let place)): await move(candidate, to: place, pass)
            case .planned(.attributes(let changes)): await setAttributes(changes, candidate, pass)
            case .planned(.vanish): await vanish(candidate, pass)
            }
        }
        conclude(candidate, pass)
    }

    func conclude(_ candidate: Candidate, _ pass: Pass) {
        guard candidate.verdict == nil else { return }
        candidate.verdict = .done
        // What was announced here is the same content by now, and no step was needed for that: it has still to be agreed on.
        // So has what was sent before without an answer.
        if let row = pass.syncedRow(candidate.id), let remote = candidate.remote,
            AgreedItem(place: row.place, content: row.content, attributes: row.attributes) != AgreedItem(remote)
        {
            candidate.verdict = .later(.milliseconds(10))
        }
    }

    // MARK: Steps

    /// By what is there, or by what is about to come there with its content.
    func isTaken(_ place: LocalPlace, _ target: Place) -> Bool {
        if ((try? device.observe(place)) ?? nil) != nil { return true }
        return ((try? device.remote(at: target)) ?? []).contains { !$0.isAnnounced }
    }

    func stage(_ candidate: Candidate, _ remote: RemoteItem) async -> String? {
        // Whoever opens it at once finds its content, although its row is written later.
        if case .file(let file) = remote.content { device.noteRevision(file.revision, of: remote.id) }
        do { return try await device.stage(remote) } catch {
            noteDiskProblem(candidate, error)
            return nil
        }
    }

    /// New content for what is here. Dataless stays dataless; what is whole is downloaded first.
    private func replace(_ candidate: Candidate, _ pass: Pass) async {
        guard let remote = candidate.remote, let found = candidate.found, let path = device.path(of: found.place) else {
            candidate.verdict = .later(.seconds(1))
            return
        }
        let staged: String
        if found.state.kind == .package, device.hasWriter(found.state.key) {
            wait(candidate.works, forWriterOf: found.state.key)
            candidate.verdict = .later(EngineCore.quietPeriod)
            return
        }
        if case .file(let file) = remote.content, !found.state.isDataless {
            guard !wasWritten(found, since: pass) else {
                candidate.verdict = .again
                return
            }
            guard file.content != nil else {
                // Announced only: the old content stays until the new one is complete.
                candidate.verdict = .later(.seconds(5))
                return
            }
            let wanted = WantedContent(
                remote: remote,
                file: file,
                place: found.place,
                evidence: LocalEvidence(found.state),
                row: candidate.synced,
                works: candidate.works
            )
            switch await device.wholeContent(wanted) {
            case .staged(let name): staged = name
            case .not(let verdict):
                candidate.verdict = verdict
                return
            }
        } else {
            guard let name = await stage(candidate, remote) else { return }
            staged = name
        }
        guard !wasWritten(found, since: pass) else {
            device.discard(staged)
            candidate.verdict = .again
            return
        }
        let evidence = LocalEvidence(found.state)
        let (folder, name) = (found.place.folder, found.place.name)
        let mutation =
            found.state.kind == .package
            ? Mutation.replacePackage(
                staged: staged,
                parent: folder,
                name: name,
                expecting: evidence,
                isPatient: isPatient(candidate)
            ) : Mutation.publish(staged: staged, parent: folder, name: name, expecting: .inode(evidence))
        if candidate.synced == nil { device.willAppear([(item: candidate.id, name: staged)]) }
        guard let state = await perform(mutation, path, candidate, staged: staged) else { return }
        if let own = candidate.synced?.local?.key, own != found.state.key {
            // It was another item's before a program put it here: what that one waited for is over.
            let others = ((try? device.synced(key: found.state.key)) ?? []).map(\.id).filter { $0 != candidate.id }
            for item in others { handle(.woken(.item(item))) }
            if !others.isEmpty { handle(.pendingLoaded(others, isLast: false)) }
        }
        // It is no more: nobody brings its content.
        wakeWhoWaits(forContentOf: found.state.key)
        if let old = candidate.synced, case .file(let file) = old.content {
            device.noteRevision(file.revision, of: candidate.id)
        }
        await settleApplied(remote, state, found.place, pass)
        candidate.found?.state = state
        if tracker.moves[found.state.key] == found.place {
            // By its row it would be looked for at the name that it had before.
            tracker.moves[found.state.key] = nil
            tracker.moves[state.key] = found.place
        }
        if var row = pass.syncedRow(candidate.id) {
            // The place is a step of its own, unless both sides have moved it there.
            if Place(parent: found.parent, name: found.place.name) != remote.place {
                row.place = candidate.synced?.place ?? row.place
            }
            pass.setRow(row)
            candidate.synced = row
        }
    }

    /// Of who writes as many bytes and sets the time back, only the driver tells: a package's evidence has no change times, which linking
    /// moves, and those of a file that was looked at for another reason say nothing.
    private func wasWritten(_ found: Candidate.Found, since pass: Pass) -> Bool {
        guard found.state.kind == .package || found.state.kind == .file && !found.state.isDataless else { return false }
        // A move under way is found by the act itself.
        _ = hearPrograms()
        guard let change = tracker.changedAt[found.place], change > pass.seenUpTo else { return false }
        // Whoever only had it open for writing has written nothing.
        return tracker.aspects[found.place] != .closed
    }

    /// Programs open the files of a package one by one: it is not replaced in the middle of that, but they cannot hold it up for ever.
    private static var patience: Duration { .seconds(30) }

    private func isPatient(_ candidate: Candidate) -> Bool {
        guard let since = busySince[candidate.id] else { return true }
        return device.now - since < Self.patience
    }

    private func setAttributes(_ changes: AttributeChanges, _ candidate: Candidate, _ pass: Pass) async {
        // Attributes that have no room on this disk keep nothing else from being set.
        var others = changes
        others.extended = nil
        // Where the kernel checks permissions, nobody sets attributes of what may not be written to: such a mode comes last.
        let isModeLast = changes.extended != nil && (changes.mode.map { $0 & 0o200 == 0 } ?? false)
        if isModeLast { others.mode = nil }
        if !others.isEmpty { await set(others, candidate, pass) }
        guard let extended = changes.extended, candidate.verdict == nil else { return }
        await set(AttributeChanges(extended: extended), candidate, pass)
        guard isModeLast, candidate.verdict == nil else { return }
        await set(AttributeChanges(mode: changes.mode), candidate, pass)
    }

    private func set(_ changes: AttributeChanges, _ candidate: Candidate, _ pass: Pass) async {
        guard let found = candidate.found, var row = candidate.synced, let path = device.path(of: found.place) else {
            // A folder above may not be known yet: a scan could not read what it lies in.
            candidate.verdict = .later(.seconds(1))
            return
        }
        var extended: (set: [[UInt8]: [UInt8]], remove: [[UInt8]])?
        if let wanted = changes.extended {
            let removed = found.attributes.extended.keys.filter { wanted[$0] == nil }
            extended = (wanted, removed.sorted { $0.lexicographicallyPrecedes($1) })
        }
        let mutation = Mutation.setAttributes(
            parent: found.place.folder,
            name: found.place.name,
            expecting: LocalEvidence(found.state),
            modified: changes.modified,
            mode: changes.mode,
            extended: extended
        )
        guard let state = await perform(mutation, path, candidate) else { return }
        if let modified = changes.modified { row.attributes.modified = modified }
        if let mode = changes.mode { row.attributes.mode = mode }
        if let extended = changes.extended { row.attributes.extended = extended }
        row.local = LocalEvidence(unheard: state)
        // Both sides have it there, and nobody had to move it.
        let place = Place(parent: found.parent, name: found.place.name)
        if place == candidate.remote?.place { row.place = place }
        pass.setRow(row)
        pass.written.append(found.place)
        candidate.synced = row
        candidate.found?.state = state
        // Here they are those of its other names as well, and others are told so.
        if state.hasOtherNames {
            tracker.changeCount += 1
            noteOtherNames(of: state.key, except: found.place, .attributes, isOpen: false)
        }
    }

    private func vanish(_ candidate: Candidate, _ pass: Pass) async {
        guard let found = candidate.found, let path = device.path(of: found.place) else {
            if candidate.found == nil || foldersToScan.isEmpty {
                pass.changes.removals.append(candidate.id)
            } else {
                // It is there, and a folder above is not known yet: without its row it would be new, and sent.
                candidate.verdict = .later(.seconds(1))
            }
            return
        }
        guard !wasWritten(found, since: pass) else {
            candidate.verdict = .again
            return
        }
        let isFolder = found.state.kind == .folder
        let taken = device.newStagedName()
        let mutation =
            found.state.kind == .package
            ? Mutation.removePackage(
                parent: found.place.folder,
                name: found.place.name,
                expecting: LocalEvidence(found.state),
                isPatient: isPatient(candidate),
                staged: taken
            )
            : Mutation.remove(
                parent: found.place.folder,
                name: found.place.name,
                expecting: LocalEvidence(found.state),
                isFolder: isFolder
            )
        guard await performed(mutation, path, candidate, pass) else { return }
        hurryWhoWaits(for: found.place)
        noteOtherContent(at: found.place)
        if candidate.synced == nil {
            logger.notice("a file whose content never came is taken away", metadata: ["path": "\(path)"])
            // The name was that of an item which is in the cloud.
            if let remote = candidate.remote, !remote.isDeleted { candidate.verdict = .again }
        }
        if isFolder || found.state.kind == .package { device.folders.remove(found.state.key) }
        pass.removeRow(candidate.id)
        pass.foldersTouched.insert(found.place.folder)
    }

    /// It is looked at anew: the content is fetched for it, and it is then a file like any other.
    private func refer(_ candidate: Candidate, to remote: RemoteItem) async {
        guard let found = candidate.found, let path = device.path(of: found.place) else {
            candidate.verdict = .later(.seconds(1))
            return
        }
        guard let staged = await stage(candidate, remote) else { return }
        let mutation = Mutation.publish(
            staged: staged,
            parent: found.place.folder,
            name: found.place.name,
            expecting: .inode(LocalEvidence(found.state))
        )
        guard await perform(mutation, path, candidate, staged: staged) != nil else { return }
        tracker.noteDelivered(found.state.key)
        tracker.newItems.remove(found.state.key)
        // That inode has ended, and nothing goes on from it here.
        tracker.moves[found.state.key] = nil
        // Who waited for its content need not: what is there now stands for another one.
        wakeWhoWaits(forContentOf: found.state.key)
        noteOtherContent(at: found.place)
        candidate.verdict = .again
    }

    /// Of what is still under the name of an item that made room: that item's.
    func nameToNumber(_ name: Name) -> Name {
        guard let item = TransitionalName.item(of: name) else { return name }
        let own = ((try? device.remote(item)) ?? nil)?.place.name
        if let own, !TransitionalName.matches(own) { return own }
        return (try? Name("recovered")) ?? name
    }

    // MARK: Acting

    func perform(
        _ mutation: Mutation,
        _ path: ItemPath,
        _ candidate: Candidate,
        staged: String? = nil
    ) async -> LocalState? {
        await perform(mutation, result: path, candidate, staged: staged)?.state
    }

    func perform(
        _ mutation: Mutation,
        result path: ItemPath,
        _ candidate: Candidate,
        staged: String? = nil
    ) async -> MutationResult? {
        noted(await act(mutation, at: path), path, candidate, staged: staged)
    }

    /// What came of it; `nil`, with the verdict that follows from it, if nothing did.
    func noted(
        _ result: Result<MutationResult, MutationFailure>?,
        _ path: ItemPath,
        _ candidate: Candidate,
        staged: String?
    ) -> MutationResult? {
        switch result {
        case .success(let result):
            staleCounts[candidate.id] = nil
            busySince[candidate.id] = nil
            return result
        case .failure(let failure):
            if let staged { device.discard(staged) }
            note(failure, candidate)
            return nil
        case nil:
            if let staged { device.discard(staged) }
            waitForClaim(path, candidate)
            return nil
        }
    }

    /// What the engine does to the tree, and what others of the folder are looked at because of that.
    func act(_ mutation: Mutation, at path: ItemPath) async -> Result<MutationResult, MutationFailure>? {
        let result = await device.perform(mutation, at: path)
        guard case .success? = result else { return result }
        switch mutation {
        case .move(let folder, let name, _, _, _), .remove(let folder, let name, _, _):
            lookBeside(LocalPlace(folder: folder, name: name))
        case .publish, .replacePackage, .removePackage, .setAttributes: break
        }
        return result
    }

    func performed(_ mutation: Mutation, _ path: ItemPath, _ candidate: Candidate, _ pass: Pass) async -> Bool {
        switch await act(mutation, at: path) {
        case .success:
            staleCounts[candidate.id] = nil
            return true
        case .failure(.notEmpty):
            noteNotEmpty(candidate)
            return false
        case .failure(let failure):
            note(failure, candidate)
            return false
        case nil:
            waitForClaim(path, candidate)
            return false
        }
    }

    private func waitForClaim(_ path: ItemPath, _ candidate: Candidate) {
        candidate.verdict = .later(.seconds(30))
        device.wake(candidate.works, whenFree: path)
    }

    func note(_ failure: MutationFailure, _ candidate: Candidate) {
        switch failure {
        case .stale:
            // Somebody was quicker. If that is so again and again, it is something that lasts.
            let count = (staleCounts[candidate.id] ?? 0) + 1
            staleCounts[candidate.id] = count
            candidate.verdict = count < 20 ? .later(Self.staleDelay) : .failed
        case .busy:
            candidate.verdict = .later(.seconds(5))
            if candidate.found?.state.kind == .package {
                candidate.verdict = .later(.seconds(1))
                if busySince[candidate.id] == nil { busySince[candidate.id] = device.now }
                // Whoever only reads in it is waited for.
                if let key = candidate.found?.state.key, !device.hasWriter(key) { return }
            }
            behindWriters.formUnion(candidate.works)
            if let key = candidate.found?.state.key { waitingForClose[key, default: []].formUnion(candidate.works) }
        case .notEmpty:
            candidate.verdict = .later(.milliseconds(200))
        case .system(let error):
            noteDiskProblem(candidate, error)
        }
    }

    private func noteDiskProblem(_ candidate: Candidate, _ error: any Error) {
        noteProblem(candidate, EngineCore.reason(error))
        candidate.verdict = .failed
    }

    /// A folder that was deleted elsewhere has something in it here: if that is new, the folder survives with it. Others have taken what they
    /// had moved out of it first, and it is only not there yet.
    private func noteNotEmpty(_ candidate: Candidate) {
        guard let found = candidate.found else { return }
        // If it cannot be read, it is looked at again.
        var somethingIsNew = false
        var names: [Name] = []
        if (try? device.forEachEntry(of: found.state.key) { name, _ in names.append(name) }) != nil {
            let attempts = staleCounts[candidate.id, default: 0]
            staleCounts[candidate.id] = attempts + 1
            somethingIsNew = names.contains { name in
                let place = LocalPlace(folder: found.state.key, name: name)
                guard let row = try? tracker.rows(at: place, in: candidate.id, nil).first,
                    let remote = (try? device.remote(row.id)) ?? nil
                else { return true }
                if behindWriters.contains(.item(row.id)) || behindWriters.contains(.place(place)) {
                    // It goes when that is closed, however long that takes.
                    behindWriters.formUnion(candidate.works)
                }
                // In the cloud nothing lies in a deleted folder: what is known to be in it has left it before, and the feed is about to tell
                // where to. What holds it up may last.
                return !remote.isDeleted && attempts > 100
            }
        }
        if somethingIsNew { tracker.revivals.insert(candidate.id) }
        let attempts = staleCounts[candidate.id, default: 0]
        candidate.verdict = .later(.milliseconds(attempts < 20 ? 50 : min(5000, 50 * (attempts - 18))))
    }

    // MARK: Recording

    func settleApplied(_ remote: RemoteItem, _ state: LocalState, _ place: LocalPlace, _ pass: Pass) async {
        if state.kind == .folder {
            noteFolderMoved(state.key, to: place)
            pass.localFolders[remote.id] = state.key
            tracker.madeFolders[state.key] = remote.id
        }
        pass.setRow(agreed(remote, state, place))
        pass.foldersTouched.insert(place.folder)
        pass.written.append(place)
    }

    /// Attributes that this disk has no room for are not agreed on: whoever looks next would take them for removed, and remove them everywhere.
    package func agreed(_ remote: RemoteItem, _ state: LocalState, _ place: LocalPlace) -> SyncedItem {
        var row = SyncedItem(remote, local: LocalEvidence(state))
        guard !row.attributes.extended.isEmpty, state.kind != .symlink,
            let there = (try? device.extendedAttributes(of: place, state.key)) ?? nil,
            !row.attributes.extended.keys.allSatisfy({ there[$0] != nil }),
            // Not what a program has removed since.
            let now = (try? device.observe(place)) ?? nil, now.key == state.key, isUnchanged(now, since: state)
        else { return row }
        row.attributes.extended = row.attributes.extended.filter { there[$0.key] != nil }
        return row
    }

    /// To publish a package moves its folder's change time.
    private func isUnchanged(_ now: LocalState, since state: LocalState) -> Bool {
        state.kind == .package ? LocalEvidence(now) == LocalEvidence(state) : now.changed == state.changed
    }

    /// A program may have renamed or removed a folder in the moment since it came there, and has said so already.
    func isStill(_ key: InodeKey, at place: LocalPlace) -> Bool {
        // What cannot be seen at this moment is where it was put.
        do { return try device.observe(place)?.key == key } catch { return true }
    }

    /// Nothing comes into what is, or lies in, a package by now: the folder is about to leave the cloud, or to come back without what was in it.
    func localFolder(of item: ItemID, _ pass: Pass) -> InodeKey? {
        guard let key = folder(of: item, pass) else { return nil }
        // Whoever learnt where folders are has not looked into packages: one that is nowhere may lie in one.
        guard key == device.rootKey || device.place(ofFolder: key) != nil else { return nil }
        // What cannot be told now is tried again.
        do { return try device.package(around: key) == nil ? key : nil } catch { return nil }
    }

    private func folder(of item: ItemID, _ pass: Pass) -> InodeKey? {
        if let made = pass.localFolders[item] { return made }
        // It may be another inode than its row says, and have moved in this very pass.
        if let found = pass.candidates[item]?.found, found.state.kind == .folder { return found.state.key }
        guard let key = device.populatedFolder(item) else { return nil }
        if ((try? device.synced(item)) ?? nil)?.local?.key == key { return key }
        // Taken for it by its name alone, which another one may have got in this pass.
        return pass.all.contains { $0.id != item && $0.found?.state.key == key } ? nil : key
    }
}

extension Candidate.Found {
    func rename(to name: Name) -> Mutation {
        .move(
            fromParent: place.folder,
            fromName: place.name,
            toParent: place.folder,
            toName: name,
            expecting: LocalEvidence(state)
        )
    }
}

extension EngineCore {
    /// For people: why something cannot be changed here.
    package static func reason(_ error: any Error) -> String {
        let isFull = error as? Errno == .noSpace || error as? Errno == .diskQuotaExceeded
        return isFull ? "no space left on this device" : "cannot be applied here: \(error)"
    }
}
