internal import CloudClient
internal import Driver
internal import Glibc
internal import Logging
internal import Replica
internal import SyncEngine
internal import UbiquityControl
internal import UbiquityModel

extension UbiquityService {
    // MARK: - Mounting

    func mount(
        _ request: MountRequest,
        progress: @escaping @Sendable (ControlProgress) -> Void
    ) async throws(ControlError) -> MountRequest.Answer {
        try await serially { () async throws(ControlError) in
            guard !isSignedOut else { throw ControlError("\(request.mountPoint)", EngineError.signedOut) }
            var request = request
            // `up` names no container: what was there comes back as it was.
            if request.container == nil,
                let former = table.entries.first(where: { $0.mountPoint == request.mountPoint })
            {
                request.container = former.container
                request.createsContainer = false
                if request.options.isEmpty { request.options = former.options }
            }
            let info = try await container(request)
            let name = info.id.text
            if let answer = try await alreadyMounted(name, at: request.mountPoint) { return answer }
            let isPending = table[name].map { $0.isImporting && $0.mountPoint == request.mountPoint } ?? false
            var entry = MountTable.Entry(
                container: name,
                mountPoint: request.mountPoint,
                options: request.options,
                isImporting: request.imports || isPending
            )
            do throws(ControlError) {
                let imported = try await bringUp(&entry, info, progress: progress)
                return MountRequest.Answer(
                    container: name,
                    mountPoint: entry.mountPoint,
                    wasMounted: false,
                    importedCount: imported
                )
            } catch {
                // It stays in the table if it was there before, or if an import has begun.
                if table[name] != nil { failures[name] = error }
                throw error
            }
        }
    }

    /// Mounts what was mounted when the service last ran.
    func restoreMounts() async {
        for entry in table.entries {
            _ = try? await serially { () async throws(ControlError) in
                guard !isSignedOut, mounted[entry.container] == nil, table[entry.container] == entry else { return }
                do throws(ControlError) {
                    var request = MountRequest(
                        container: entry.container,
                        mountPoint: entry.mountPoint,
                        createsContainer: false,
                        imports: entry.isImporting
                    )
                    request.options = entry.options
                    var entry = entry
                    _ = try await bringUp(&entry, try await container(request), progress: { _ in })
                } catch {
                    // Before anybody else mounts it.
                    failures[entry.container] = error
                    logger.error("not mounted again", metadata: ["container": "\(entry.container)", "why": "\(error)"])
                }
            }
        }
    }

    /// The answer if nothing has to be done. A mount of ours that died or was taken away makes room for a new one.
    private func alreadyMounted(
        _ name: String,
        at point: ControlPath
    ) async throws(ControlError) -> MountRequest.Answer? {
        if let other = mounted.values.first(where: { $0.entry.mountPoint == point && $0.entry.container != name }) {
            throw ControlError(
                "\(point)",
                "the container \(other.entry.container) is mounted there",
                remedy: "choose another folder"
            )
        }
        if let present = mounted[name] {
            guard present.entry.mountPoint == point else { throw Self.elsewhere(name, present.entry.mountPoint) }
            let condition = try await blocking { () throws(ControlError) in try MountPoint.condition(of: point) }
            if condition == .ubiquity {
                return MountRequest.Answer(container: name, mountPoint: point, wasMounted: true, importedCount: 0)
            }
            await tearDown(present)
        } else if let entry = table[name], entry.mountPoint != point, failures[name] == nil {
            throw Self.elsewhere(name, entry.mountPoint)
        }
        return nil
    }

    private static func elsewhere(_ name: String, _ point: ControlPath) -> ControlError {
        ControlError(name, "it is mounted at \(point)", remedy: "`ubiquity unmount \(point)` first")
    }

    /// Everything from the folder's condition to the running engine. On failure all is as before, but for what an import has moved.
    private func bringUp(
        _ entry: inout MountTable.Entry,
        _ info: ContainerInfo,
        progress: @escaping @Sendable (ControlProgress) -> Void
    ) async throws(ControlError) -> Int {
        let home = home
        let point = entry.mountPoint
        guard let pointText = String(validating: point.bytes, as: UTF8.self) else {
            throw ControlError("\(point)", "a mount point's path must be UTF-8")
        }
        let isOccupied = try await blocking { () throws(ControlError) in try Self.clear(point) }
        if isOccupied, !entry.isImporting { throw ControlError.occupied("\(point)") }
        if isOccupied, info.isReadOnly {
            throw ControlError(
                "\(point)",
                "this device may only read: what lies there could not be sent, nor changed any more",
                remedy: "choose an empty folder"
            )
        }

        let folder = try await blocking { () throws(ControlError) in try ContainerFolder.ensure(info, home) }
        let replica = try await blocking { () throws(ControlError) in
            do throws(ReplicaError) {
                return try Replica(directory: folder.path, isCaseInsensitive: info.isCaseInsensitive)
            } catch {
                throw ControlError(info.id.text, error)
            }
        }
        var imported = 0
        let importer = Importer(
            source: point,
            replica: replica,
            key: info.key,
            stop: importStop,
            progress: progress
        )
        if entry.isImporting, isOccupied {
            let found = try await blocking { () throws(ControlError) in
                // Else the folder would be empty, and nothing mounted there.
                do throws(MountError) {
                    try Mount.checkPrerequisites(mountPoint: pointText, replicaDirectory: replica.directory)
                } catch { throw ControlError(error) }
                return try importer.check(home: home)
            }
            try await remember(entry)
            imported = try await blocking { () throws(ControlError) in
                try Self.noteUnclean(replica)
                return try importer.run(found)
            }
        }
        entry.isImporting = false
        let isNew = table[entry.container] == nil
        try await remember(entry)
        do throws(ControlError) {
            let isOffline = table.isOffline
            let whole = try await assemble(entry, info, replica, pointText, isOffline: isOffline)
            mounted[entry.container] = whole
            failures[entry.container] = nil
            // What is set may have changed since that began.
            restrain()
            if table.isOffline != isOffline { await whole.engine.setOffline(table.isOffline) }
            await whole.engine.setKeeping(await keeping(of: entry.container))
            return imported
        } catch {
            if isNew {
                table[entry.container] = nil
                try? await saveTable()
            }
            guard imported > 0 else { throw error }
            var told = error
            told.why += "; what was imported lies in \(replica.treePath)"
            throw told
        }
    }

    private func remember(_ entry: MountTable.Entry) async throws(ControlError) {
        guard table[entry.container] != entry else { return }
        table[entry.container] = entry
        try await saveTable()
    }

    /// Takes dead mounts away. `true` if there is something in the folder.
    private static func clear(_ point: ControlPath) throws(ControlError) -> Bool {
        // Every kill may have left one mount over the other.
        for _ in 0..<64 {
            switch try MountPoint.condition(of: point) {
            case .empty: return false
            case .occupied: return true
            case .dead: try MountPoint.detach(point)
            case .ubiquity:
                throw ControlError(
                    "\(point)",
                    "another ubiquity is mounted there",
                    remedy: "`ubiquity unmount` it there, or choose another folder"
                )
            case .foreign(let source):
                throw ControlError("\(point)", "\(source) is mounted there", remedy: "choose another folder")
            }
        }
        throw ControlError("\(point)", "dead mounts are in the way", remedy: "as root, `umount -l \(point)`")
    }

    /// What an import brings is found by a scan, which a clean stop would spare.
    private static func noteUnclean(_ replica: Replica) throws(ControlError) {
        do throws(ReplicaError) { try replica.database.setStoppedCleanly(false) } catch {
            throw ControlError(replica.directory, error)
        }
    }

    private func assemble(
        _ entry: MountTable.Entry,
        _ info: ContainerInfo,
        _ replica: Replica,
        _ point: String,
        isOffline: Bool
    ) async throws(ControlError) -> MountedContainer {
        var logger = logger
        logger[metadataKey: "container"] = "\(entry.container)"
        let session = session
        let engine: ContainerEngine
        do throws(EngineError) {
            engine = try ContainerEngine(
                container: info,
                replica: replica,
                cloud: cloud,
                claims: broker.claims(of: info.id),
                deviceName: cloud.credentials.deviceName,
                patience: Patience.limit,
                logger: logger,
                openSession: { () async throws(CloudError) in try await session.open() },
                keepPackages: { await session.remember($0, of: info) }
            )
        } catch { throw ControlError(entry.container, error) }
        engine.setRestraint(thrift.restraint(conditions))
        await engine.setKeeping(await keeping(of: entry.container))
        let host = ServiceHost(engine: engine.host, broker: broker, gate: gate, container: info.id, replica: replica)
        host.whenUnmounted { [weak self] in Task { await self?.mountVanished(entry) } }
        let mount = Mount(
            MountConfiguration(
                mountPoint: point,
                containerName: entry.container,
                showVersions: entry.options.contains("show_versions"),
                options: entry.options.filter { $0 != "show_versions" },
                mode: DriverMode(named: getenv("UBIQUITY_DRIVER").map { String(cString: $0) }),
                helperPath: getenv("UBIQUITY_PASSTHROUGH_HELPER").map { String(cString: $0) }
                    ?? MountConfiguration.usualHelperPath,
                isCaseInsensitive: info.isCaseInsensitive,
                isReadOnly: info.isReadOnly
            ),
            replica: replica,
            host: host,
            logger: logger
        )
        broker.attach(mount, to: info.id)
        await engine.attach(mount)
        if isOffline { await engine.setOffline(true) }
        let whole = MountedContainer(
            entry: entry,
            info: info,
            replica: replica,
            engine: engine,
            mount: mount,
            host: host
        )
        do throws(ControlError) {
            try await blocking { () throws(ControlError) in
                do throws(MountError) { try mount.start() } catch { throw ControlError(error) }
            }
            do throws(EngineError) { try await engine.start() } catch { throw ControlError(entry.container, error) }
            return whole
        } catch {
            await tearDown(whole)
            throw error
        }
    }

    // MARK: - Unmounting

    func unmount(_ point: ControlPath, refusesWriters: Bool = true) async throws(ControlError) -> UnmountRequest.Answer
    {
        importStop.ask(point)
        defer { importStop.takeBack(point) }
        return try await serially { () async throws(ControlError) in
            guard let entry = table.entries.first(where: { $0.mountPoint == point }) else {
                throw ControlError(
                    "\(point)",
                    "no container of this device is mounted there",
                    remedy: "`ubiquity status` lists the mounts"
                )
            }
            if let present = mounted[entry.container] {
                if refusesWriters { try Self.refuseWriters(present) }
                await tearDown(present)
            }
            table[entry.container] = nil
            failures[entry.container] = nil
            try await saveTable()
            return UnmountRequest.Answer(container: entry.container, remaining: table.entries.count)
        }
    }

    func prepareStop(_ request: StopRequest) async throws(ControlError) {
        importStop.ask()
        defer { importStop.takeBack() }
        try await serially { () async throws(ControlError) in
            let all = mounted.values.sorted { $0.entry.container < $1.entry.container }
            if request.refusesWriters {
                for present in all { try Self.refuseWriters(present) }
            }
            for present in all { await tearDown(present) }
            if request.forgetsMounts {
                // An import that was begun is not forgotten: half of the files are in the container already.
                table.entries.removeAll { !$0.isImporting }
                try await saveTable()
            }
        }
    }

    func unmountAll() async {
        _ = try? await serially { () async throws(ControlError) in
            for present in mounted.values.sorted(by: { $0.entry.container < $1.entry.container }) {
                await tearDown(present)
            }
        }
    }

    private static func refuseWriters(_ present: MountedContainer) throws(ControlError) {
        guard let writers = present.writersInWords() else { return }
        throw ControlError(
            .tryAgain,
            "\(present.entry.mountPoint)",
            "open for writing: \(writers)",
            remedy: "close it and try again"
        )
    }

    /// Programs see the end first, so that nothing changes behind the engine; then the engine ends what it writes.
    private func tearDown(_ present: MountedContainer) async {
        mounted[present.entry.container] = nil
        present.host.forgetUnmounting()
        await BlockingThread.run("ubi-unmount") { present.mount.stop() }
        await present.engine.stop()
        broker.detach(present.info.id)
    }

    /// Somebody else unmounted it (`fusermount3 -u`). It comes back with the next start or `up`.
    private func mountVanished(_ entry: MountTable.Entry) async {
        _ = try? await serially { () async throws(ControlError) in
            guard let present = mounted[entry.container], present.entry == entry else { return }
            logger.notice("unmounted by somebody else", metadata: ["container": "\(entry.container)"])
            await tearDown(present)
            failures[entry.container] = ControlError(
                "\(entry.mountPoint)",
                "it was unmounted",
                remedy: "`ubiquity up \(entry.mountPoint)`"
            )
        }
    }
}
