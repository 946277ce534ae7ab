internal import Synchronization
internal import UbiquityModel

/// One device's open feed: told when there is news, without polling.
final class FeedSubscription: Sendable {
    enum Signal: Sendable {
        /// The container may have changed.
        case news
        /// Nothing happened for a while: say that the connection lives.
        case signOfLife
    }

    private struct State {
        var pending: Signal?
        var isEnded = false
        var waiting: CheckedContinuation<Signal?, Never>?
    }

    let device: DeviceID
    /// The container's number in the catalogue.
    let container: Int64
    private let number: Int
    private let hub: FeedHub
    /// Guards the signal that was not taken yet and who waits for one. A leaf: who waits is resumed outside of it.
    private let state = Mutex(State())

    init(number: Int, device: DeviceID, container: Int64, hub: FeedHub) {
        self.number = number
        self.device = device
        self.container = container
        self.hub = hub
    }

    deinit { hub.forget(number) }

    /// The next signal, or those since the last as one; `nil` when the feed is to end. One task at a time waits.
    func next() async -> Signal? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let ready = state.withLock { state -> Signal?? in
                    if state.isEnded { return .some(nil) }
                    if let signal = state.pending {
                        state.pending = nil
                        return .some(signal)
                    }
                    state.waiting = continuation
                    return nil
                }
                if let ready { continuation.resume(returning: ready) }
            }
        } onCancel: {
            end()
        }
    }

    func send(_ signal: Signal) {
        let waiting = state.withLock { state -> CheckedContinuation<Signal?, Never>? in
            if state.isEnded { return nil }
            if let waiting = state.waiting {
                state.waiting = nil
                return waiting
            }
            // News are never replaced by a sign of life.
            if case .news = state.pending { return nil }
            state.pending = signal
            return nil
        }
        waiting?.resume(returning: signal)
    }

    func end() {
        let waiting = state.withLock { state -> CheckedContinuation<Signal?, Never>? in
            state.isEnded = true
            defer { state.waiting = nil }
            return state.waiting
        }
        waiting?.resume(returning: nil)
    }
}
