import Synchronization

/// The nodes whose backing files are bound, at most about `limit` of them: each keeps an inode of the disk in the kernel's memory.
/// Those that were used least lately go first (second chance), but for those that are in use.
final class BackingCache: Sendable {
    private struct Slot: Sendable {
        var node: Node
        var wasUsed: Bool
    }

    private struct State: Sendable {
        var slots: [UInt64: Slot] = [:]
        /// In the order of their next visit; may name nodes that have gone.
        var queue: [UInt64] = []
        var head = 0
    }

    /// A leaf: memory work only.
    private let state = Mutex(State())
    let limit: Int

    init(limit: Int = 16384) { self.limit = limit }

    func noteUse(_ node: Node) { state.withLock { $0.slots[node.id]?.wasUsed = true } }

    /// Keeps a node.
    /// - Returns: nodes whose ids should be given up, if they are not in use. Those that are come back with `insert`.
    func insert(_ node: Node) -> [Node] {
        state.withLock { state in
            if state.slots.updateValue(Slot(node: node, wasUsed: false), forKey: node.id) == nil {
                state.queue.append(node.id)
            }
            var surplus = [Node]()
            var visits = 0
            while state.slots.count > limit, visits < 64, state.head < state.queue.count {
                visits += 1
                let id = state.queue[state.head]
                state.head += 1
                guard let slot = state.slots[id] else { continue }
                if slot.wasUsed || slot.node.id == node.id {
                    state.slots[id]?.wasUsed = false
                    state.queue.append(id)
                } else {
                    state.slots[id] = nil
                    surplus.append(slot.node)
                }
            }
            if state.head > 4096, state.head * 2 > state.queue.count {
                state.queue.removeFirst(state.head)
                state.head = 0
            }
            return surplus
        }
    }

    func remove(_ node: Node) { state.withLock { _ = $0.slots.removeValue(forKey: node.id) } }
}
