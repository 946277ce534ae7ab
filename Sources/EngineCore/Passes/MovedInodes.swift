package import UbiquityModel

/// Where inodes went that moved since their synced row was written, and which of them came to a place.
package struct MovedInodes {
    private var places: [InodeKey: LocalPlace] = [:]
    /// In the order in which they came. Nearly always one; several, when one was renamed over another.
    private var keys: [LocalPlace: [InodeKey]] = [:]

    package var isEmpty: Bool { places.isEmpty }

    package subscript(key: InodeKey) -> LocalPlace? {
        get { places[key] }
        set {
            if let former = places[key] {
                keys[former]?.removeAll { $0 == key }
                if keys[former]?.isEmpty ?? false { keys[former] = nil }
            }
            places[key] = newValue
            if let newValue { keys[newValue, default: []].append(key) }
        }
    }

    /// Those that came to a place and, as far as is known, have not left it: all but one have been replaced.
    package func keys(at place: LocalPlace) -> [InodeKey] { keys[place] ?? [] }
}
