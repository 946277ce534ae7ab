import Replica
import Synchronization

/// Writes down what is here of a file while the rest is still coming, now and then: what a service had fetched that dies meanwhile is not
/// fetched again.
final class RangeKeeper: Sendable {
    private static let interval = Duration.seconds(5)

    /// When it was written down last; `nil` while it is being written down.
    private let last = Mutex<ContinuousClock.Instant?>(.now)

    func keep(_ file: PlaceholderFile, in replica: Replica) {
        let isDue = last.withLock { last in
            guard let since = last, ContinuousClock.now - since >= Self.interval else { return false }
            last = nil
            return true
        }
        guard isDue else { return }
        BlockingPool.shared.submit { [self] in
            try? RangeStore.save(file, in: replica)
            last.withLock { $0 = .now }
        }
    }
}
