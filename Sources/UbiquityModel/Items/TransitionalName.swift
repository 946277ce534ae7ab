/// The name of an item that makes room for another while names are swapped, here or in the cloud. It is never taken for a name that
/// somebody has given: whoever finds an item under it moves it on to where it belongs. It says which item that is, so that neither another
/// one that has its old name by now, nor a restart, makes it a new one. The server takes it back from whoever does not get the name that was to
/// follow in the same commit.
package enum TransitionalName {
    private static let prefix = Array(".ubiquity-moving-".utf8)

    package static func of(_ item: ItemID) -> Name? { try? Name(bytes: prefix + Array(item.description.utf8)) }

    /// `nil`: the name is none of these.
    package static func item(of name: Name) -> ItemID? {
        guard name.bytes.starts(with: prefix) else { return nil }
        return ItemID(String(decoding: name.bytes.dropFirst(prefix.count), as: UTF8.self))
    }

    package static func matches(_ name: Name) -> Bool { item(of: name) != nil }
}
