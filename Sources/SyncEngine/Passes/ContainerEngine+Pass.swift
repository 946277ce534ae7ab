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
    func runPass(_ works: [Work]) async {
        passIsRunning = true
        passCount += 1
        behindWriters.subtract(works)
        beginWatchingFills()
        drainChanges()
        let pass = Pass(seenUpTo: tracker.changeCount)
        for work in works {
            do { try tracker.collect(work, into: pass) } catch {
                logger.error("a place cannot be looked at", metadata: ["what": "\(work)", "why": "\(error)"])
                pass.verdicts[work] = .failed
            }
        }
        do {
            await readSmallFiles(pass)
            let decided = tracker.decide(pass)
            for candidate in decided.transfers { beginTransfer(candidate) }
            try await send(decided.sends, pass)
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
        let (verdicts, changed) = tracker.settle(pass, works)
        if syncCount > 0 {
            for work in works where verdicts[work] == .done || verdicts[work] == .sent { finishedIn[work] = passCount }
        }
        for place in changed { handle(.changed(place, isOpen: false)) }
        handle(.passEnded(verdicts))
    }

    func endTransfer(_ item: ItemID) {
        transferTasks[item] = nil
        tracker.transferring.remove(item)
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
        if tracker.snapshots.contains(found.place) { return nil }
        if let path = path(of: found.place), !claims.engineMay(read: path) {
            let claims = claims
            let works = candidate.works
            Task {
                await claims.whenFree(path)
                for work in works { self.handle(.woken(work)) }
            }
            return .later(.seconds(30))
        }
        let age = found.state.modified.age(at: wallClock)
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
            let age = state.modified.age(at: wallClock)
            if age < Core.quietPeriod { return .later(Core.quietPeriod - age) }
        }
        return nil
    }

    func settled(_ item: ItemID, _ key: InodeKey?) {
        problems[item] = nil
        host.endCreating(key, item)
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

    /// Starts reading and uploading a large file beside the passes.
    private func beginTransfer(_ candidate: Candidate) {
        guard let found = candidate.found else { return }
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
        endTransfer(id)
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
