import Synchronization

/// Something that is reached once, and that one task waits for.
final class Milestone: Sendable {
    private struct State {
        var isReached = false
        var waiting: CheckedContinuation<Void, Never>?
    }

    /// A leaf: memory work only.
    private let state = Mutex(State())

    func reach() {
        let waiting = state.withLock { state in
            defer { state.waiting = nil }
            state.isReached = true
            return state.waiting
        }
        waiting?.resume()
    }

    func wait() async {
        await withCheckedContinuation { continuation in
            let isReached = state.withLock { state in
                if !state.isReached { state.waiting = continuation }
                return state.isReached
            }
            if isReached { continuation.resume() }
        }
    }
}
