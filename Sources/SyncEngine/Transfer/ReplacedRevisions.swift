import Synchronization
import UbiquityModel

/// Revisions that were replaced here while somebody may still have them open: their chunks stay fetchable, this says of which
/// item they are. Bounded: the oldest are forgotten.
final class ReplacedRevisions: Sendable {
    private static let limit = 10_000

    private struct State: Sendable {
        var items: [RevisionID: ItemID] = [:]
        var order: [RevisionID] = []
    }

    /// Guards memory only; a leaf in the order of locks.
    private let state = Mutex(State())

    func note(_ revision: RevisionID, of item: ItemID) {
        state.withLock { state in
            guard state.items.updateValue(item, forKey: revision) == nil else { return }
            state.order.append(revision)
            if state.order.count > Self.limit {
                for old in state.order.prefix(Self.limit / 2) { state.items[old] = nil }
                state.order.removeFirst(Self.limit / 2)
            }
        }
    }

    func item(of revision: RevisionID) -> ItemID? { state.withLock { $0.items[revision] } }
}
