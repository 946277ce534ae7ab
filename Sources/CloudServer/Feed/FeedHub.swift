internal import CloudProtocol
internal import Synchronization
internal import UbiquityModel

/// Tells open feeds of this process what was committed, who was revoked, and that time passes.
///
/// It holds subscriptions weakly: a feed ends with its connection, and takes its subscription with it.
final class FeedHub: Sendable {
    private struct Entry: Sendable {
        weak var subscription: FeedSubscription?
    }

    private struct State {
        var next = 0
        var entries: [Int: Entry] = [:]
        var isClosed = false
        /// Runs while there is a feed.
        var signsOfLife: Task<Void, Never>?
    }

    private let interval: Duration
    /// Guards the list of feeds. They are told outside of it.
    private let state = Mutex(State())

    init(signOfLife interval: Duration = CloudLimits.signOfLife) { self.interval = interval }

    func subscribe(device: DeviceID, container: Int64) -> FeedSubscription {
        let (subscription, isClosed) = state.withLock { state in
            state.next += 1
            let subscription = FeedSubscription(number: state.next, device: device, container: container, hub: self)
            state.entries[state.next] = Entry(subscription: subscription)
            if state.signsOfLife == nil, !state.isClosed { state.signsOfLife = makeSignsOfLife() }
            return (subscription, state.isClosed)
        }
        if isClosed { subscription.end() }
        return subscription
    }

    /// Called by a subscription that goes away.
    func forget(_ number: Int) {
        let stopped = state.withLock { state -> Task<Void, Never>? in
            state.entries[number] = nil
            guard state.entries.isEmpty else { return nil }
            defer { state.signsOfLife = nil }
            return state.signsOfLife
        }
        stopped?.cancel()
    }

    /// The container has new entries in its log.
    func announce(container: Int64) {
        for feed in feeds() where feed.container == container { feed.send(.news) }
    }

    /// The device was revoked: its feeds end now.
    func end(device: DeviceID) {
        for feed in feeds() where feed.device == device { feed.end() }
    }

    /// The container was removed. Its feeds look, and find that out.
    func containerRemoved(_ container: Int64) { announce(container: container) }

    /// All feeds end, and later ones at once: the server is stopping.
    func close() {
        state.withLock { $0.isClosed = true }
        for feed in feeds() { feed.end() }
    }

    private func feeds() -> [FeedSubscription] { state.withLock { $0.entries.values.compactMap(\.subscription) } }

    private func makeSignsOfLife() -> Task<Void, Never> {
        Task { [weak self, interval] in
            while true {
                do { try await Task.sleep(for: interval) } catch { return }
                guard let self else { return }
                for feed in self.feeds() { feed.send(.signOfLife) }
            }
        }
    }
}
