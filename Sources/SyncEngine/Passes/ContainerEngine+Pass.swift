import CloudClient
import Driver
import EngineCore
import Glibc
import Logging
import Reconciliation
import Replica
import SystemPackage
import UbiquityModel

/// A pass: look, decide, read, send, apply, record. Long transfers are started here and go on beside.
extension ContainerEngine {
    /// Large files that travel at the same time.
    private static let transferLimit = 3

    func runPass(_ works: [Work]) async {
        passIsRunning = true
        passCount += 1
        behindWriters.subtract(works)
        beginWatchingFills()
        drainChanges()
        let pass = Pass(seenUpTo: changeCount)
        for work in works {
            do { try observer.collect(work, into: pass) } catch {
                logger.error("a place cannot be looked at", metadata: ["what": "\(work)", "why": "\(error)"])
                pass.verdicts[work] = .failed
            }
        }
        do {
            await readSmallFiles(pass)
            let sends = decide(pass)
            try await send(sends, pass)
            await apply(pass)
            try await record(pass)
        } catch let error as CloudError {
            logger.info("a pass ended early", metadata: ["why": "\(error)"])
            await recordWhatWasDone(pass)
            for candidate in pass.all where candidate.verdict == nil { candidate.verdict = .failed }
            dropConnection(error)
        } catch {
            logger.error("a pass failed", metadata: ["why": "\(error)"])
            // What is not written down is looked at again, whatever came of it.
            for candidate in pass.all where candidate.verdict != .transferring { candidate.verdict = .failed }
        }
        passIsRunning = false
        endWatchingFills()
        for waiter in passWaiters { waiter.resume() }
        passWaiters = []
        handle(.passEnded(verdicts(of: pass, works)))
    }

    private func verdicts(of pass: Pass, _ works: [Work]) -> [Work: Verdict] {
        var verdicts = pass.verdicts
        var ended: [DeletionLog.Entry] = []
        for candidate in pass.all {
            let verdict = candidate.verdict ?? .done
            settle(candidate, verdict, pass, &ended)
            for work in candidate.works { verdicts[work] = worse(verdicts[work], verdict) }
        }
        for work in works {
            if verdicts[work] == nil { verdicts[work] = .done }
            if syncCount > 0, verdicts[work] == .done || verdicts[work] == .sent { finishedIn[work] = passCount }
            if case .place(let place) = work, verdicts[work] == .done || verdicts[work] == .sent,
                changedAt[place] ?? 0 <= pass.seenUpTo
            {
                // What was said since then is for the next pass.
                changedAt[place] = nil
                observer.aspects[place] = nil
                editedAt[place] = nil
                observer.vanished.remove(place)
                snapshots.remove(place)
            }
        }
        withdraw(ended)
        lookAgainAtLinks(pass)
        // Only what the core handed out may come back.
        return verdicts.filter { works.contains($0.key) }
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
            case .again: 4
            case .failed: 5
            case .transferring: 6
            }
        }
        return rank(one) >= rank(other) ? one : other
    }

    /// An inode was changed by another of its names while this pass looked at it.
    private func lookAgainAtLinks(_ pass: Pass) {
        guard !linkedChanges.isEmpty else { return }
        for candidate in pass.all {
            guard let found = candidate.found, let change = linkedChanges[found.state.key], change > pass.seenUpTo
            else { continue }
            changedAt[found.place] = change
            observer.aspects[found.place, default: []].formUnion([.content, .attributes])
            handle(.changed(found.place, isOpen: false))
        }
        linkedChanges = linkedChanges.filter { $0.value > pass.seenUpTo }
    }

    /// Deletions that the cloud knows, and those of files that it never knew.
    func withdraw(_ ended: [DeletionLog.Entry] = []) {
        var ended = ended
        // While a transfer or a commit is on its way, a row may still be written.
        if transferTasks.isEmpty {
            let strange = (try? replica.database.strange(among: Array(freshDeletions))) ?? []
            ended.append(contentsOf: strange.map { .inode($0) })
            freshDeletions = []
        }
        // One that stays in the log proves what has been done already.
        try? replica.deletions.remove(ended)
    }

    private func settle(
        _ candidate: Candidate,
        _ verdict: Verdict,
        _ pass: Pass,
        _ ended: inout [DeletionLog.Entry]
    ) {
        guard verdict == .done || verdict == .sent else { return }
        problems[candidate.id] = nil
        observer.absentSince[candidate.id] = nil
        host.endCreating(candidate.found?.state.key, candidate.id)
        if let key = candidate.found?.state.key {
            if observer.moves[key] == candidate.found?.place { observer.moves[key] = nil }
            if candidate.synced != nil || verdict == .sent { observer.newItems[key] = nil }
            if let former = candidate.formerKey, former != key {
                ended.append(contentsOf: [.inode(former), .replacing(former)])
            }
        }
        if let place = candidate.found?.place, changedAt[place] ?? 0 <= pass.seenUpTo {
            // It is there after all.
            ended.append(.item(candidate.id))
        }
        if candidate.found == nil, let key = candidate.synced?.local?.key {
            observer.moves[key] = nil
            ended.append(contentsOf: [.inode(key), .replacing(key)])
        }
    }

    // MARK: Reading

    /// Reads the small files whose content must be known, a few at a time.
    private func readSmallFiles(_ pass: Pass) async {
        var wanted: [(id: ItemID, place: LocalPlace, state: LocalState, hasWriter: Bool)] = []
        for candidate in pass.all where candidate.verdict == nil && candidate.read == nil {
            guard let found = candidate.found, case .unread(let size) = found.content else { continue }
            if let known = uploaded[found.place], known.state == found.state {
                candidate.read = known
                uploaded[found.place] = nil
                continue
            }
            if let wait = quietWait(candidate, found) {
                candidate.verdict = wait
                continue
            }
            guard size <= Uploader.smallFile else { continue }
            mount?.collectDirty(found.state.key)
            let hasWriter = mount?.hasWriter(found.state.key) ?? false
            wanted.append((candidate.id, found.place, found.state, hasWriter))
        }
        guard !wanted.isEmpty else { return }
        let uploader = uploader
        await withTaskGroup(of: (ItemID, Result<ReadContent, UploadError>).self) { group in
            var next = wanted.makeIterator()
            func add() {
                guard let job = next.next() else { return }
                group.addTask {
                    do throws(UploadError) {
                        return (
                            job.id,
                            .success(
                                try await uploader.readSmall(job.place, expecting: job.state, hasWriter: job.hasWriter)
                            )
                        )
                    } catch {
                        return (job.id, .failure(error))
                    }
                }
            }
            for _ in 0..<4 { add() }
            for await (id, result) in group {
                if let candidate = pass.candidates[id] { note(result, candidate) }
                add()
            }
        }
    }

    private func note(_ result: Result<ReadContent, UploadError>, _ candidate: Candidate) {
        switch result {
        case .success(let content):
            candidate.read = content
            candidate.found?.state = content.state
            candidate.found?.attributes.modified = content.state.modified
            candidate.found?.attributes.mode = content.state.mode
        case .failure(.changed):
            candidate.verdict = .later(.milliseconds(50))
        case .failure(.unreadable(let why)):
            noteProblem(candidate, "cannot be read: \(why)")
            candidate.verdict = .failed
        case .failure(.cloud(let error)):
            candidate.verdict = .failed
            logger.info("a file could not be sent", metadata: ["why": "\(error)"])
        }
    }

    /// A file that somebody is still writing, or a database that is in use, is left alone until it has been quiet.
    private func quietWait(_ candidate: Candidate, _ found: Candidate.Found) -> Verdict? {
        if snapshots.contains(found.place) { return nil }
        if let path = path(of: found.place), !claims.engineMay(read: path) {
            let claims = claims
            let works = candidate.works
            Task {
                await claims.whenFree(path)
                for work in works { self.handle(.woken(work)) }
            }
            return .later(.seconds(30))
        }
        let age = Duration.nanoseconds(max(0, wallClock.nanoseconds - found.state.modified.nanoseconds))
        let isOpen = mount?.hasWriter(found.state.key) ?? false
        if isOpen, age < Core.quietPeriod {
            waitingForClose[found.state.key, default: []].formUnion(candidate.works)
            return .later(Core.quietPeriod - age)
        }
        return databaseWait(found.place)
    }

    /// SQLite's files go together, when none has a writable handle and all have been quiet for a while.
    private func databaseWait(_ place: LocalPlace) -> Verdict? {
        let base = LocalOnly.databaseOfCompanion(place.name) ?? place.name
        let companions = LocalOnly.databaseCompanions(of: base).compactMap { name in
            (try? observe(LocalPlace(folder: place.folder, name: name))) ?? nil
        }
        guard !companions.isEmpty else { return nil }
        let database = (try? observe(LocalPlace(folder: place.folder, name: base))) ?? nil
        for state in companions + (database.map { [$0] } ?? []) {
            if mount?.hasWriter(state.key) ?? false { return .later(Core.quietPeriod) }
            let age = Duration.nanoseconds(max(0, wallClock.nanoseconds - state.modified.nanoseconds))
            if age < Core.quietPeriod { return .later(Core.quietPeriod - age) }
        }
        return nil
    }

    // MARK: Deciding

    /// What each candidate has to send; what it has to apply is kept for later in `applies`.
    private func decide(_ pass: Pass) -> [PlannedSend] {
        var sends: [PlannedSend] = []
        for candidate in pass.all where candidate.verdict == nil {
            if transferTasks[candidate.id] != nil {
                candidate.verdict = .later(.milliseconds(500))
                continue
            }
            switch decision(candidate) {
            case .nothing:
                candidate.verdict = .done
            case .agree:
                agree(candidate, pass)
            case .forget:
                pass.changes.removals.append(candidate.id)
                candidate.verdict = .done
            case .adopt(let rival):
                adopt(rival, candidate, pass)
            case .renameAside:
                candidate.applies = [.aside]
            case .unavailable:
                noteProblem(candidate, "its content is neither here nor in the cloud")
                candidate.verdict = .parked
            case .read:
                beginTransfer(candidate, isNew: false, &sends)
            case .send(let actions):
                if needsContent(actions), candidate.read == nil, case .unread? = candidate.found?.content {
                    beginTransfer(candidate, isNew: actions == [.create], &sends)
                } else {
                    sends.append(PlannedSend(candidate: candidate, actions: actions))
                }
            case .apply(let steps):
                candidate.applies = steps.map { .planned($0) }
            }
        }
        return sends
    }

    private func decision(_ candidate: Candidate) -> Decision {
        var agreed = candidate.agreed
        if refusedMoves.contains(candidate.id) || candidate.isInTransit, let local = candidate.local {
            agreed?.place = local.place
        }
        if revivals.contains(candidate.id), candidate.found?.state.kind == .folder, candidate.remote?.isDeleted ?? false
        {
            return .send([.revive])
        }
        if candidate.found == nil, candidate.synced == nil, let remote = candidate.remote, observer.isOwnAnnouncement(remote),
            case .file(let file) = remote.content
        {
            // The file went before its content was sent: the announcement is taken back.
            return .send([.delete(base: file.revision)])
        }
        var rival = candidate.rival
        if let known = rival, let local = candidate.local, let row = (try? replica.database.synced(known.id)) ?? nil {
            // This device has that item too: it is not this one made twice. If it had this name, it has left it, and that is sent;
            // else it is about to come here.
            guard row.place == local.place else { return .renameAside }
            rival = nil
        }
        return Planner.decide(
            local: candidate.local,
            synced: agreed,
            remote: candidate.remote,
            rival: rival,
            deletionIsLogged: candidate.deletionIsProven
        )
    }

    private func needsContent(_ actions: [Send]) -> Bool {
        actions.contains { action in
            switch action {
            case .create, .edit: true
            case .move, .attributes, .delete, .revive: false
            }
        }
    }

    private func agree(_ candidate: Candidate, _ pass: Pass) {
        candidate.verdict = .done
        guard let remote = candidate.remote, let found = candidate.found else { return }
        pass.changes.upserts.append(SyncedItem(remote, local: LocalEvidence(found.state)))
        if let manifest = candidate.read?.manifest, let content = candidate.read?.content {
            pass.manifests[content] = manifest
        }
        if observer.sending.removeValue(forKey: candidate.id) != nil { pass.changes.answered.append(candidate.id) }
        if found.state.kind == .file { pass.written.append(found.place) }
    }

    /// Made twice, the same both times: the local item continues the cloud's.
    private func adopt(_ rival: ItemID, _ candidate: Candidate, _ pass: Pass) {
        guard let found = candidate.found, let remote = candidate.rival, remote.id == rival else { return }
        var row = SyncedItem(remote, local: LocalEvidence(found.state))
        if let placeholder = found.state.placeholder, case .file(let file) = remote.content,
            (file.revision, file.size) != (placeholder.revision, placeholder.size)
        {
            // What an apply left half-way is an older state of that item, and no more than that is agreed on: the newer one is applied.
            let older = FileContent(revision: placeholder.revision, content: nil, size: placeholder.size)
            row.content = .file(older)
            row.attributes = found.attributes
        }
        pass.changes.upserts.append(row)
        if let read = candidate.read { pass.manifests[read.content] = read.manifest }
        pass.written.append(found.place)
        observer.newItems[found.state.key] = nil
        // What differs besides the content is compared once more, now as one item.
        candidate.verdict = .again
    }

    func noteProblem(_ candidate: Candidate, _ reason: String) {
        noteProblem(candidate.id, at: candidate.found?.place, reason)
    }

    func noteProblem(_ item: ItemID, at place: LocalPlace?, _ reason: String) {
        let shown = place.flatMap { path(of: $0) } ?? remotePath(of: item)
        problems[item] = ItemProblem(path: shown.description, reason: reason)
        logger.warning("an item cannot sync", metadata: ["path": "\(shown)", "why": "\(reason)"])
    }

    // MARK: Long transfers

    /// Starts reading and uploading a large file beside the passes; a new one is announced first.
    private func beginTransfer(_ candidate: Candidate, isNew: Bool, _ sends: inout [PlannedSend]) {
        guard let found = candidate.found else {
            candidate.verdict = .done
            return
        }
        if isNew, candidate.remote == nil {
            // The transfer begins in the next pass, when the others know the name.
            sends.append(PlannedSend(candidate: candidate, actions: [], isAnnouncement: true))
            return
        }
        guard transferTasks.count < Self.transferLimit else {
            candidate.verdict = .later(.milliseconds(200))
            return
        }
        candidate.verdict = .transferring
        let (id, place, state, works) = (candidate.id, found.place, found.state, candidate.works)
        mount?.collectDirty(state.key)
        let hasWriter = mount?.hasWriter(state.key) ?? false
        let shown = path(of: place)?.description ?? place.name.description
        transferTasks[id] = Task {
            await self.transfer(id, place, state, hasWriter: hasWriter, path: shown, works: works)
        }
    }

    private func transfer(
        _ id: ItemID,
        _ place: LocalPlace,
        _ state: LocalState,
        hasWriter: Bool,
        path: String,
        works: Set<Work>
    ) async {
        let token = meter.begin(id, path: path, direction: .upload, total: state.size)
        let verdict: Verdict
        do throws(UploadError) {
            uploaded[place] = try await uploader.sendLarge(place, expecting: state, hasWriter: hasWriter, token: token)
            verdict = .again
        } catch {
            switch error {
            case .changed: verdict = .later(.milliseconds(500))
            case .unreadable(let why):
                problems[id] = ItemProblem(path: path, reason: "cannot be read: \(why)")
                verdict = .failed
            case .cloud(let cloudError):
                noteCloudProblem(id, path, cloudError)
                verdict = .failed
            }
        }
        meter.end(token)
        transferTasks[id] = nil
        // Each piece of work that led to the item waits for this.
        for work in works { handle(.transferEnded(work, verdict)) }
    }

    func noteCloudProblem(_ id: ItemID, _ path: String, _ error: CloudError) {
        switch error {
        case .serverFull, .quotaExceeded, .rejected, .malformed, .tooNew, .notFound:
            problems[id] = ItemProblem(path: path, reason: "cannot be sent: \(error)")
        case .offline, .stalled, .revoked, .unauthorized, .wrongServer, .cancelled: break
        }
        logger.info("a transfer ended early", metadata: ["path": "\(path)", "why": "\(error)"])
    }
}
