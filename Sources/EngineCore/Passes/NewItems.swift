package import UbiquityModel

/// The ids of items that the server does not know yet, or of which its answer was lost: a repeated attempt uses the same id, and what the
/// feed tells of such an item is told of the inode that it is, wherever that has gone meanwhile.
package struct NewItems {
    private struct Known {
        var item: ItemID
        /// Where it was last seen.
        var place: LocalPlace
    }

    private var known: [InodeKey: Known] = [:]
    private var keys: [ItemID: InodeKey] = [:]

    package subscript(key: InodeKey) -> ItemID? { known[key]?.item }

    package func key(of item: ItemID) -> InodeKey? { keys[item] }

    package func place(of key: InodeKey) -> LocalPlace? { known[key]?.place }

    /// The inode is that item from now on, and no other one is.
    package mutating func note(_ key: InodeKey, _ item: ItemID, at place: LocalPlace) {
        if let former = known.updateValue(Known(item: item, place: place), forKey: key), former.item != item {
            keys[former.item] = nil
        }
        if let former = keys.updateValue(key, forKey: item), former != key { known[former] = nil }
    }

    package mutating func remove(_ key: InodeKey) {
        if !known.isEmpty, let former = known.removeValue(forKey: key) { keys[former.item] = nil }
    }
}
