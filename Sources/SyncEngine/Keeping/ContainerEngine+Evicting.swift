import CLinux
import CloudClient
import Driver
import EngineCore
import Logging
import Reconciliation
import Replica
package import UbiquityModel

/// Giving up contents that the cloud has whole. What is unsent, open, pinned or claimed stays.
extension ContainerEngine {
    /// What is still on its way is given up as well, so that nothing comes back behind the answer.
    package func evict(_ path: ItemPath) async throws(EngineError) -> [EvictOutcome] {
        defer { roomMade() }
        drainChanges()
        readAhead.callOff()
        // Before the look: what becomes whole after it is in here.
        let coming = host.filler.coming()
        recordFilled()
        let items = try await walk(path).filter { $0.state.kind == .file || $0.state.kind == .package }
        let end = ContinuousClock.now + Self.closingTime
        for item in items {
            while mount?.isOpen(item.state.key) ?? false, ContinuousClock.now < end {
                try? await Task.sleep(for: Self.closingPause)
            }
        }
        var outcomes = await evict(items, coming, patientUntil: end)
        var looked = items
        // From here on: giving up many may have taken longer than that.
        let last = ContinuousClock.now + (core.connection == .live ? Self.recordingTime : Self.closingTime)
        while true {
            let refused = Set(outcomes.lazy.filter { [Self.changed, Self.unsent].contains($0.refusal) }.map(\.path))
            // Not what is new, which may be much.
            looked = looked.filter {
                refused.contains($0.path) && ($0.row?.local?.isDataless ?? false || isAsSynced($0))
            }
            guard !looked.isEmpty else { return outcomes }
            // The last of their content came just before it would have been given up: that is not recorded, or they were seen while they
            // became whole, or a pass that had seen them before has just written its rows, and has still to put them right.
            for item in looked { await host.filler.ended(item.state.key) }
            drainChanges()
            recordFilled()
            looked = looked.compactMap { try? resolve($0.path) }.filter(isAsSynced)
            guard !looked.isEmpty else { return outcomes }
            let paths = Set(looked.map(\.path))
            outcomes.removeAll { paths.contains($0.path) }
            outcomes += await evict(looked, host.filler.coming(), patientUntil: ContinuousClock.now + Self.closingTime)
            guard ContinuousClock.now < last else { return outcomes }
            try? await Task.sleep(for: Self.closingPause)
        }
    }

    /// Whether a file has what was last written down of it but for its change time, which moves when its content comes: no program
    /// has changed it, as far as that can be seen.
    private func isAsSynced(_ item: Resolved) -> Bool {
        guard item.state.kind == .file, let local = item.row?.local else { return false }
        return local.key == item.state.key && local.size == item.state.size && local.modified == item.state.modified
    }

    /// - Parameter coming: files that are dataless, and of which content is on its way.
    func evict(
        _ items: [Resolved],
        _ coming: Set<InodeKey>,
        patientUntil end: ContinuousClock.Instant
    ) async -> [EvictOutcome] {
        var outcomes: [EvictOutcome] = []
        var candidates: [(item: Resolved, row: SyncedItem, file: FileContent)] = []
        for item in items {
            if item.state.kind == .package {
                outcomes.append(await evictPackage(item))
            } else if item.state.isDataless, !coming.contains(item.state.key), !isPartlyHere(item.place) {
                outcomes.append(EvictOutcome(path: item.path, refusal: nil, isTemporary: false))
            } else if let (reason, isTemporary) = refusal(item) {
                outcomes.append(EvictOutcome(path: item.path, refusal: reason, isTemporary: isTemporary))
            } else if let row = item.row, case .file(let file) = row.content {
                candidates.append((item, row, file))
            }
        }
        for start in stride(from: 0, to: candidates.count, by: 500) {
            let group = Array(candidates[start..<min(candidates.count, start + 500)])
            outcomes += await evict(group, patientUntil: end)
        }
        return outcomes
    }

    static let isOpen = "open"
    static let isClaimed = "claimed by a program"
    static let isLinked = "linked more than once"
    static let unconfirmed = "cannot be confirmed to be in the cloud (offline)"
    static let changed = "changed meanwhile"
    private static let unsent = "not yet uploaded"

    /// The kernel says of a file that was closed that it was, but a moment later, and the longer the more the machine has to do.
    private static let closingTime = Duration.seconds(1)
    private static let closingPause = Duration.milliseconds(10)

    /// What looks at a file whose content has come, and writes it down, waits for the disk and for what is looked at before it.
    private static let recordingTime = Duration.seconds(5)

    private static let evictionsAtOnce = 8

    /// Whether a dataless file takes more room on the disk than its attributes may.
    nonisolated func isPartlyHere(_ place: LocalPlace) -> Bool {
        guard let folder = try? replica.tree.openFolder(key: place.folder) else { return false }
        var status = clinux_status()
        let descriptor = folder.raw
        guard place.name.withCString({ clinux_status_at(descriptor, $0, &status) }) == 0 else { return false }
        return status.blocks > 8
    }

    /// Whether a program has told of a change there that is not sent. What it did may have left the times as they were.
    func isChanged(at place: LocalPlace) -> Bool {
        let work = EngineCore.Work.place(place)
        return (core.isWaiting(work) || core.isTransferring(work)) && tracker.aspects[place] != nil
    }

    func refusal(_ item: Resolved) -> (String, isTemporary: Bool)? {
        if let reason = localOnlyReason(item) {
            return ("stays on this device: \(reason.description)", false)
        }
        guard let row = item.row, let remote = item.remote, let local = row.local, case .file(let file) = row.content
        else {
            return (Self.unsent, true)
        }
        if let placeholder = item.state.placeholder {
            guard placeholder.revision == file.revision, local.key == item.state.key else {
                return ("about to change", true)
            }
        } else if isChanged(at: item.place)
            || (item.state.kind == .package ? !local.describes(item.state) : local != LocalEvidence(item.state))
        {
            return (Self.unsent, true)
        }
        if file.content == nil || remote.isDeleted { return (Self.unsent, true) }
        if isPinned(row) { return ("pinned", false) }
        if item.state.linkCount > 1 { return (Self.isLinked, false) }
        if mount?.isOpen(item.state.key) ?? false { return (Self.isOpen, true) }
        if !claims.engineMay(write: item.path) { return (Self.isClaimed, true) }
        return nil
    }

    /// Whether what is at a place would be refused whenever it is asked for, as far as the disk and the database tell: for a program that
    /// asks by an attribute, and holds locks of the kernel meanwhile, so that nothing may be waited for.
    nonisolated func refusesForGood(toEvict place: LocalPlace) -> Bool {
        guard let folder = try? replica.tree.openFolder(key: place.folder) else { return false }
        guard let state = try? replica.tree.observe(in: folder.raw, place.name) else { return false }
        if state.kind == .file {
            if state.isDataless, !isPartlyHere(place) { return false }
            if state.linkCount > 1 { return true }
        }
        if let path = replica.folders.path(of: place.folder), LocalOnly.reason(for: path.appending(place.name)) != nil {
            return true
        }
        // Files that were exchanged are in two rows until both are sent.
        let rows = (try? replica.database.synced(key: state.key)) ?? []
        return !rows.isEmpty && rows.allSatisfy { isPinned($0) }
    }

    /// Asks the cloud whether it has these revisions whole, and gives up the contents of those that it has.
    private func evict(
        _ group: [(item: Resolved, row: SyncedItem, file: FileContent)],
        patientUntil end: ContinuousClock.Instant
    ) async -> [EvictOutcome] {
        let confirmed: [Bool]
        do {
            if core.connection != .live { throw EngineError.offline("") }
            confirmed = try await cloud.confirm(container.id, revisions: group.map { ($0.row.id, $0.file.revision) })
        } catch {
            return group.map {
                EvictOutcome(
                    path: $0.item.path,
                    refusal: Self.unconfirmed,
                    isTemporary: true
                )
            }
        }
        var outcomes = group.map {
            EvictOutcome(path: $0.item.path, refusal: "not whole in the cloud", isTemporary: true)
        }
        var changes = SyncedChanges()
        beginWatchingFills()
        defer { endWatchingFills() }
        // Each waits for the disk: several at a time, on the mount's apply threads.
        await withTaskGroup(of: (index: Int, refusal: String?, evicted: SyncedItem?).self) { tasks in
            var waiting = group.indices.filter { $0 < confirmed.count && confirmed[$0] }.makeIterator()
            func beginNext() {
                guard let index = waiting.next() else { return }
                let (item, row, file) = group[index]
                tasks.addTask {
                    let (refusal, evicted) = await self.evictOne(item, row, file, patientUntil: end)
                    return (index, refusal, evicted)
                }
            }
            for _ in 0..<Self.evictionsAtOnce { beginNext() }
            while let (index, refusal, evicted) = await tasks.next() {
                outcomes[index].refusal = refusal
                outcomes[index].isTemporary = refusal != nil
                if let evicted { changes.upserts.append(evicted) }
                beginNext()
            }
        }
        do {
            // A program may have changed one of the first, and that have been sent, before the last one had gone: what is agreed on now counts.
            changes.upserts = try changes.upserts.compactMap { evicted in
                guard var row = try replica.database.synced(evicted.id), row.content == evicted.content,
                    row.local?.key == evicted.local?.key
                else { return nil }
                row.local = evicted.local
                return row
            }
            try replica.database.apply(changes)
            try correctFilled(changes.upserts)
        } catch {
            // The placeholder itself says what it is: the next look at it writes the row.
            logger.warning("an eviction is not recorded", metadata: ["why": "\(error)"])
        }
        return outcomes
    }

    private func evictOne(
        _ item: Resolved,
        _ row: SyncedItem,
        _ file: FileContent,
        patientUntil end: ContinuousClock.Instant
    ) async -> (String?, SyncedItem?) {
        while true {
            let (refusal, evicted) = await evictOne(item, row, file)
            guard refusal == Self.isOpen, ContinuousClock.now < end else { return (refusal, evicted) }
            try? await Task.sleep(for: Self.closingPause)
        }
    }

    private func evictOne(_ item: Resolved, _ row: SyncedItem, _ file: FileContent) async -> (String?, SyncedItem?) {
        guard let mount else { return ("not mounted", nil) }
        // The cloud may have taken long to answer, and so may those before this one.
        if isPinned(row) { return ("pinned", nil) }
        // Whoever asks for a claim from here on is granted it after this, and then sees that it has gone.
        guard let token = claims.begin(engineWrite: item.path) else { return (Self.isClaimed, nil) }
        defer { claims.end(token) }
        let generation = UInt64.random(in: .min ... .max)
        var placeholder = Placeholder(
            revision: file.revision,
            generation: generation,
            size: item.state.size,
            modified: item.state.modified,
            mode: item.state.mode
        )
        if let present = item.state.placeholder {
            placeholder = present
            placeholder.generation = generation
        }
        let result = await withCheckedContinuation { continuation in
            mount.evict(in: item.place.folder, item.place.name, expecting: LocalEvidence(item.state), as: placeholder) {
                continuation.resume(returning: $0)
            }
        }
        switch result {
        case .success(let evicted):
            guard let state = evicted.state else { return (nil, nil) }
            var row = row
            row.local = LocalEvidence(state)
            forgetFilled(state.key)
            try? replica.database.removeRanges([row.id])
            return (nil, row)
        case .failure(.busy): return (Self.isOpen, nil)
        case .failure(.stale), .failure(.notEmpty): return (Self.changed, nil)
        case .failure(.system(let error)): return ("\(error)", nil)
        }
    }
}
