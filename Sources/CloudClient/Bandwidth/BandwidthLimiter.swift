internal import Synchronization

/// How much of a link a device may take.
package struct BandwidthLimits: Sendable, Hashable {
    /// Bytes a second on their way to the cloud; `nil`: whatever the link gives.
    package var up: Int64?
    /// Bytes a second on their way here; `nil`: whatever the link gives.
    package var down: Int64?

    package init(up: Int64? = nil, down: Int64? = nil) {
        self.up = up
        self.down = down
    }
}

/// Keeps all connections of a client together below its limits, from the next bytes on.
///
/// What comes is counted as it does on the wire, with encryption and headers; what goes by its bodies.
package final class BandwidthLimiter: Sendable {
    enum Direction { case up, down }

    /// Of what travels at a time below a limit, in bytes: with as much as without, many connections would have to wait for each other for
    /// so long that each looked dead.
    static let smallPiece = 16 * 1024

    private struct State {
        var up = RateLimit(rate: nil)
        var down = RateLimit(rate: nil)
    }

    private let began = ContinuousClock.now
    /// So that no connection takes a lock for nothing.
    private let isLimiting = Atomic(false)
    /// A leaf: memory work only.
    private let state = Mutex(State())

    package init() {}

    package func set(_ limits: BandwidthLimits) {
        state.withLock { state in
            state.up.set(limits.up)
            state.down.set(limits.down)
            isLimiting.store(limits.up != nil || limits.down != nil, ordering: .relaxed)
        }
    }

    /// In either direction.
    var isLimited: Bool { isLimiting.load(ordering: .relaxed) }

    func wait(_ direction: Direction) -> Duration {
        guard isLimited else { return .zero }
        let now = began.duration(to: .now)
        return state.withLock { state in
            switch direction {
            case .up: state.up.wait(at: now)
            case .down: state.down.wait(at: now)
            }
        }
    }

    /// So many bytes take their place in the order of arrival: whoever comes later waits behind them.
    /// - Returns: how long they have to wait for it.
    func reserve(_ bytes: Int, _ direction: Direction) -> Duration {
        guard isLimited else { return .zero }
        let now = began.duration(to: .now)
        return state.withLock { state in
            switch direction {
            case .up: state.up.reserve(bytes, at: now)
            case .down: state.down.reserve(bytes, at: now)
            }
        }
    }

    func note(_ bytes: Int, _ direction: Direction) {
        guard isLimited else { return }
        let now = began.duration(to: .now)
        state.withLock { state in
            switch direction {
            case .up: state.up.note(bytes, at: now)
            case .down: state.down.note(bytes, at: now)
            }
        }
    }
}
