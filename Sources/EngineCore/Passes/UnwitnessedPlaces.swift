package import UbiquityModel

/// Places that were found changed after a stop at which everything had been sent: no program has done that here. There may be thousands,
/// and few of them come or go at a time: only of those the state database is told.
package struct UnwitnessedPlaces: Sendable {
    private var places: Set<LocalPlace> = []
    /// Of these the state database does not know yet that they are some, or are none any more.
    private var unwritten: Set<LocalPlace> = []

    /// - Parameter known: as in the state database.
    package init(_ known: [LocalPlace] = []) { places = Set(known) }

    package var isEmpty: Bool { places.isEmpty }

    package func contains(_ place: LocalPlace) -> Bool { !places.isEmpty && places.contains(place) }

    package mutating func insert(_ place: LocalPlace) {
        if places.insert(place).inserted { unwritten.insert(place) }
    }

    /// - Returns: whether it was one.
    @discardableResult
    package mutating func remove(_ place: LocalPlace) -> Bool {
        guard !places.isEmpty, places.remove(place) != nil else { return false }
        unwritten.insert(place)
        return true
    }

    mutating func removeAll(where isOver: (LocalPlace) -> Bool) {
        for place in places.filter(isOver) { remove(place) }
    }

    /// What cannot be written is written the next time.
    mutating func write(_ write: (_ isUnwitnessed: Bool, _ places: [LocalPlace]) throws -> Void) rethrows {
        guard !unwritten.isEmpty else { return }
        let fresh = unwritten.filter { places.contains($0) }
        let former = unwritten.subtracting(fresh)
        if !former.isEmpty { try write(false, former.sorted()) }
        if !fresh.isEmpty { try write(true, fresh.sorted()) }
        unwritten = []
    }
}
