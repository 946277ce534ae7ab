package import UbiquityModel

/// Large contents travel beside the passes, only so many of them at a time. Who comes later has a place in a queue, and is told when it is
/// his turn.
package struct TransferSlots {
    package static let limit = 3
    /// Whoever waits looks by himself after that time, should nobody tell him.
    package static let longestWait = Duration.seconds(30)

    private var active: Set<ItemID> = []
    /// In the order of arrival.
    private var queue: [ItemID] = []
    private var waiting: [ItemID: Set<EngineCore.Work>] = [:]

    package init() {}

    /// - Returns: whether the item's transfer may begin.
    package mutating func begin(_ item: ItemID, _ works: Set<EngineCore.Work>) -> Bool {
        if active.contains(item) || active.count < Self.limit {
            active.insert(item)
            return true
        }
        if waiting[item] == nil { queue.append(item) }
        waiting[item, default: []].formUnion(works)
        return false
    }

    package mutating func end(_ item: ItemID) { active.remove(item) }

    /// The work of as many as may begin now. Who has no use for it any more leaves the place to the next one, who is told when this is asked
    /// again.
    package mutating func next() -> [EngineCore.Work] {
        guard !queue.isEmpty, active.count < Self.limit else { return [] }
        let items = queue.prefix(Self.limit - active.count)
        queue.removeFirst(items.count)
        return items.flatMap { (waiting.removeValue(forKey: $0) ?? []).sorted() }
    }
}
