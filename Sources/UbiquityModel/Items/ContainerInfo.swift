/// What a device knows of a container that it may use.
package struct ContainerInfo: Hashable, Sendable {
    package enum Layout: String, Sendable, Hashable {
        /// The whole tree is the documents scope.
        case drive
        /// `Documents/` is the documents scope, everything else the data scope.
        case app
    }

    package var id: ContainerID
    /// 32 bytes: names chunks and contents.
    package var key: [UInt8]
    package var layout: Layout
    package var isCaseInsensitive: Bool
    /// For this device.
    package var isReadOnly: Bool
    package var packages: PackageDeclaration

    package init(
        id: ContainerID,
        key: [UInt8],
        layout: Layout,
        isCaseInsensitive: Bool,
        isReadOnly: Bool,
        packages: PackageDeclaration = PackageDeclaration()
    ) {
        self.id = id
        self.key = key
        self.layout = layout
        self.isCaseInsensitive = isCaseInsensitive
        self.isReadOnly = isReadOnly
        self.packages = packages
    }
}

/// An item in *recently deleted*.
package struct DeletedItem: Hashable, Sendable {
    package var item: RemoteItem
    /// The path that it had, as far as its folders are still known.
    package var path: String
    package var deleted: Timestamp
    package var device: String

    package init(item: RemoteItem, path: String, deleted: Timestamp, device: String) {
        self.item = item
        self.path = path
        self.deleted = deleted
        self.device = device
    }
}
