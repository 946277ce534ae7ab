internal import CloudClient
internal import Driver
internal import Glibc
internal import SyncEngine
internal import UbiquityControl
internal import UbiquityModel

extension UbiquityService {
    func report() async -> ServiceReport {
        let credentials = cloud.credentials
        var mounts = [MountReport]()
        for entry in table.entries.sorted(by: { $0.container < $1.container }) { mounts.append(await report(entry)) }
        return ServiceReport(
            pid: getpid(),
            log: home.serviceLog,
            account: credentials.account,
            device: credentials.deviceName,
            server: credentials.url,
            serverIsEmbedded: serverIsEmbedded,
            isOffline: table.isOffline,
            mounts: mounts
        )
    }

    private func report(_ entry: MountTable.Entry) async -> MountReport {
        guard let present = mounted[entry.container] else {
            let failure = failures[entry.container]
            return MountReport(
                container: entry.container,
                mountPoint: entry.mountPoint,
                state: failure == nil ? .starting : .failed,
                failure: failure?.description
            )
        }
        let status = await present.engine.status()
        return MountReport(
            container: entry.container,
            mountPoint: entry.mountPoint,
            state: isSignedOut ? .signedOut : .mounted,
            mode: present.mount.modeDescription,
            engine: EngineReport(
                connection: status.connection.rawValue,
                connectionProblem: status.connectionProblem,
                items: status.itemCount,
                pending: status.pendingCount,
                conflicts: status.conflictCount,
                conflictBytes: status.conflictBytes,
                largestConflicts: status.largestConflicts.map {
                    ConflictSizeReport(path: present.path(of: $0.path), versions: $0.count, bytes: $0.bytes)
                },
                heldDeletions: status.heldDeletionCount,
                bytesSent: status.bytesSent,
                bytesReceived: status.bytesReceived,
                transfers: status.transfers.map { Self.report($0, present) },
                problems: status.problems.map { ProblemReport(path: present.path(of: $0.path), reason: $0.reason) },
                keeping: status.keeping.map { Self.report($0) }
            )
        )
    }

    private static func report(_ keeping: KeepingStatus) -> KeepingReport {
        KeepingReport(
            localBytes: keeping.localBytes,
            localLimit: keeping.limitBytes,
            evictAfter: keeping.unusedLimit.map { TimeSpan.text($0) },
            isGreedy: keeping.isGreedy,
            missingFiles: keeping.missingCount,
            missingBytes: keeping.missingBytes,
            obstacle: keeping.obstacle
        )
    }

    func activity() async -> [TransferReport] {
        var result = [TransferReport]()
        for present in present { result += await present.engine.activity().map { Self.report($0, present) } }
        return result
    }

    private static func report(_ transfer: TransferStatus, _ present: MountedContainer) -> TransferReport {
        TransferReport(
            path: present.path(of: transfer.path),
            direction: transfer.direction.rawValue,
            bytesDone: transfer.bytesDone,
            bytesTotal: transfer.bytesTotal
        )
    }

    /// Pieces of work that have not reached the cloud, or not come from it.
    func unsentCount() async -> Int {
        var count = 0
        for present in present { count += await present.engine.status().pendingCount }
        return count
    }

    func setOffline(_ isOn: Bool) async throws(ControlError) {
        table.isOffline = isOn
        try await saveTable()
        // Of two that switch at once the last one counts. What is just being mounted is told at the end of that.
        for present in present { await present.engine.setOffline(table.isOffline) }
    }

    func sync(
        _ request: SyncRequest,
        progress: @escaping @Sendable (ControlProgress) -> Void
    ) async throws(ControlError) {
        let end = try TimeLimit.duration(seconds: request.timeoutSeconds).map { ContinuousClock.now + $0 }
        // Of what is not mounted nobody knows whether it was sent.
        guard !table.entries.isEmpty else {
            throw ControlError(
                "sync",
                "no container is mounted: nothing is known of what has not been sent",
                remedy: "`ubiquity up DIR` or `ubiquity mount CONTAINER DIR`"
            )
        }
        // What cannot be mounted is told at once, not when all others are.
        try throwFailure()
        try await awaitMounts(until: end)
        try throwFailure()
        let deadline: Duration? = end.map { max(.zero, $0 - ContinuousClock.now) }
        let failed = await withTaskGroup(of: (String, EngineError)?.self, returning: [(String, EngineError)].self) {
            group in
            for present in present {
                group.addTask {
                    do throws(EngineError) {
                        try await present.engine.sync(deadline: deadline) {
                            progress(ControlProgress("synchronizing", $0))
                        }
                        return nil
                    } catch { return (present.entry.container, error) }
                }
            }
            var failed = [(String, EngineError)]()
            for await failure in group {
                if let failure { failed.append(failure) }
            }
            return failed
        }
        let errors = failed.sorted { $0.0 < $1.0 }.map { ControlError("sync", $0.1) }
        // What will not pass by itself counts more than what may.
        guard let first = errors.first(where: { $0.status == .failed }) ?? errors.first else { return }
        throw first
    }

    private func throwFailure() throws(ControlError) {
        if let failure = failures.sorted(by: { $0.key < $1.key }).first?.value { throw failure }
    }
}

extension ControlProgress {
    init(_ activity: String, _ progress: TransferProgress) {
        if progress.bytesTotal > 0 {
            self.init(activity, done: progress.bytesDone, total: progress.bytesTotal, unit: .bytes)
        } else {
            self.init(activity, done: Int64(progress.filesDone), total: Int64(progress.filesTotal), unit: .files)
        }
    }
}
