internal import CSystemd
internal import Glibc
internal import Logging
internal import SyncEngine
internal import Synchronization

/// Tells what the machine says of itself on the system bus: that it is about to sleep, or awake again (logind), what its link is
/// (NetworkManager) and its power (UPower).
///
/// 1. `start` begins to listen, on a thread of its own. Without a bus nothing is ever told, and nobody is bothered.
/// 2. A bus that goes away is looked for again. Until then the machine is taken to be as it was: a link that costs costs no less for that.
/// 3. `stop` ends the thread.
///
/// It starts none of these services, and asks again only when one of them tells of a change.
final class SystemBusWatch: Sendable {
    enum Event: Sendable, Equatable {
        case sleeps(Bool)
        case conditions(MachineConditions)
    }

    /// Microseconds that the bus has to answer.
    private static let busPatience: UInt64 = 5_000_000
    /// Milliseconds until a bus that went away is looked for again.
    private static let pause: Int32 = 30_000

    private struct State: Sendable {
        var isStopping = false
        /// The end of a pipe that is closed to wake the thread; -1 while it does not run.
        var waker: Int32 = -1
        /// A service has told of a change, come or gone: it is asked once more.
        var isOutdated = true
        var conditions = MachineConditions()
    }

    /// A leaf: memory work only.
    private let state = Mutex(State())
    private let logger: Logger
    /// On the watch's thread. It returns soon: the machine waits for nobody on its way to sleep.
    private let tell: @Sendable (Event) -> Void

    init(logger: Logger, tell: @escaping @Sendable (Event) -> Void) {
        self.logger = logger
        self.tell = tell
    }

    func start() {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return logger.debug("the system bus is not watched: no pipe") }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        let sleeper = ends[0]
        state.withLock { $0.waker = ends[1] }
        BlockingThread.start("ubi-bus") { [self] in
            // Only a bus that was there is waited for.
            while listen(sleeper), !isWoken(sleeper, within: Self.pause) {}
            // Nobody says anything of the machine any more.
            if !state.withLock({ $0.isStopping }) { note(MachineConditions()) }
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

    /// Passes on what is told, until the connection ends or `stop` is called.
    /// - Returns: whether there was a connection, and it ended.
    private func listen(_ sleeper: Int32) -> Bool {
        var opened: OpaquePointer?
        var status = sd_bus_open_system(&opened)
        guard status >= 0, let opened else {
            logger.debug("there is no system bus", metadata: ["why": "\(Self.text(status))"])
            return false
        }
        defer { _ = sd_bus_flush_close_unref(opened) }
        sd_bus_set_method_call_timeout(opened, Self.busPatience)
        let bus = SystemBusConnection(opened)
        status = subscribe(bus)
        while status >= 0 {
            status = sd_bus_process(opened, nil)
            if status == 0 {
                // Outside of the bus's own calls: an answer is waited for.
                lookAgain(bus)
                // What came with the answers was put aside, and wakes nobody.
                status = sd_bus_process(opened, nil)
            }
            if status == 0 { status = wait(opened, sleeper) }
            if state.withLock({ $0.isStopping }) { return false }
        }
        logger.debug("the system bus is not watched for now", metadata: ["why": "\(Self.text(status))"])
        // What was begun is not left so.
        tell(.sleeps(false))
        state.withLock { $0.isOutdated = true }
        return true
    }

    /// The watch outlives the connection, in whose calls it is used: its method runs.
    private func subscribe(_ bus: SystemBusConnection) -> Int32 {
        let watch = Unmanaged.passUnretained(self).toOpaque()
        let sleep = bus.match(
            "type='signal',sender='org.freedesktop.login1',path='/org/freedesktop/login1',"
                + "interface='org.freedesktop.login1.Manager',member='PrepareForSleep'",
            watch
        ) { message, watch, _ in
            guard let message, let watch else { return 0 }
            Unmanaged<SystemBusWatch>.fromOpaque(watch).takeUnretainedValue().sleepTold(message)
            return 0
        }
        guard sleep >= 0 else { return sleep }
        for property in MachineProperty.all {
            for rule in property.changeRules {
                let status = bus.match(rule, watch) { _, watch, _ in
                    guard let watch else { return 0 }
                    Unmanaged<SystemBusWatch>.fromOpaque(watch).takeUnretainedValue().changeTold()
                    return 0
                }
                guard status >= 0 else { return status }
            }
        }
        return 0
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

    private func sleepTold(_ message: OpaquePointer) {
        var isBefore: Int32 = 0
        guard sd_bus_message_read_basic(message, CChar(bitPattern: UInt8(ascii: "b")), &isBefore) > 0 else { return }
        logger.debug("logind says that the machine \(isBefore != 0 ? "is about to sleep" : "is awake")")
        tell(.sleeps(isBefore != 0))
    }

    // MARK: - Conditions

    private func changeTold() { state.withLock { $0.isOutdated = true } }

    private func lookAgain(_ bus: SystemBusConnection) {
        let isOutdated = state.withLock { state in
            defer { state.isOutdated = false }
            return state.isOutdated
        }
        guard isOutdated else { return }
        // NM_METERED_YES and NM_METERED_GUESS_YES; who does not know says 0.
        let metered = bus.value(of: .metered)
        let battery = bus.value(of: .onBattery)
        // Without an answer since the bus is gone, nobody has said that it is otherwise.
        guard bus.isOpen else { return }
        note(MachineConditions(isMetered: metered == 1 || metered == 3, isOnBattery: battery == 1))
    }

    private func note(_ conditions: MachineConditions) {
        let isNew = state.withLock { state in
            defer { state.conditions = conditions }
            return state.conditions != conditions
        }
        if isNew { tell(.conditions(conditions)) }
    }

    private static func text(_ status: Int32) -> String { String(cString: strerror(-status)) }
}
