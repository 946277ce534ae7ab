import UbiquityModel

/// Items of which programs have deleted the files, and no pass has sent that, without what was admitted since.
struct DeletionsAhead {
    private(set) var items: Set<ItemID>
    /// When that was asked.
    let at: Instant
    /// How many of them lose something, if that was asked.
    var untidied: Int?

    init(items: Set<ItemID>, at: Instant) {
        self.items = items
        self.at = at
    }

    mutating func remove(_ admitted: [ItemID]) {
        items.subtract(admitted)
        untidied = nil
    }
}

/// Items of the container, as they were counted, without those of which the cloud has taken the deletion since.
struct CountedItems {
    var count: Int
    let at: Instant
}

/// Held deletions of which the database does not know yet that they are, or are no more: also what could not be written before.
struct HeldMarks {
    private(set) var unwritten: Set<ItemID> = []

    /// - Parameters:
    ///   - changed: What has come to be held, or is no more.
    ///   - held: All that is held now.
    mutating func write(
        _ changed: some Sequence<ItemID>,
        held: Set<ItemID>,
        _ write: (_ isHeld: Bool, _ items: [ItemID]) throws -> Void
    ) throws {
        unwritten.formUnion(changed)
        // All that is held may be a million, and not one of them has changed.
        let fresh = unwritten.filter { held.contains($0) }
        let former = unwritten.filter { !held.contains($0) }
        if !former.isEmpty { try write(false, former.sorted()) }
        if !fresh.isEmpty { try write(true, fresh.sorted()) }
        unwritten = []
    }
}
