internal import UbiquityModel

/// The rows of small folders, by name, for a thread that asks for one name of a folder after the other: it gets all of them at once.
///
/// Good for one state of the database: what was read of another one is forgotten.
struct NameCache<Row> {
    /// So many names of a folder are asked for one by one before the others are fetched, which may not be wanted.
    private static var patience: Int { 8 }
    /// Folders with more rows are asked name by name.
    static var largest: Int { 300 }

    private var version: UInt64?
    private var asked: [ItemID: Int] = [:]
    private var known: [ItemID: [Name: [Row]]] = [:]

    /// - Parameter load: a folder's rows, in the order in which those of one name are wanted; not many more than `largest`.
    /// - Returns: `nil`: to be asked for by itself.
    mutating func rows(
        at place: Place,
        asOf version: UInt64,
        name: (Row) -> Name,
        load: (ItemID) throws -> [Row]
    ) rethrows -> [Row]? {
        if self.version != version {
            (asked, known) = ([:], [:])
            self.version = version
        }
        if let folder = known[place.parent] { return folder[place.name] ?? [] }
        let count = (asked[place.parent] ?? 0) + 1
        asked[place.parent] = count
        guard count == Self.patience else { return nil }
        let rows = try load(place.parent)
        guard rows.count <= Self.largest else { return nil }
        let folder = Dictionary(grouping: rows, by: name)
        known[place.parent] = folder
        return folder[place.name] ?? []
    }
}
