package import UbiquityModel

/// The name of an item that makes room for another while names are swapped, here or in the cloud. It is never taken for a name that
/// somebody has given: whoever finds an item under it moves it on to where it belongs.
package enum TransitionalName {
    private static let prefix = Array(".ubiquity-moving-".utf8)

    package static func of(_ item: ItemID) -> Name? { try? Name(bytes: prefix + Array(item.description.utf8)) }

    package static func matches(_ name: Name) -> Bool { name.bytes.starts(with: prefix) }
}
