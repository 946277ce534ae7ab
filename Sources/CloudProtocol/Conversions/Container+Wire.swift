internal import FoundationEssentials
package import UbiquityModel

extension ContainerInfo {
    /// The length of a container's key in bytes.
    package static let keyBytes = 32

    package init(wire: WireContainerInfo) throws(WireError) {
        guard let id = ContainerID(wire.id) else { throw .unknown("a container's name", value: wire.id) }
        guard wire.key.count == Self.keyBytes else { throw .wrongLength("a container's key", bytes: wire.key.count) }
        guard let layout = Layout(rawValue: wire.layout) else {
            throw .unknown("a container's layout", value: wire.layout)
        }
        self.init(
            id: id,
            key: [UInt8](wire.key),
            layout: layout,
            isCaseInsensitive: wire.caseInsensitive,
            isReadOnly: wire.readOnly,
            packages: PackageDeclaration(told: wire.packages)
        )
    }
}

extension WireContainerInfo {
    package init(_ container: ContainerInfo) {
        self.init()
        id = container.id.text
        key = Data(container.key)
        layout = container.layout.rawValue
        caseInsensitive = container.isCaseInsensitive
        readOnly = container.isReadOnly
        if !container.packages.isEmpty { packages = WirePackageDeclaration(container.packages) }
    }
}

extension PackageDeclaration {
    /// What a device asks for.
    package init(wire: WirePackageDeclaration) throws(WireError) {
        let extensions = wire.added + wire.removed
        guard extensions.count <= Self.limit else {
            throw .tooMany("extensions of packages", extensions.count, limit: Self.limit)
        }
        for text in extensions where Self.checked(text) != text {
            throw .unknown("an extension of packages", value: String(text.prefix(100)))
        }
        guard Set(wire.added).isDisjoint(with: wire.removed) else {
            throw .contradiction("an extension is to be one of packages and not to be one")
        }
        self.init(added: Set(wire.added), removed: Set(wire.removed))
    }

    /// What the server tells. A newer one may take other words for extensions: a container is of use without them.
    package init(told wire: WirePackageDeclaration) {
        let removed = wire.removed.prefix(Self.limit)
        self.init(added: Set(wire.added.prefix(Self.limit - removed.count)), removed: Set(removed))
    }
}

extension WirePackageDeclaration {
    package init(_ declaration: PackageDeclaration) {
        self.init()
        added = declaration.added.sorted()
        removed = declaration.removed.sorted()
    }
}

extension LogPosition {
    /// The running hash is empty at the very beginning, else 32 bytes.
    package init(wire: WirePosition) throws(WireError) {
        try self.init(counter: wire.counter, wireHash: [UInt8](wire.hash))
    }

    /// For the query of a request: a position is checked the same way wherever it comes from.
    package init(counter: UInt64, wireHash hash: [UInt8]) throws(WireError) {
        guard hash.isEmpty || hash.count == 32 else { throw .wrongLength("a position's hash", bytes: hash.count) }
        self.init(counter: counter, hash: hash)
    }
}

extension WirePosition {
    package init(_ position: LogPosition) {
        self.init()
        counter = position.counter
        hash = Data(position.hash)
    }
}

extension DeletedItem {
    package init(wire: WireDeletedItem) throws(WireError) {
        guard wire.hasItem else { throw .missing("the deleted item") }
        self.init(
            item: try RemoteItem(wire: wire.item),
            path: wire.path,
            deleted: Timestamp(wire: wire.deleted),
            device: wire.device
        )
    }
}

extension WireDeletedItem {
    package init(_ deleted: DeletedItem) {
        self.init()
        item = WireItem(deleted.item, manifest: nil)
        path = deleted.path
        self.deleted = deleted.deleted.wire
        device = deleted.device
    }
}
