internal import Driver
internal import Synchronization

/// A request for content that has to be let through first, and can be called off before and after.
final class GatedContent: Sendable {
    private struct State {
        var isCancelled = false
        var inner: ContentRequest?
    }

    private let state = Mutex(State())

    /// Asks, unless it was called off. `false` if it was.
    func proceed(_ ask: () -> ContentRequest) -> Bool {
        if state.withLock({ $0.isCancelled }) { return false }
        let inner = ask()
        let isCancelled = state.withLock { state in
            state.inner = inner
            return state.isCancelled
        }
        if isCancelled { inner.cancel() }
        return true
    }

    func cancel() {
        let inner = state.withLock { state in
            state.isCancelled = true
            return state.inner
        }
        inner?.cancel()
    }
}
