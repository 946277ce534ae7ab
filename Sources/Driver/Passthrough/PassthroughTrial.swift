import CFuse3
import CLinux
import Glibc
import Logging
import Replica
import Synchronization
import SystemPackage

/// Finds out whether the kernel passes reads and writes through to the replica's disk, before the real mount: the reply to INIT has to
/// say so, and it also decides how the kernel caches. A private folder is mounted, one file of the staging folder bound, and all undone.
struct PassthroughTrial {
    let replica: Replica
    /// Where the helper listens.
    let helperPath: String
    let logger: Logger

    func run() -> Passthrough {
        let channel: BackingChannel
        if clinux_may_administer() != 0 {
            channel = .own
        } else if let helper = HelperConnection(path: helperPath) {
            channel = .helper(helper)
        } else {
            return .unavailable(.privilege)
        }
        // An overlay below has a depth of its own; the smallest that works leaves most for what others put above us.
        var last = Passthrough.Obstacle.kernel
        for depth: UInt32 in 1...2 {
            switch attempt(channel, depth) {
            case nil:
                return .available(Passthrough.Setup(channel: channel, stackDepth: depth, hasFineTimes: hasFineTimes))
            case .refused(.tooManySymbolicLinkLevels): last = .refused(.tooManySymbolicLinkLevels)
            case let obstacle?: return .unavailable(obstacle)
            }
        }
        return .unavailable(last)
    }

    /// Whether the disk tells who has a file open, which is how mappings are found; a bound file must count for nothing.
    private func tellsUses(_ file: Int32) throws(Errno) -> Bool {
        guard clinux_ignore_leases() == 0, clinux_check_unused(file, 1) == 0 else { return false }
        let reader = try OwnedDescriptor(reopening: file, flags: O_RDONLY)
        return clinux_check_unused(file, 1) == -EAGAIN && clinux_check_unused(reader.raw, 0) == -EAGAIN
    }

    /// Several changes within a tick of a coarse clock, each seen.
    private var hasFineTimes: Bool {
        guard let file = try? replica.staging.makeFile() else { return false }
        defer { _ = try? replica.staging.remove(file.name) }
        var last: WrittenEvidence?
        for _ in 0..<5 {
            var status = stat()
            guard pwrite(file.descriptor.raw, "x", 1, 0) == 1, fstat(file.descriptor.raw, &status) == 0 else {
                return false
            }
            let now = WrittenEvidence(status)
            if last?.changed == now.changed { return false }
            last = now
        }
        return true
    }

    /// nil if it works.
    private func attempt(_ channel: BackingChannel, _ depth: UInt32) -> Passthrough.Obstacle? {
        let folder = replica.directory + "/passthrough-trial"
        do throws(Errno) {
            let file = try replica.staging.makeFile()
            defer { _ = try? replica.staging.remove(file.name) }
            // What a service that died in the middle of this has left.
            if MountPoint.source(of: folder) != nil { MountPoint.unmount(folder, isLazy: true) }
            if mkdir(folder, 0o700) != 0, errno != EEXIST { throw Errno(rawValue: errno) }
            defer { rmdir(folder) }
            let session = try TrialSession(at: folder, depth)
            defer { session.end() }
            guard try session.initialize() else { return .kernel }
            let path = try OwnedDescriptor(reopening: file.descriptor.raw, flags: Int32(CLINUX_O_PATH))
            let bound = channel.needsWritableFiles ? file.descriptor.raw : path.raw
            do throws(BindingError) {
                // The session's end closes it.
                _ = try channel.open(connection: session.connection, file: bound, isFirst: true)
            } catch {
                switch error {
                case .refused(let why): throw why
                case .helperIsAway: return .silence
                }
            }
            return try tellsUses(file.descriptor.raw) ? nil : .refused(.notSupported)
        } catch {
            logger.debug("no kernel passthrough", metadata: ["why": "\(error)"])
            return .refused(error)
        }
    }
}

/// A mount that answers INIT and nothing else.
private final class TrialSession: Sendable {
    private struct State: Sendable {
        var offer: clinux_fuse_offer?
        var flags: Int32 = 0
        var isReplied = false
    }

    private let pointer: SessionPointer
    private let depth: UInt32
    private let state = Mutex(State())

    var connection: Int32 { fuse_session_fd(pointer.raw) }

    init(at folder: String, _ depth: UInt32) throws(Errno) {
        self.depth = depth
        var table = fuse_lowlevel_ops()
        let made = withArguments(["ubiquity", "-o", "fsname=ubiquity-trial"]) { arguments in
            fuse_new_session(&arguments, &table, nil)
        }
        guard let made else { throw .noMemory }
        guard fuse_session_mount(made, folder) == 0 else {
            fuse_session_destroy(made)
            throw .notPermitted
        }
        pointer = SessionPointer(raw: made)
    }

    /// Whether the kernel has agreed to pass through.
    func initialize() throws(Errno) -> Bool {
        let context = fuse_session_fd(pointer.raw)
        trials.withLock { $0[context] = self }
        defer { trials.withLock { $0[context] = nil } }
        var functions = fuse_custom_io()
        functions.read = { descriptor, buffer, size, _ in
            let count = read(descriptor, buffer, size)
            if count > 0, let buffer { trials.withLock { $0[descriptor] }?.note(buffer, count) }
            return count
        }
        functions.writev = { descriptor, parts, count, _ in
            if let parts { trials.withLock { $0[descriptor] }?.complete(parts, count) }
            return writev(descriptor, parts, count)
        }
        guard fuse_session_custom_io(pointer.raw, &functions, connection) == 0 else { throw .invalidArgument }
        var buffer = fuse_buf()
        defer { free(buffer.mem) }
        while !state.withLock({ $0.isReplied }) {
            let count = fuse_session_receive_buf(pointer.raw, &buffer)
            if count == -EINTR || count == -EAGAIN { continue }
            guard count > 0 else { throw count < 0 ? Errno(rawValue: -count) : .notConnected }
            fuse_session_process_buf(pointer.raw, &buffer)
        }
        return state.withLock { $0.flags & Int32(CLINUX_INIT2_PASSTHROUGH) != 0 }
    }

    private func note(_ message: UnsafeRawPointer, _ size: Int) {
        var found = clinux_fuse_offer()
        if clinux_fuse_is_init(message, size, &found) != 0 { state.withLock { $0.offer = found } }
    }

    private func complete(_ parts: UnsafeMutablePointer<iovec>, _ count: Int32) {
        guard count == 2, let body = parts[1].iov_base else { return }
        let length = parts[1].iov_len
        guard let offer = state.withLock({ $0.offer }) else { return }
        let flags = clinux_fuse_extend_init(body, length, offer, depth)
        state.withLock { state in
            state.flags = max(0, flags)
            state.isReplied = true
        }
    }

    func end() {
        fuse_session_unmount(pointer.raw)
        fuse_session_destroy(pointer.raw)
    }
}

/// Trials by descriptor: libfuse's I/O functions are given the session's user data only if it has any. A leaf: memory work only.
private let trials = Mutex<[Int32: TrialSession]>([:])
