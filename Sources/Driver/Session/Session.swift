import CFuse3
import CLinux
import Glibc
import Logging
import Synchronization
import SystemPackage

/// One connection to the kernel, from the mount to its last thread.
///
/// 1. `init` makes libfuse's session and mounts it; `start` begins to answer.
/// 2. It ends when the kernel says so (unmounted), or when `abandon` was called.
/// 3. `finish` waits for all threads and frees everything. Nothing touches a request or the session after that.
final class Session: Sendable {
    private static let threadCount = 10

    private let filesystem: Filesystem
    private let pointer: SessionPointer
    private let isAbandoned = Atomic(false)
    private let running = Atomic(0)
    /// Those that answer, as long as nobody has joined them: a thread that was joined must not be signalled.
    private let threads = Mutex<[DriverThread]>([])
    private let helpers = Mutex<[DriverThread]>([])
    private let readers = ReaderPool()
    /// The kernel's offer in its INIT request: read by one thread, and used by the same one for the reply.
    private let offer = Mutex<clinux_fuse_offer?>(nil)
    /// A word for each thread that ends, and for the session's being ready; closed by the last thread.
    private let events = Mailbox<Event>()

    private enum Event { case initialized, threadEnded }

    init(_ filesystem: Filesystem, mountPoint: String, options: [String]) throws(MountError) {
        self.filesystem = filesystem
        LibraryLog.shared.begin(filesystem.logger)
        // libfuse copies the table, and the arguments as far as it needs them.
        var table = operationTable()
        let context = Unmanaged.passRetained(filesystem)
        let made = withArguments(["ubiquity"] + options.flatMap { ["-o", $0] }) { arguments in
            fuse_new_session(&arguments, &table, context.toOpaque())
        }
        guard let made else {
            context.release()
            throw .refused(LibraryLog.shared.lastMessage ?? "libfuse does not take the options")
        }
        pointer = SessionPointer(raw: made)
        guard fuse_session_mount(made, mountPoint) == 0 else {
            fuse_session_destroy(made)
            context.release()
            throw .refused(LibraryLog.shared.lastMessage ?? "fusermount3 refused it")
        }
    }

    /// Begins to answer; returns when the kernel and libfuse have agreed.
    func start() throws(MountError) {
        var functions = fuse_custom_io()
        functions.read = { descriptor, buffer, size, context in receive(descriptor, buffer, size, context) }
        functions.writev = { descriptor, parts, count, context in send(descriptor, parts, count, context) }
        functions.splice_send = { from, fromOffset, to, toOffset, count, flags, _ in
            clinux_fuse_splice(from, fromOffset, to, toOffset, count, flags)
        }
        filesystem.session.withLock { $0 = WeakSession(session: self) }
        filesystem.connection.store(fuse_session_fd(pointer.raw), ordering: .relaxed)
        guard fuse_session_custom_io(pointer.raw, &functions, fuse_session_fd(pointer.raw)) == 0 else {
            throw .refused("libfuse does not take our functions")
        }
        do throws(Errno) {
            let notices = Invalidations(notices: filesystem.notices, session: pointer)
            let watch = InterruptWatch(deferrals: filesystem.deferrals)
            let started = [
                try DriverThread("ubiq-notify") { notices.run() },
                try DriverThread("ubiq-signals") { watch.run() },
                try DriverThread("ubiq-writers") { [filesystem] in filesystem.writerWatch.run(filesystem) },
                try DriverThread("ubiq-readers") { [readers] in readers.watch() },
            ]
            helpers.withLock { $0 += started }
            for _ in 0..<Self.threadCount {
                running.add(1, ordering: .relaxed)
                let thread = try DriverThread("ubiq-fuse", isWoken: true) { [self] in
                    answerRequests()
                    // The last one wakes everybody who waits for the end.
                    if running.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 {
                        events.close()
                    } else {
                        events.push(.threadEnded)
                    }
                }
                threads.withLock { $0.append(thread) }
            }
        } catch {
            throw .refused("no threads: \(error)")
        }
        guard case .element(.initialized) = events.next() else { throw .refused("the kernel ended the connection") }
    }

    private func answerRequests() {
        var buffer = fuse_buf()
        defer { free(buffer.mem) }
        var watch = BriefWatch()
        while !isAbandoned.load(ordering: .acquiring),
            readers.waitForTurn(leaving: { while filesystem.dropForgotten() {} })
        {
            watch.awaitRequest(fuse_session_fd(pointer.raw)) { filesystem.dropForgotten() }
            let count = fuse_session_receive_buf(pointer.raw, &buffer)
            if count == -EINTR || count == -EAGAIN {
                readers.gotNothing()
                continue
            }
            // 0: unmounted. An error other than these means that the connection is of no use any more.
            guard count > 0 else { return readers.end() }
            readers.gotWork(work(buffer))
            fuse_session_process_buf(pointer.raw, &buffer)
        }
    }

    private func work(_ buffer: fuse_buf) -> ReaderPool.Work {
        ReaderPool.Work(
            isLong: clinux_fuse_takes_long(buffer.mem, buffer.size) != 0,
            isFollowed: Self.answersSideBySide && clinux_fuse_is_readable(fuse_session_fd(pointer.raw)) != 0
        )
    }

    /// With two processors, one is the program's.
    private static let answersSideBySide = sysconf(Int32(_SC_NPROCESSORS_ONLN)) > 2

    fileprivate func wasInitialized() { events.push(.initialized) }

    // MARK: INIT

    fileprivate func noteRequest(_ message: UnsafeRawPointer, _ size: Int) {
        var found = clinux_fuse_offer()
        if clinux_fuse_is_init(message, size, &found) != 0 { offer.withLock { $0 = found } }
    }

    /// Completes the one reply to INIT. Nothing else is sent before it.
    fileprivate func completeReply(_ parts: UnsafeMutablePointer<iovec>, _ count: Int32) -> Bool {
        guard count == 2, let body = parts[1].iov_base else { return false }
        let taken = offer.withLock { offer in
            defer { offer = nil }
            return offer
        }
        guard let taken else { return false }
        let depth = filesystem.passthrough.setup?.stackDepth ?? 0
        return clinux_fuse_extend_init(body, parts[1].iov_len, taken, depth) >= 0
    }

    // MARK: The end

    /// Waits until no thread answers any more.
    func waitForThreads() {
        while running.load(ordering: .acquiring) > 0 {
            if case .closed = events.next() { break }
        }
    }

    /// Ends the threads of a connection that the kernel still has: the mount was detached while programs use it. They meet ENOTCONN.
    /// Whoever stops the mount may be here while `finish` joins the threads: they are signalled under the lock.
    func abandon() {
        isAbandoned.store(true, ordering: .releasing)
        readers.end()
        while running.load(ordering: .acquiring) > 0 {
            // A thread may have looked at the flag just before, and begin to wait just after this: again, until all have seen it.
            threads.withLock { for thread in $0 { thread.wake() } }
            _ = events.next(milliseconds: 20)
        }
    }

    /// After all threads have ended. The file system must not be asked any more.
    func finish() {
        let ended = threads.withLock { threads in
            defer { threads = [] }
            return threads
        }
        for thread in ended { thread.join() }
        filesystem.notices.close()
        filesystem.deferrals.interrupted.close()
        filesystem.writerWatch.close()
        readers.end()
        for thread in helpers.withLock({ $0 }) { thread.join() }
        // Closes the connection, which ends what the kernel still waits for. fuse_session_unmount is not called: it would unmount whatever
        // is at our path by now.
        fuse_session_destroy(pointer.raw)
        Unmanaged.passUnretained(filesystem).release()
        LibraryLog.shared.end()
    }
}

/// What the I/O functions find their session by.
struct WeakSession: Sendable {
    weak let session: Session?
}

/// `read` of the connection.
private func receive(
    _ descriptor: Int32,
    _ buffer: UnsafeMutableRawPointer?,
    _ size: Int,
    _ context: UnsafeMutableRawPointer?
) -> Int {
    let count = read(descriptor, buffer, size)
    guard count > 0, let buffer, let context else { return count }
    let filesystem = Unmanaged<Filesystem>.fromOpaque(context).takeUnretainedValue()
    if !filesystem.isInitialized.load(ordering: .acquiring) {
        filesystem.session.withLock { $0.session }?.noteRequest(buffer, count)
    }
    clinux_fuse_name_unnamed(buffer, count)
    return count
}

/// `writev` to the connection.
private func send(
    _ descriptor: Int32,
    _ parts: UnsafeMutablePointer<iovec>?,
    _ count: Int32,
    _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let parts, let context else { return writev(descriptor, parts, count) }
    let filesystem = Unmanaged<Filesystem>.fromOpaque(context).takeUnretainedValue()
    guard !filesystem.isReplied.load(ordering: .acquiring) else { return writev(descriptor, parts, count) }
    let session = filesystem.session.withLock { $0.session }
    let isInit = session?.completeReply(parts, count) ?? false
    let result = writev(descriptor, parts, count)
    if isInit {
        filesystem.isReplied.store(true, ordering: .releasing)
        let error = errno
        session?.wasInitialized()
        errno = error
    }
    return result
}

/// libfuse's argument vector.
func withArguments<Result>(_ texts: [String], _ body: (inout fuse_args) -> Result) -> Result {
    var pointers: [UnsafeMutablePointer<CChar>?] = texts.map { strdup($0) } + [nil]
    let originals = pointers
    defer { for pointer in originals { free(pointer) } }
    return pointers.withUnsafeMutableBufferPointer { buffer in
        var arguments = fuse_args(argc: Int32(texts.count), argv: buffer.baseAddress, allocated: 0)
        defer { fuse_opt_free_args(&arguments) }
        return body(&arguments)
    }
}
