package import UbiquityModel

/// Another content of an item.
package struct VersionReport: Codable, Sendable {
    package var id: String
    /// `current`, `conflict` or `saved`.
    package var kind: String
    /// Nanoseconds since 1970: when it was made on its device.
    package var edited: Int64
    package var device: String
    package var size: Int64
    /// The item's name at that time.
    package var name: ControlPath

    package init(_ version: ItemVersion) {
        id = version.revision.description
        kind =
            switch version.kind {
            case .current: "current"
            case .conflict: "conflict"
            case .saved: "saved"
            }
        edited = version.edited.nanoseconds
        device = version.device
        size = version.size
        name = ControlPath(bytes: version.name.bytes)
    }
}

/// Every unresolved conflict of the mounted containers.
package struct ConflictsRequest: ControlRequest {
    package typealias Answer = [ConflictReport]
    package static var verb: String { "conflicts" }
    package init() {}
}

package struct ConflictReport: Codable, Sendable {
    package var path: ControlPath
    package var versions: [VersionReport]

    package init(path: ControlPath, versions: [VersionReport]) {
        self.path = path
        self.versions = versions
    }
}

/// The versions of one item: current, then conflicts, then saved ones.
package struct VersionsRequest: ControlRequest {
    package typealias Answer = [VersionReport]
    package static var verb: String { "versions" }

    package var path: ItemArgument
    package init(path: ItemArgument) { self.path = path }
}

/// The content of a version, as a descriptor that comes with the answer; of a package a tar archive of it.
package struct VersionContentRequest: ControlRequest {
    package typealias Answer = Nothing
    package static var verb: String { "version-content" }

    package var path: ItemArgument
    /// The revision's id, or the beginning of it that no other version of the item has.
    package var version: String

    package init(path: ItemArgument, version: String) {
        self.path = path
        self.version = version
    }
}

/// Makes a version the content again; what was in the file becomes a saved version.
package struct RestoreVersionRequest: ControlRequest {
    package typealias Answer = Nothing
    package static var verb: String { "version-restore" }

    package var path: ItemArgument
    package var version: String

    package init(path: ItemArgument, version: String) {
        self.path = path
        self.version = version
    }
}

/// Resolves an item's conflicts.
package struct ResolveRequest: ControlRequest {
    package typealias Answer = Nothing
    package static var verb: String { "version-resolve" }

    package var path: ItemArgument
    /// `current`, `both`, or a version.
    package var keep: String

    package init(path: ItemArgument, keep: String) {
        self.path = path
        self.keep = keep
    }
}
