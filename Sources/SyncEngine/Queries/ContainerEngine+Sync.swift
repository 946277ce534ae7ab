import CloudClient
import Driver
import EngineCore
import Logging
import Reconciliation
import Replica
import UbiquityModel

/// `sync`, `status` and `activity`.
extension ContainerEngine {
    package func status() -> EngineStatus {
        drainChanges()
        let counts = try? replica.database.counts()
        let totals = meter.totals
        var shown = problems.values.sorted { $0.path < $1.path }
        shown += tracker.ignoring.faults.compactMap { folder, fault in
            path(of: LocalPlace(folder: folder, name: IgnoreRules.name)).map {
                ItemProblem(path: $0.description, reason: fault)
            }
        }.sorted { $0.path < $1.path }
        shown += refusedItems.sorted().map {
            ItemProblem(path: "", reason: "in the cloud, but cannot be represented here: \($0)")
        }
        let conflicts = counts?.conflicted ?? 0 > 0 ? conflictSizes() : (bytes: 0, largest: [])
        return EngineStatus(
            connection: connectionState,
            connectionProblem: isSignedOut ? nil : connectionProblem,
            itemCount: counts.map { $0.synced + $0.cloudOnly } ?? 0,
            pendingCount: isSignedOut ? unsentWork.count : core.waitingCount + (counts?.pending ?? 0),
            conflictCount: counts?.conflicted ?? 0,
            conflictBytes: conflicts.bytes,
            largestConflicts: conflicts.largest,
            transfers: meter.all,
            problems: shown,
            heldDeletionCount: synchronizer.heldDeletions.count,
            bytesSent: totals.sent,
            bytesReceived: totals.received,
            keeping: keepingStatus()
        )
    }

    private func conflictSizes() -> (bytes: Int64, largest: [ConflictSize]) {
        let items = ((try? replica.database.conflicts()) ?? []).map { ($0, Sizes.sum($0.conflicts.map(\.size))) }
        let largest = items.sorted { $0.1 > $1.1 }.prefix(Self.largestConflicts)
        return (
            Sizes.sum(items.map(\.1)),
            largest.map { item, bytes in
                ConflictSize(path: remotePath(of: item.id), count: item.conflicts.count, bytes: bytes)
            }
        )
    }

    private static let largestConflicts = 3

    private var connectionState: EngineStatus.Connection {
        if isSignedOut { return .signedOut }
        return switch core.connection {
        case .live: .connected
        case .connecting, .listing: .connecting
        case .off: .offline
        case .waiting: .unreachable
        case .refused: .revoked
        }
    }

    package func activity() -> [TransferStatus] { meter.all }

    /// Returns when everything that is here now is in the cloud, and everything that the cloud knows now is applied here.
    package func sync(
        deadline: Duration?,
        progress: @escaping @Sendable (TransferProgress) -> Void
    ) async throws(EngineError) {
        guard !isSignedOut else { throw .signedOut }
        let end = deadline.map { ContinuousClock.now + $0 }
        snapshotOpenFiles()
        // What programs go on writing is sent again and again: once since now is enough. What they begin to change after now is not
        // waited for; what the work of now leads to is.
        let begun = synchronizer.passCount
        let changesSeen = tracker.changeCount
        let awaited = Set(core.unfinished)
        syncCount += 1
        synchronizer.notesFinished = true
        defer {
            syncCount -= 1
            if syncCount == 0 { synchronizer.finishedIn = [:] }
            synchronizer.notesFinished = syncCount > 0
        }
        let head = try await cloudHead(until: end)
        var behindSince: ContinuousClock.Instant?
        while true {
            try requireRunning()
            drainChanges()
            synchronizer.releaseIfRemoved()
            if !synchronizer.heldDeletions.isEmpty {
                throw .busy(
                    "\(synchronizer.heldDeletions.count) deletions are held: see `ubiquity deleted confirm` and `deleted undo`"
                )
            }
            switch core.connection {
            case .off: throw isSignedOut ? .signedOut : .offline("this device was switched offline")
            case .refused: throw .refused(connectionProblem ?? "the server refuses this device")
            case .waiting: _ = try await cloudHead(until: end)
            case .connecting, .listing, .live: break
            }
            let isSent = core.isAllUnfinished { work in
                (synchronizer.finishedIn[work] ?? 0) > begun
                    || (!awaited.contains(work) && isChanged(work, after: changesSeen))
            }
            if recordsPopulatedLater, core.isSettled { throw .failed("the device's database cannot be written") }
            if isSent, core.connection == .live, position.counter >= head, core.isSettled ? host.isDrained : true {
                guard isAllApplied() else {
                    handle(.remoteChanged)
                    if let failed = unsyncable() { throw .itemsInError(failed) }
                    try await pause(until: end)
                    continue
                }
                if let failed = unsyncable() { throw .itemsInError(failed) }
                return
            }
            if core.connection == .live, core.hasUnfinished {
                if let failed = unsyncable(), core.isAllUnfinished({ core.hasFailed($0) }) {
                    throw .itemsInError(failed)
                }
                if core.isAllUnfinished({ synchronizer.behindWriters.contains($0) }) {
                    let since = behindSince ?? .now
                    behindSince = since
                    if ContinuousClock.now - since >= Self.writersMoment {
                        throw .busy("changes of others wait for \(waitingNames().joined(separator: ", "))")
                    }
                } else {
                    behindSince = nil
                }
            }
            progress(currentProgress())
            try await pause(until: end)
        }
    }

    /// A writer that is just closing the file is none.
    private static let writersMoment = Duration.milliseconds(200)

    private func isChanged(_ work: Work, after seen: UInt64) -> Bool {
        guard case .place(let place) = work else { return false }
        return tracker.changedAt[place] ?? 0 > seen
    }

    /// Nothing differs any more, but for announcements whose name is taken until their content is known.
    private func isAllApplied() -> Bool {
        var last: ItemID?
        while true {
            guard let differing = try? replica.database.differences(after: last, limit: 100) else { return false }
            let isDone = differing.allSatisfy { $0.synced == nil && ($0.remote?.isAnnounced ?? false) }
            guard isDone, let end = differing.last?.id else { return isDone }
            last = end
        }
    }

    /// The items that will not get through by waiting.
    private func unsyncable() -> [String]? {
        let failed = problems.values.map { "\($0.path): \($0.reason)" }.sorted()
        return failed.isEmpty ? nil : failed
    }

    /// Until something may have changed: the engine settles, or a moment passes so that progress is shown and limits are kept.
    private func pause(until end: ContinuousClock.Instant?) async throws(EngineError) {
        if let end, ContinuousClock.now >= end { throw .timedOut(waitingFor: waitingNames()) }
        let limit = Duration.milliseconds(100)
        await withTaskGroup(of: Void.self) { group in
            group.addTask { try? await Task.sleep(for: limit) }
            group.addTask { await self.settledOrCancelled() }
            await group.next()
            group.cancelAll()
        }
        if Task.isCancelled { throw .busy("interrupted") }
    }

    /// While the engine stops nothing happens any more that could be waited for, and who waits keeps the replica from being mounted again.
    func requireRunning() throws(EngineError) {
        if synchronizer.isStopping { throw .busy("unmounted meanwhile") }
    }

    private func currentProgress() -> TransferProgress {
        let transfers = meter.all
        return TransferProgress(
            bytesDone: Sizes.sum(transfers.lazy.map(\.bytesDone)),
            bytesTotal: Sizes.sum(transfers.lazy.map(\.bytesTotal)),
            filesDone: 0,
            filesTotal: core.waitingCount
        )
    }

    /// Files that are open for writing are sent as they are now.
    private func snapshotOpenFiles() {
        drainChanges()
        for open in mount?.writableInodes() ?? [] {
            // What lies in a package is sent with it.
            let package = (try? tracker.view.package(around: open.parent)) ?? nil
            let place = package ?? LocalPlace(folder: open.parent, name: open.name)
            tracker.aspects[place, default: []].formUnion(.content)
            tracker.snapshots.insert(place)
            handle(.changed(place, isOpen: false))
        }
        for case .place(let place) in core.unfinished { tracker.snapshots.insert(place) }
        // What could not be sent is tried once more, and its reason said anew: it may have gone.
        if core.connection == .live { problems = [:] }
        handle(.hurried)
    }

    private func cloudHead(until end: ContinuousClock.Instant?) async throws(EngineError) -> UInt64 {
        var last = "the server cannot be reached"
        while true {
            try requireRunning()
            switch core.connection {
            case .off: throw .offline("this device was switched offline")
            case .refused: throw .refused(connectionProblem ?? "the server refuses this device")
            case .connecting, .listing, .live, .waiting: break
            }
            do throws(CloudError) {
                return try await cloud.changes(container.id, since: position, limit: 1).head.counter
            } catch {
                switch error {
                case .offline(let why), .stalled(let why): last = why
                case .revoked, .unauthorized: throw .refused("\(error)")
                case .notFound, .rejected, .serverFull, .quotaExceeded, .tooNew, .wrongServer, .malformed, .cancelled:
                    throw .failed("\(error)")
                }
            }
            if case .waiting = core.connection { throw .offline(last) }
            try await pause(until: end)
        }
    }

    private func waitingNames() -> [String] {
        var names: [String] = []
        for work in core.unfinished.prefix(20) {
            switch work {
            case .place(let place):
                let shown = path(of: place)?.description ?? place.name.description
                names.append(describe(shown, openAt: place))
            case .item(let item): names.append(remotePath(of: item).description)
            }
        }
        // A place and its item may both wait.
        return Set(names).sorted()
    }

    private func describe(_ path: String, openAt place: LocalPlace) -> String {
        guard let state = (try? observe(place)) ?? nil, mount?.hasWriter(state.key) ?? false else { return path }
        return "\(path) (open for writing)"
    }

    /// A lost connection ends what is in flight; the core learns of it once.
    func dropConnection(_ error: CloudError) {
        switch error {
        case .offline, .stalled, .revoked, .unauthorized, .wrongServer: reconnect(after: error)
        case .notFound, .rejected, .serverFull, .quotaExceeded, .tooNew, .malformed:
            // Until a commit is answered.
            problems[.root] = ItemProblem(path: "", reason: "\(error)")
        // Somebody has called it off, who knows it.
        case .cancelled: break
        }
    }
}
