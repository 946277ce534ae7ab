/// What happens at which virtual moment: a heap, in which what comes at one moment keeps its order.
struct SimEvents {
    /// Plain words: they are moved about more than anything else.
    private struct Entry {
        var at: Duration
        var number: UInt64
        /// Of its body.
        var slot: Int

        static func < (left: Self, right: Self) -> Bool { (left.at, left.number) < (right.at, right.number) }
    }

    private var heap: [Entry] = []
    private var bodies: [(() -> Void)?] = []
    private var freeSlots: [Int] = []
    private var count: UInt64 = 0

    mutating func add(at moment: Duration, _ body: @escaping () -> Void) {
        count += 1
        heap.append(Entry(at: moment, number: count, slot: keep(body)))
        var child = heap.count - 1
        while child > 0, heap[child] < heap[(child - 1) / 2] {
            heap.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    private mutating func keep(_ body: @escaping () -> Void) -> Int {
        guard let slot = freeSlots.popLast() else {
            bodies.append(body)
            return bodies.count - 1
        }
        bodies[slot] = body
        return slot
    }

    var next: Duration? { heap.first?.at }

    mutating func removeFirst() -> (() -> Void)? {
        guard let first = heap.first else { return nil }
        heap.swapAt(0, heap.count - 1)
        heap.removeLast()
        var parent = 0
        while true {
            var least = parent
            for child in (2 * parent + 1)...(2 * parent + 2) where child < heap.count && heap[child] < heap[least] {
                least = child
            }
            guard least != parent else { break }
            heap.swapAt(parent, least)
            parent = least
        }
        freeSlots.append(first.slot)
        return bodies[first.slot].take()
    }
}
