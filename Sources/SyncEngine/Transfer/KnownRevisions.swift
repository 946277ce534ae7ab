import Synchronization
import UbiquityModel

/// Of which item a placeholder's revision is, where the synced tree does not say: while its row is not written yet, and after it
/// was replaced here while somebody still has it open. Bounded: the oldest are forgotten.
final class KnownRevisions: Sendable {
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
