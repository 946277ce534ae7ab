import Logging
import Reconciliation
import UbiquityModel

/// A pass: look, decide, read, send, apply, record. Long transfers are started here and go on beside.
extension Synchronizer {
    /// - Parameter works: What `EngineCore` asked a pass for. What programs did until now has been noted.
    package func run(_ works: [Work]) async {
        isRunningPass = true
        passCount += 1
        behindWriters.subtract(works)
        let pass = Pass(seenUpTo: tracker.changeCount, began: device.wallClock)
        device.askingTogether {
            for work in works { look(work, into: pass) }
            lookIntoFolders(pass)
        }
        do {
            await readSmallFiles(pass)
            tracker.distrust(pass, isComplete: hearPrograms())
            waitForUnreadFolders(pass)
            var decided: (sends: [PlannedSend], transfers: [Candidate]) = ([], [])
            device.askingTogether { decided = tracker.decide(pass) }
            tellWhatIsNowhere(pass)
            lookIntoSuccessors(pass)
            lookIntoReturned(pass)
            for candidate in decided.transfers { beginTransfer(candidate) }
            let unsent = try await trySending(decided.sends, pass)
            if unsent != nil { leaveContents(pass) }
            await apply(pass)
            if let unsent { throw unsent }
            try await record(pass)
            lookAtUnrecorded()
            if isCloudRestored { device.connectionFailed(RestoredCloud()) }
        } catch {
            await end(pass, after: error)
        }
        device.haveAppeared()
        isRunningPass = false
        releaseSettledDeletions(pass)
        let gone = deletedMeanwhile(pass)
        let (verdicts, changed, woken) = tracker.settle(pass, works)
        storeUnwitnessed()
        forgetLookedAtPackages()
        if !uploaded.isEmpty {
            // What was read of it was of no use, if it is still there.
            for case .place(let place) in works where verdicts[.place(place)] == .done { uploaded[place] = nil }
        }
        if notesFinished {
            for work in works where verdicts[work] == .done || verdicts[work] == .sent { finishedIn[work] = passCount }
        }
        for place in changed { handle(.changed(place, isOpen: false)) }
        lookAtWhatLayInFormerFolders(pass)
        lookAtFormerPackages(pass)
        lookIntoStrangeFolders(pass)
        lookAtWhatWasIgnored(pass)
        handle(.passEnded(verdicts))
        for (place, delay) in pass.lookLaterAt.sorted(by: { $0.key < $1.key }) {
            handle(.due(.place(place), after: delay))
        }
        let others = gone + lookedAtAfterPass + takeOwnInPass() + pass.all.filter(\.leavesAnnouncement).map(\.id)
        lookedAtAfterPass = []
        if !others.isEmpty { handle(.pendingLoaded(others, isLast: false)) }
        for work in woken { handle(.woken(work)) }
        // Whose turn it was may have had no use for it.
        admitTransfers()
        hurryWhatFailed(pass, works, verdicts)
    }

    /// What others have done does not depend on what this device could send.
    /// - Returns: why the connection is none.
    private func trySending(_ sends: [PlannedSend], _ pass: Pass) async throws -> (any Error)? {
        do { try await send(lasting(sends), pass) } catch {
            guard device.isOfConnection(error) else { throw error }
            for send in sends where send.candidate.verdict == nil && send.candidate.applies.isEmpty {
                send.candidate.verdict = .failed
            }
            return error
        }
        return nil
    }

    /// Contents would be waited for in vain, one after the other.
    private func leaveContents(_ pass: Pass) {
        for candidate in pass.all where candidate.verdict == nil && candidate.found?.state.isDataless == false {
            let replaces = candidate.applies.contains { if case .planned(.replace) = $0 { true } else { false } }
            if replaces { candidate.verdict = .failed }
        }
    }

    /// Nothing waits for it, but somebody may look for it: a server was restored, and the file has gone from the disk as well.
    private func tellWhatIsNowhere(_ pass: Pass) {
        for item in pass.changes.removals {
            guard let candidate = pass.candidates[item], candidate.remote == nil, !candidate.deletionIsProven,
                let row = candidate.synced
            else { continue }
            logger.warning(
                "it is neither here nor in the cloud any more: other devices may bring it back",
                metadata: ["name": "\(row.place.name)"]
            )
            // Whoever waited for news of it would wait in vain.
            for work in (tracker.waitingForNews.removeValue(forKey: item) ?? []).sorted() { handle(.woken(work)) }
        }
    }

    /// Items whose rows lead to what a program has deleted while this pass had them: it was told when no row did.
    private func deletedMeanwhile(_ pass: Pass) -> [ItemID] {
        guard !tracker.freshDeletions.isEmpty else { return [] }
        return pass.changes.upserts.filter { row in
            row.local.map { tracker.freshDeletions.contains($0.key) } ?? false
        }.map(\.id)
    }

    private func look(_ work: Work, into pass: Pass) {
        if work == .item(.root) {
            pass.verdicts[work] = lookIntoRoot()
            return
        }
        do { try tracker.collect(work, into: pass) } catch {
            logger.error("a place cannot be looked at", metadata: ["what": "\(work)", "why": "\(error)"])
            pass.verdicts[work] = .failed
        }
    }

    /// An item that is right by now may have been the wrong one for long, and be tried again late: that is over as well. So is what waited at a
    /// place where something else is from now on.
    private func hurryWhatFailed(_ pass: Pass, _ works: [Work], _ verdicts: [Work: Verdict]) {
        guard core.holdsUp else { return }
        for candidate in pass.all where candidate.verdict == .done || candidate.verdict == .sent {
            let item = Work.item(candidate.item)
            if core.hasFailed(item), !works.contains(item) { handle(.woken(item)) }
            guard !candidate.applies.isEmpty, let found = candidate.found else { continue }
            let place = Work.place(found.place)
            if core.isHeldUp(place), !works.contains(place) { handle(.woken(place)) }
        }
        for case .place(let place) in works {
            let isSettled = verdicts[.place(place)] == .done || verdicts[.place(place)] == .sent
            hurryWhoWaits(for: place, unlessIn: works, isSettled ? nil : Self.unsettledDelay)
        }
    }

    /// Where perhaps nothing has become of what has a name: who waits for it has that looked at each time that it is tried itself.
    private static var unsettledDelay: Duration { .seconds(1) }

    /// Something has become of what had a name: who is to come there, and could not because of that, need not be tried
    /// again late.
    /// - Parameter delay: `nil`: at once.
    func hurryWhoWaits(for place: LocalPlace, unlessIn works: [Work] = [], _ delay: Duration? = nil) {
        guard core.holdsUp, let parent = (try? tracker.knownItem(of: place.folder)) ?? nil else { return }
        for item in (try? device.remote(at: Place(parent: parent, name: place.name))) ?? [] {
            let work = Work.item(item.id)
            guard core.isHeldUp(work), !works.contains(work) else { continue }
            if let delay { handle(.due(work, after: delay)) } else { handle(.woken(work)) }
        }
    }

    /// A folder that was removed and made again, or comes back, goes on as the same item: no place leads any more to what lay in the
    /// former one.
    private func lookAtWhatLayInFormerFolders(_ pass: Pass) {
        for candidate in pass.all where candidate.synced?.content == .folder {
            // It may be on its way to another place first, and has its new row then. It may get there only when what lay in it is back, to make
            // room for what goes there.
            let isNew = candidate.formerKey != nil && continuedFolders.insert(candidate.id).inserted
            let isSettled = candidate.verdict == .done || candidate.verdict == .sent
            guard isSettled ? continuedFolders.remove(candidate.id) != nil : isNew else { continue }
            let lay = (try? device.syncedSubtree(of: candidate.id)) ?? []
            if !lay.isEmpty { handle(.pendingLoaded(lay.map(\.id), isLast: false)) }
        }
    }

    /// A package goes on as another folder, under the name that it had. What it was until now, a backup perhaps that some program leaves, is a plain
    /// folder where it lies, now that the row has gone from it: nobody tells of that, and dataless files in it have nothing else to stand for.
    private func lookAtFormerPackages(_ pass: Pass) {
        for candidate in pass.all where candidate.synced?.content.kind == .package {
            guard candidate.verdict == .done || candidate.verdict == .sent, let former = candidate.formerKey,
                former != candidate.synced?.local?.key, let place = device.place(ofFolder: former)
            else { continue }
            handle(.changed(place, isOpen: false))
        }
    }

    /// What lies in a folder that was found at the start, as nobody's, is looked at once that is an item, or stays here: a placeholder in it is
    /// the cloud's all the same.
    private func lookIntoStrangeFolders(_ pass: Pass) {
        guard !strangeFolders.isEmpty else { return }
        for key in pass.unsentFolders.sorted() where strangeFolders.contains(key) {
            guard let place = device.place(ofFolder: key) else { continue }
            strangeFolders.remove(key)
            foldersToScan.insert(key)
            handle(.changed(place, isOpen: false))
        }
        for candidate in pass.all where candidate.verdict == .done || candidate.verdict == .sent {
            guard let found = candidate.found, strangeFolders.contains(found.state.key),
                (try? tracker.knownItem(of: found.state.key)) ?? nil != nil
            else { continue }
            strangeFolders.remove(found.state.key)
            foldersToScan.insert(found.state.key)
            handle(.changed(found.place, isOpen: false))
        }
    }

    private func end(_ pass: Pass, after error: any Error) async {
        guard device.isOfConnection(error) else {
            logger.error("a pass failed", metadata: ["why": "\(error)"])
            return noteUnrecorded(pass)
        }
        logger.info("a pass ended early", metadata: ["why": "\(error)"])
        await recordWhatWasDone(pass)
        for candidate in pass.all where candidate.verdict == nil { candidate.verdict = .failed }
        device.connectionFailed(error)
    }

    /// What is not written down is looked at again, whatever came of it. What was put somewhere has no row that leads to it.
    private func noteUnrecorded(_ pass: Pass) {
        for candidate in pass.all where candidate.verdict != .transferring { candidate.verdict = .failed }
        // By its row its folder may be another inode: of a disk that was copied, say.
        unrecorded.formUnion(pass.written)
        // What is asked for in such a folder meanwhile may belong to nobody, if it goes on as another item.
        strangeFolders.formUnion(pass.localFolders.values)
        for row in pass.changes.upserts {
            guard let folder = pass.localFolders[row.place.parent] ?? tracker.folderKey(of: row.place.parent) else {
                continue
            }
            unrecorded.insert(LocalPlace(folder: folder, name: row.place.name))
        }
    }

    /// When rows can be written again, and not before: it would be tried without end.
    private func lookAtUnrecorded() {
        guard !unrecorded.isEmpty else { return }
        let places = unrecorded.sorted()
        unrecorded = []
        for place in places { handle(.changed(place, isOpen: false)) }
    }

    // MARK: Recording

    /// A row of the synced tree is written only after the inode that it describes, with its data and its name, is durable; a lost row is
    /// harmless, since equal content is agreement (architecture section 4, "Order").
    private func record(_ pass: Pass) async throws {
        forgetDeletions(pass)
        guard !pass.changes.isEmpty || !pass.answered.isEmpty else { return }
        try forgetSentLinks(pass)
        let record = PassRecord(
            changes: pass.changes,
            answered: pass.answered,
            manifests: pass.manifests,
            written: pass.written,
            folders: pass.foldersTouched,
            deletions: pass.committedDeletions
        )
        try await device.record(record)
        for item in pass.changes.answeredDeletions { unansweredDeletions[item] = nil }
        if !pass.answered.isEmpty || !pass.changes.removals.isEmpty { handle(.remoteChanged) }
    }

    /// After a lost connection: what was committed before stays committed.
    private func recordWhatWasDone(_ pass: Pass) async {
        do { try await record(pass) } catch {
            logger.error("what was synced is not recorded", metadata: ["why": "\(error)"])
            noteUnrecorded(pass)
        }
    }

    // MARK: Reading

    /// Reads the small files whose content must be known.
    private func readSmallFiles(_ pass: Pass) async {
        var candidates: [Candidate] = []
        var wanted: [WantedFile] = []
        for candidate in pass.all where candidate.verdict == nil && candidate.read == nil {
            guard let found = candidate.found, case .unread(let size) = found.content else { continue }
            if !uploaded.isEmpty, let known = uploaded[found.place], known.state == found.state {
                candidate.read = known
                uploaded[found.place] = nil
                continue
            }
            if !lackingParts.isEmpty,
                lackingParts.removeValue(forKey: found.place) == LocalEvidence(found.state)
            {
                partsAreMissing(candidate)
                continue
            }
            if let wait = quietWait(candidate, found, pass) {
                candidate.verdict = wait
                candidate.waitsForPrograms = true
                continue
            }
            guard size <= Device.smallFile else { continue }
            candidates.append(candidate)
            wanted.append(toRead(found))
        }
        guard !wanted.isEmpty else { return }
        for (candidate, result) in zip(candidates, await device.read(wanted)) { note(result, candidate) }
    }

    private func toRead(_ found: Candidate.Found) -> WantedFile {
        device.collectDirty(found.state.key)
        return WantedFile(place: found.place, state: found.state, hasWriter: device.hasWriter(found.state.key))
    }

    private func note(_ result: Result<ReadContent, ReadFailure>, _ candidate: Candidate) {
        switch result {
        case .success(let content):
            candidate.read = content
            let looked = candidate.found?.state.changed
            candidate.found?.state = content.state
            // What has changed since may be an attribute, of which this pass knows nothing: by its row it must not be as it was looked at.
            if let looked { candidate.found?.state.changed = looked }
            candidate.found?.attributes.modified = content.state.modified
            candidate.found?.attributes.mode = content.state.mode
        case .failure(.changed):
            candidate.verdict = .later(.milliseconds(50))
        case .failure(.lacking): partsAreMissing(candidate)
        case .failure(.unreadable(let why)):
            noteProblem(candidate, "cannot be read: \(why)")
            candidate.verdict = .failed
        }
    }

    /// Starts reading and sending a large file beside the passes.
    private func beginTransfer(_ candidate: Candidate) {
        guard let found = candidate.found else { return }
        device.beginTransfer(toRead(found), of: candidate.id, candidate.works)
    }

    /// A file that somebody is still writing, or a database that is in use, is left alone until it has been quiet.
    private func quietWait(_ candidate: Candidate, _ found: Candidate.Found, _ pass: Pass) -> Verdict? {
        if tracker.snapshots.contains(found.place) { return nil }
        if let path = device.path(of: found.place), !device.mayRead(path) {
            device.wake(candidate.works, whenFree: path)
            return .later(EngineCore.claimPause)
        }
        if found.state.kind == .package { return packageWait(candidate, found.state) }
        let age = age(of: found.state)
        if device.hasWriter(found.state.key), age < EngineCore.quietPeriod {
            waitingForClose[found.state.key, default: []].formUnion(candidate.works)
            return .later(EngineCore.quietPeriod - age)
        }
        return tickWait(found.state, pass) ?? databaseWait(found.place)
    }

    /// Whoever changes a file once more within one tick of the disk's clock leaves no trace of that on it, and the driver's word of it may be
    /// lost with this process: what was looked at before the tick was over would be taken for unchanged ever after.
    private func tickWait(_ state: LocalState, _ pass: Pass) -> Verdict? {
        // Changed in the time to come: the clock was set back since, and nobody waits for it to get there again.
        guard pass.began.age(at: state.changed) < .seconds(1) else { return nil }
        let rest = device.timestampTick - state.changed.age(at: pass.began)
        return rest > .zero ? .later(rest) : nil
    }

    /// A change of a package is complete when nothing in it has changed for a while, and nobody is about to (semantics section 5).
    private func packageWait(_ candidate: Candidate, _ state: LocalState) -> Verdict? {
        let rest = tracker.quietRest(of: state)
        if rest > .zero { return .later(rest) }
        guard device.hasWriter(state.key) else { return nil }
        if let place = candidate.found?.place { waitingForPackage[place, default: []].formUnion(candidate.works) }
        // To look at all of a package takes a while, and the last one who closes a file in it is told of.
        return .later(EngineCore.openPackagePause)
    }

    /// SQLite's files go together, when none has a writable handle and all have been quiet for a while.
    private func databaseWait(_ place: LocalPlace) -> Verdict? {
        let base = LocalOnly.databaseOfCompanion(place.name) ?? place.name
        func file(_ name: Name) -> LocalState? {
            let state = (try? device.observe(LocalPlace(folder: place.folder, name: name))) ?? nil
            return state?.kind == .file ? state : nil
        }
        let companions = LocalOnly.databaseCompanions(of: base).compactMap(file)
        guard !companions.isEmpty, let database = file(base) else { return nil }
        for state in companions + [database] {
            if device.hasWriter(state.key) { return .later(EngineCore.quietPeriod) }
            let age = age(of: state)
            if age < EngineCore.quietPeriod { return .later(EngineCore.quietPeriod - age) }
        }
        return nil
    }

    /// How long ago it was last written to: not by its own time, which programs set as they like, and which may come from another device.
    private func age(of state: LocalState) -> Duration {
        let now = device.wallClock
        // Changed in the time to come: the clock was set back since, and nobody waits for it to get there again.
        if now.age(at: state.changed) > .seconds(1) { return EngineCore.quietPeriod }
        return state.changed.age(at: now)
    }
}
