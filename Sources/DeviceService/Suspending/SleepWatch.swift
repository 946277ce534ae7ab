internal import CSystemd
internal import Glibc
internal import Logging
internal import SyncEngine
internal import Synchronization

/// Tells when the machine is about to sleep, and when it is awake again: logind says so on the system bus.
///
/// 1. `start` begins to listen, on a thread of its own. Without a bus nothing is ever told, and nobody is bothered.
/// 2. A bus that goes away is looked for again.
/// 3. `stop` ends the thread.
final class SleepWatch: Sendable {
    /// Microseconds that the bus has to answer.
    private static let busPatience: UInt64 = 5_000_000
    /// Milliseconds until a bus that went away is looked for again.
    private static let pause: Int32 = 30_000

    private struct State: Sendable {
        var isStopping = false
        /// The end of a pipe that is closed to wake the thread; -1 while it does not run.
        var waker: Int32 = -1
    }

    /// A leaf: memory work only.
    private let state = Mutex(State())
    private let logger: Logger
    /// On the watch's thread: `true` before sleep, `false` after it. It returns soon: the machine waits for nobody.
    private let tell: @Sendable (Bool) -> Void

    init(logger: Logger, tell: @escaping @Sendable (Bool) -> Void) {
        self.logger = logger
        self.tell = tell
    }

    func start() {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return logger.debug("sleep is not watched: no pipe") }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        let sleeper = ends[0]
        state.withLock { $0.waker = ends[1] }
        BlockingThread.start("ubi-sleep") { [self] in
            // Only a bus that was there is waited for.
            while listen(sleeper), !isWoken(sleeper, within: Self.pause) {}
            close(sleeper)
        }
    }

    /// Ends the thread soon. Once only.
    func stop() {
        let waker = state.withLock { state in
            state.isStopping = true
            defer { state.waker = -1 }
            return state.waker
        }
        if waker >= 0 { close(waker) }
    }

    private func isWoken(_ sleeper: Int32, within milliseconds: Int32) -> Bool {
        var entry = pollfd(fd: sleeper, events: Int16(POLLIN), revents: 0)
        return poll(&entry, 1, milliseconds) > 0
    }

    // MARK: - The bus

    /// Passes on what logind says, until the connection ends or `stop` is called.
    /// - Returns: whether there was a connection, and it ended.
    private func listen(_ sleeper: Int32) -> Bool {
        var bus: OpaquePointer?
        var status = sd_bus_open_system(&bus)
        guard status >= 0, let bus else {
            logger.debug("sleep is not watched: no system bus", metadata: ["why": "\(Self.text(status))"])
            return false
        }
        defer { _ = sd_bus_flush_close_unref(bus) }
        sd_bus_set_method_call_timeout(bus, Self.busPatience)
        // The watch outlives the connection: its method runs.
        status = sd_bus_match_signal(
            bus,
            nil,
            "org.freedesktop.login1",
            "/org/freedesktop/login1",
            "org.freedesktop.login1.Manager",
            "PrepareForSleep",
            { message, watch, _ in
                guard let message, let watch else { return 0 }
                Unmanaged<SleepWatch>.fromOpaque(watch).takeUnretainedValue().received(message)
                return 0
            },
            Unmanaged.passUnretained(self).toOpaque()
        )
        while status >= 0 {
            status = sd_bus_process(bus, nil)
            if status == 0 { status = wait(bus, sleeper) }
            if state.withLock({ $0.isStopping }) { return false }
        }
        logger.debug("sleep is not watched for now", metadata: ["why": "\(Self.text(status))"])
        // What was begun is not left so.
        tell(false)
        return true
    }

    /// Waits for the bus, or for `stop`.
    private func wait(_ bus: OpaquePointer, _ sleeper: Int32) -> Int32 {
        let events = sd_bus_get_events(bus)
        guard events >= 0 else { return events }
        var entries = [
            pollfd(fd: sd_bus_get_fd(bus), events: Int16(truncatingIfNeeded: events), revents: 0),
            pollfd(fd: sleeper, events: Int16(POLLIN), revents: 0),
        ]
        // With nothing asked, nothing of the bus has a time.
        return poll(&entries, 2, -1) < 0 && errno != EINTR ? -errno : 0
    }

    private func received(_ message: OpaquePointer) {
        var isBefore: Int32 = 0
        guard sd_bus_message_read_basic(message, CChar(bitPattern: UInt8(ascii: "b")), &isBefore) > 0 else { return }
        logger.debug("logind says that the machine \(isBefore != 0 ? "is about to sleep" : "is awake")")
        tell(isBefore != 0)
    }

    private static func text(_ status: Int32) -> String { String(cString: strerror(-status)) }
}
