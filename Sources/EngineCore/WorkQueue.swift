/// What waits to be examined, each key with the moment from which it may be.
///
/// Keys are taken in the order of those moments, equal ones in the order of their arrival, so that the same events always give
/// the same work.
struct WorkQueue<Key: Hashable & Sendable>: Sendable {
    private struct Entry: Sendable {
        var readyAt: Instant
        var sequence: UInt64
    }

    private struct HeapElement: Sendable, Comparable {
        var readyAt: Instant
        var sequence: UInt64
        var key: Key

        static func < (left: Self, right: Self) -> Bool {
            (left.readyAt, left.sequence) < (right.readyAt, right.sequence)
        }
        static func == (left: Self, right: Self) -> Bool { left.sequence == right.sequence }
    }

    private var entries: [Key: Entry] = [:]
    /// May hold elements whose entry has moved on: they are dropped when they come up.
    private var heap = BinaryHeap<HeapElement>()
    private var nextSequence: UInt64 = 0

    var isEmpty: Bool { entries.isEmpty }
    var count: Int { entries.count }
    var keys: some Collection<Key> { entries.keys }

    func contains(_ key: Key) -> Bool { entries[key] != nil }

    func readyAt(_ key: Key) -> Instant? { entries[key]?.readyAt }

    /// Puts `key` in, or moves it to another moment.
    mutating func set(_ key: Key, readyAt: Instant) {
        nextSequence += 1
        entries[key] = Entry(readyAt: readyAt, sequence: nextSequence)
        heap.insert(HeapElement(readyAt: readyAt, sequence: nextSequence, key: key))
    }

    mutating func remove(_ key: Key) { entries[key] = nil }

    mutating func removeAll() {
        entries.removeAll()
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
            guard let first = heap.first, first.readyAt <= now else { break }
            heap.removeFirst()
            entries[first.key] = nil
            taken.append(first.key)
        }
        return taken
    }

    private mutating func dropOutdated() {
        while let first = heap.first, entries[first.key]?.sequence != first.sequence { heap.removeFirst() }
    }
}

/// A plain binary min-heap.
struct BinaryHeap<Element: Comparable & Sendable>: Sendable {
    private var storage: [Element] = []

    var first: Element? { storage.first }

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

    mutating func removeFirst() {
        guard let last = storage.popLast() else { return }
        guard !storage.isEmpty else { return }
        storage[0] = last
        var index = 0
        while true {
            var smallest = index
            for child in [2 * index + 1, 2 * index + 2]
            where child < storage.count && storage[child] < storage[smallest] {
                smallest = child
            }
            guard smallest != index else { break }
            storage.swapAt(index, smallest)
            index = smallest
        }
    }
}
