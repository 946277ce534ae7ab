import CFuse3
import CLinux
import Glibc
package import Logging
package import Replica
import Synchronization
import SystemPackage

/// A container, mounted: shows the replica's backing tree as an ordinary file system, and lets the engine change it.
///
/// 1. `start` mounts it; from then on programs are answered.
/// 2. `stop` ends it: everything that waits is answered, what the engine began is finished, then it is unmounted, lazily if programs use
///    it. The same happens when somebody else unmounts it.
/// 3. It is not started again.
package final class Mount: Sendable {
    private enum Phase: Sendable {
        case idle
        case mounted(Running)
        case ended
    }

    private struct Running: Sendable {
        let filesystem: Filesystem
        let session: Session
        let path: String
        let supervisor: DriverThread
    }

    private struct State: Sendable {
        var phase = Phase.idle
        var isStopping = false
        var wasInUse = false
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private static let applyThreadCount = 3

    private let configuration: MountConfiguration
    private let replica: Replica
    private let host: any DriverHost
    private let logger: Logger
    /// A leaf: memory work only.
    private let state = Mutex(State())

    package init(_ configuration: MountConfiguration, replica: Replica, host: any DriverHost, logger: Logger) {
        self.configuration = configuration
        self.replica = replica
        self.host = host
        self.logger = logger
    }

    /// The running mount's file system.
    var filesystem: Filesystem? {
        state.withLock { if case .mounted(let running) = $0.phase { running.filesystem } else { nil } }
    }

    package var mountPoint: String {
        state.withLock { if case .mounted(let running) = $0.phase { running.path } else { configuration.mountPoint } }
    }

    /// For `ubiquity status`.
    package var modeDescription: String {
        filesystem?.passthrough.description ?? "not mounted"
    }

    // MARK: Start

    /// What `start` checks before it does anything, but for whether the folder is empty: for who empties it first.
    package static func checkPrerequisites(mountPoint: String, replicaDirectory: String) throws(MountError) {
        try refuseNesting(try MountPoint.usable(mountPoint), replicaDirectory)
    }

    /// Mounts it; programs are answered when this returns.
    package func start() throws(MountError) {
        guard case .idle = state.withLock({ $0.phase }) else { throw .refused("this mount was started before") }
        let point = try MountPoint(checking: configuration.mountPoint, options: configuration.options)
        try Self.refuseNesting(point.path, replica.directory)
        guard clinux_fuse_install_wakeup() == 0, clinux_ignore_leases() == 0 else {
            throw .refused("no signal handler")
        }
        var configuration = configuration
        configuration.mountPoint = point.path
        let passthrough =
            configuration.mode == .best
            ? PassthroughTrial(replica: replica, helperPath: configuration.helperPath, logger: logger).run()
            : .unavailable(.notWanted)
        let filesystem: Filesystem
        do throws(Errno) {
            filesystem = try Filesystem(
                configuration,
                replica: replica,
                host: host,
                passthrough: passthrough,
                logger: logger
            )
        } catch {
            throw .refused("the replica cannot be opened: \(error)")
        }
        let session: Session
        do throws(MountError) {
            session = try Session(filesystem, mountPoint: point.path, options: options)
        } catch {
            filesystem.worker.stop()
            filesystem.finisher.stop()
            throw error
        }
        do throws(MountError) {
            try session.start()
            try begin(filesystem, session, point.path)
        } catch {
            MountPoint.unmount(point.path, isLazy: true)
            end(filesystem, session)
            throw error
        }
    }

    private func begin(_ filesystem: Filesystem, _ session: Session, _ path: String) throws(MountError) {
        do throws(Errno) {
            filesystem.mountDevice.store(try Self.device(of: path), ordering: .relaxed)
            try filesystem.applier.start(count: Self.applyThreadCount, filesystem)
            let supervisor = try DriverThread("ubiq-mount") { [self] in
                session.waitForThreads()
                end(filesystem, session)
                ended()
            }
            state.withLock {
                // The supervisor may have been faster: what has ended is not running.
                if case .ended = $0.phase { return }
                $0.phase = .mounted(
                    Running(filesystem: filesystem, session: session, path: path, supervisor: supervisor)
                )
            }
        } catch {
            throw .refused("\(error)")
        }
    }

    private static func device(of path: String) throws(Errno) -> UInt64 {
        let door = MountDoor()
        try door.open { _, _ in }
        defer { door.close() }
        return try door.run { () throws(Errno) in
            var status = stat()
            try called(stat(path, &status))
            return UInt64(status.st_dev)
        }.get()
    }

    private var options: [String] {
        var options = ["fsname=ubiquity:\(configuration.containerName)", "subtype=ubiquity"] + configuration.options
        // Alone in its mount, the user needs no checks but ours and the disk's; with others let in, the kernel must check.
        if configuration.letsOthersIn {
            options.append("default_permissions")
        }
        return options
    }

    /// A mount over its own replica, or in it, would wait for itself.
    private static func refuseNesting(_ path: String, _ directory: String) throws(MountError) {
        guard let real = realpath(directory, nil) else { throw .refused("the replica's folder is gone") }
        defer { free(real) }
        let own = String(cString: real)
        if path == own || path.hasPrefix(own + "/") || own.hasPrefix(path + "/") {
            throw .refused("\(path) and the replica's folder \(own) lie in each other")
        }
    }

    // MARK: End

    /// Ends the mount and returns when nothing of it is left. Not to be called from a callback of the host.
    package func stop() {
        let running: Running? = state.withLock { state in
            guard case .mounted(let running) = state.phase, !state.isStopping else { return nil }
            state.isStopping = true
            return running
        }
        guard let running else { return waitForEnd() }
        // Mutations go through the mount: they are finished while it still answers. One that waits in the kernel behind a program that
        // waits for content goes on when that one has its answer.
        running.filesystem.deferrals.close()
        running.filesystem.applier.stop()
        if !MountPoint.unmount(running.path, isLazy: false) {
            // Programs use it. What they have mapped and changed still has to reach the backing tree.
            state.withLock { $0.wasInUse = true }
            writeBack(running)
            MountPoint.unmount(running.path, isLazy: true)
            running.session.abandon()
        }
        running.supervisor.join()
    }

    /// Programs had something open or mapped when it was stopped. What is passed through by the kernel they may go on to change, and nobody
    /// tells of it.
    package var wasStoppedInUse: Bool { state.withLock(\.wasInUse) }

    private func writeBack(_ running: Running) {
        let (filesystem, path) = (running.filesystem, running.path)
        let door = MountDoor()
        defer { door.close() }
        do throws(Errno) {
            try door.open { thread, isOpen in
                filesystem.admittedThread.store(isOpen ? thread : 0, ordering: .relaxed)
            }
        } catch {
            return logger.warning("what programs have mapped is not written back", metadata: ["why": "\(error)"])
        }
        // What it fails with, the next look at the mount tells.
        _ = door.run { () throws(Errno) in
            let root = OwnedDescriptor(try checked(clinux_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0)))
            var status = stat()
            try called(fstat(root.raw, &status))
            guard status.st_dev == filesystem.mountDevice.load(ordering: .relaxed) else { return }
            try checked(clinux_syncfs(root.raw))
        }
    }

    /// Another thread is stopping it, or it has ended by itself.
    private func waitForEnd() {
        let ended = Mailbox<Void>()
        let isRunning = state.withLock { state in
            if case .mounted = state.phase {
                return true
            }
            return false
        }
        guard isRunning else { return }
        Task {
            await waitUntilUnmounted()
            ended.push(())
        }
        _ = ended.next()
    }

    /// On the supervisor's thread: no request will come any more.
    private func end(_ filesystem: Filesystem, _ session: Session) {
        session.abandon()
        filesystem.deferrals.close()
        // What is still submitted fails at once, since the mount is gone.
        filesystem.applier.stop()
        filesystem.worker.stop()
        filesystem.finisher.stop()
        session.finish()
        filesystem.close()
    }

    private func ended() {
        let waiting = state.withLock { state in
            state.phase = .ended
            defer { state.waiting = [] }
            return state.waiting
        }
        logger.info("unmounted", metadata: ["container": "\(configuration.containerName)"])
        host.unmounted()
        for continuation in waiting { continuation.resume() }
    }

    /// Returns when the mount has ended, whoever ended it; at once if it was never started.
    package func waitUntilUnmounted() async {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                guard case .mounted = state.phase else { return true }
                state.waiting.append(continuation)
                return false
            }
            if isOver { continuation.resume() }
        }
    }
}
