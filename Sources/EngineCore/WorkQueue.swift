/// What waits to be examined, each key with the moment from which it may be.
///
/// Keys are taken in the order of those moments, equal ones in the order of their arrival, so that the same events always give
/// the same work.
struct WorkQueue<Key: Hashable & Sendable>: Sendable {
    private struct Slot: Sendable {
        /// `nil`: free.
        var key: Key?
        var readyAt: Instant
        var sequence: UInt64
    }

    /// Without the key itself: of a hundred thousand that wait, each is moved many times until it is the first.
    private struct HeapElement: Sendable, Comparable {
        var readyAt: Instant
        var sequence: UInt64
        var slot: Int

        static func < (left: Self, right: Self) -> Bool {
            left.readyAt == right.readyAt ? left.sequence < right.sequence : left.readyAt < right.readyAt
        }
        static func == (left: Self, right: Self) -> Bool { left.sequence == right.sequence }
    }

    private var entries: [Key: Int] = [:]
    private var slots: [Slot] = []
    private var free: [Int] = []
    /// May hold elements whose key has moved on or gone: they are dropped when they come up.
    private var heap = BinaryHeap<HeapElement>()
    private var nextSequence: UInt64 = 0

    var isEmpty: Bool { entries.isEmpty }
    var count: Int { entries.count }
    /// For how many there is room, or was.
    var room: Int { heap.count }
    var keys: some Collection<Key> { entries.keys }

    func contains(_ key: Key) -> Bool { entries[key] != nil }

    /// Those that are not ready yet.
    func waiting(at now: Instant) -> [Key] { slots.compactMap { $0.readyAt > now ? $0.key : nil } }

    func readyAt(_ key: Key) -> Instant? { entries[key].map { slots[$0].readyAt } }

    /// Puts `key` in, or moves it to another moment.
    mutating func set(_ key: Key, readyAt: Instant) {
        nextSequence += 1
        let slot: Int
        if let known = entries[key] {
            slot = known
            slots[slot].readyAt = readyAt
            slots[slot].sequence = nextSequence
        } else {
            let entry = Slot(key: key, readyAt: readyAt, sequence: nextSequence)
            if let reused = free.popLast() {
                slot = reused
                slots[slot] = entry
            } else {
                slot = slots.count
                slots.append(entry)
            }
            entries[key] = slot
        }
        heap.insert(HeapElement(readyAt: readyAt, sequence: nextSequence, slot: slot))
        if heap.count > max(Self.leastHeap, 2 * entries.count) { dropAllOutdated() }
    }

    /// Nobody takes any while there is no connection, however often the same keys change.
    private mutating func dropAllOutdated() {
        heap = BinaryHeap()
        for (index, slot) in slots.enumerated() where slot.key != nil {
            heap.insert(HeapElement(readyAt: slot.readyAt, sequence: slot.sequence, slot: index))
        }
    }

    private static var leastHeap: Int { 1024 }

    mutating func remove(_ key: Key) {
        if let slot = entries.removeValue(forKey: key) { release(slot) }
    }

    mutating func removeAll() {
        entries.removeAll()
        slots.removeAll()
        free.removeAll()
        heap = BinaryHeap()
    }

    /// The moment at which the first key becomes ready.
    mutating func nextReady() -> Instant? {
        dropOutdated()
        return heap.first?.readyAt
    }

    /// Takes up to `limit` keys that are ready at `now`.
    mutating func takeReady(at now: Instant, limit: Int) -> [Key] {
        var taken = [Key]()
        while taken.count < limit {
            dropOutdated()
            guard let first = heap.first, first.readyAt <= now, let key = slots[first.slot].key else { break }
            heap.removeFirst()
            entries[key] = nil
            release(first.slot)
            taken.append(key)
        }
        return taken
    }

    /// Those that `takeReady` would give next, which stay.
    func upcoming(at now: Instant, limit: Int) -> [Key] {
        heap.smallest(limit).compactMap { element in
            guard element.readyAt <= now, slots[element.slot].sequence == element.sequence else { return nil }
            return slots[element.slot].key
        }
    }

    private mutating func release(_ slot: Int) {
        // No element of the heap has this number.
        slots[slot] = Slot(key: nil, readyAt: .start, sequence: 0)
        free.append(slot)
    }

    private mutating func dropOutdated() {
        while let first = heap.first, slots[first.slot].sequence != first.sequence { heap.removeFirst() }
    }
}

/// A plain binary min-heap.
struct BinaryHeap<Element: Comparable & Sendable>: Sendable {
    private var storage: [Element] = []

    var first: Element? { storage.first }
    var count: Int { storage.count }

    mutating func insert(_ element: Element) {
        storage.append(element)
        var index = storage.count - 1
        while index > 0 {
            let parent = (index - 1) / 2
            guard storage[index] < storage[parent] else { break }
            storage.swapAt(index, parent)
            index = parent
        }
    }

    /// The first ones, in their order.
    func smallest(_ count: Int) -> [Element] {
        var result: [Element] = []
        var next = BinaryHeap<Candidate>()
        func add(_ index: Int) {
            if index < storage.count { next.insert(Candidate(element: storage[index], index: index)) }
        }
        add(0)
        while result.count < count, let first = next.first {
            next.removeFirst()
            result.append(first.element)
            add(2 * first.index + 1)
            add(2 * first.index + 2)
        }
        return result
    }

    private struct Candidate: Comparable, Sendable {
        var element: Element
        var index: Int

        static func < (left: Self, right: Self) -> Bool { left.element < right.element }
        static func == (left: Self, right: Self) -> Bool { left.element == right.element }
    }

    mutating func removeFirst() {
        guard let last = storage.popLast() else { return }
        guard !storage.isEmpty else { return }
        storage[0] = last
        var index = 0
        while true {
            var smallest = index
            let left = 2 * index + 1
            if left < storage.count, storage[left] < storage[smallest] { smallest = left }
            if left + 1 < storage.count, storage[left + 1] < storage[smallest] { smallest = left + 1 }
            guard smallest != index else { break }
            storage.swapAt(index, smallest)
            index = smallest
        }
    }
}
