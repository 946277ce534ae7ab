internal import FoundationEssentials
internal import UbiquityModel

/// Which extended attributes travel: `user.*`, of ours only `user.ubiquity.package`, 64 KiB an item together (semantics section 3).
package enum ExtendedAttributeLimits {
    /// Names and values of one item together.
    package static let totalBytes = ItemAttributes.longestExtended
    /// The kernel's limit for a name.
    package static let nameBytes = 255

    private static let user = Array("user.".utf8)
    private static let own = Array("user.ubiquity.".utf8)
    private static let package = Array(PackageDeclaration.attribute.utf8)

    /// Whether an attribute of this name is one that devices exchange.
    package static func isSynced(name: [UInt8]) -> Bool {
        guard name.starts(with: user), name.count > user.count, name.count <= nameBytes, !name.contains(0) else {
            return false
        }
        return !name.starts(with: own) || name == package
    }
}

/// - Throws: for names that are not synced, for a name that comes twice, and beyond the limit of an item.
func extendedAttributes(wire: [WireExtendedAttribute]) throws(WireError) -> [[UInt8]: [UInt8]] {
    var result = [[UInt8]: [UInt8]]()
    var total = 0
    for attribute in wire {
        let name = [UInt8](attribute.name)
        guard ExtendedAttributeLimits.isSynced(name: name) else {
            throw .unknown("an extended attribute", value: String(decoding: name.prefix(64), as: UTF8.self))
        }
        total += name.count + attribute.value.count
        guard total <= ExtendedAttributeLimits.totalBytes else {
            throw .tooLong("the set of extended attributes", bytes: total, limit: ExtendedAttributeLimits.totalBytes)
        }
        guard result.updateValue([UInt8](attribute.value), forKey: name) == nil else {
            throw .contradiction("an extended attribute comes twice")
        }
    }
    return result
}

/// In the order of their names, so that equal attributes are equal bytes.
func wireExtendedAttributes(_ attributes: [[UInt8]: [UInt8]]) -> [WireExtendedAttribute] {
    attributes.sorted { $0.key.lexicographicallyPrecedes($1.key) }.map { name, value in
        var wire = WireExtendedAttribute()
        wire.name = Data(name)
        wire.value = Data(value)
        return wire
    }
}
