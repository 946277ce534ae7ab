import Synchronization

/// The `O_PATH` descriptors of nodes, at most `limit` of them: the longest unused goes when there is no room (second chance).
final class DescriptorCache: Sendable {
    private struct Slot: Sendable {
        var node: UInt64
        var descriptor: SharedDescriptor
        var wasUsed: Bool
    }

    private struct State: Sendable {
        var slots: [Slot?] = []
        var free: [Int] = []
        var places: [UInt64: Int] = [:]
        var hand = 0
    }

    /// A leaf: memory work only. Descriptors are closed after it is released.
    private let state = Mutex(State())
    let limit: Int

    init(limit: Int) { self.limit = max(16, limit) }

    var count: Int { state.withLock { $0.places.count } }

    func descriptor(of node: UInt64) -> SharedDescriptor? {
        state.withLock { state in
            guard let place = state.places[node] else { return nil }
            state.slots[place]?.wasUsed = true
            return state.slots[place]?.descriptor
        }
    }

    /// Keeps a descriptor. If the node has one already, that one is kept and returned.
    func insert(_ descriptor: SharedDescriptor, for node: UInt64) -> SharedDescriptor {
        let (kept, evicted): (SharedDescriptor, SharedDescriptor?) = state.withLock { state in
            if let place = state.places[node], let slot = state.slots[place] { return (slot.descriptor, nil) }
            let (place, evicted) = Self.room(&state, limit: limit)
            state.slots[place] = Slot(node: node, descriptor: descriptor, wasUsed: false)
            state.places[node] = place
            return (descriptor, evicted)
        }
        // Its last reference may close a file: not under the lock.
        withExtendedLifetime(evicted) {}
        return kept
    }

    /// Gives up a node's descriptor; the caller may keep it.
    @discardableResult
    func remove(_ node: UInt64) -> SharedDescriptor? {
        state.withLock { state in
            guard let place = state.places.removeValue(forKey: node) else { return nil }
            let descriptor = state.slots[place]?.descriptor
            state.slots[place] = nil
            state.free.append(place)
            return descriptor
        }
    }

    /// Gives up half of all, when the process has no more descriptors to open.
    func shrink() {
        let evicted: [SharedDescriptor] = state.withLock { state in
            let places = state.slots.indices.filter { state.slots[$0] != nil }
            return places.prefix((places.count + 1) / 2).compactMap { place in
                guard let slot = state.slots[place] else { return nil }
                state.places[slot.node] = nil
                state.slots[place] = nil
                state.free.append(place)
                return slot.descriptor
            }
        }
        withExtendedLifetime(evicted) {}
    }

    func removeAll() {
        let all = state.withLock { state in
            defer { state = State() }
            return state.slots
        }
        withExtendedLifetime(all) {}
    }

    private static func room(_ state: inout State, limit: Int) -> (place: Int, evicted: SharedDescriptor?) {
        if let place = state.free.popLast() { return (place, nil) }
        if state.slots.count < limit {
            state.slots.append(nil)
            return (state.slots.count - 1, nil)
        }
        // No slot is free, so every one is taken: at the second visit at the latest one was not used since.
        while true {
            let place = state.hand
            state.hand = (place + 1) % state.slots.count
            guard let slot = state.slots[place], slot.wasUsed else {
                let old = state.slots[place]
                if let old { state.places[old.node] = nil }
                return (place, old?.descriptor)
            }
            state.slots[place]?.wasUsed = false
        }
    }
}
