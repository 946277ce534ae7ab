package import FoundationEssentials
package import UbiquityModel

extension Place {
    package init(wire: WirePlace) throws(WireError) {
        self.init(parent: try ItemID(wire: wire.parent, "the folder's id"), name: try Name(wire: wire.name))
    }
}

extension WirePlace {
    package init(_ place: Place) {
        self.init()
        parent = place.parent.wire
        name = place.name.wire
    }
}

extension ItemAttributes {
    package init(wire: WireAttributes) throws(WireError) {
        self.init(
            modified: Timestamp(wire: wire.modified),
            mode: try checkedMode(wire.mode),
            extended: try extendedAttributes(wire: wire.extended)
        )
    }
}

extension WireAttributes {
    package init(_ attributes: ItemAttributes) {
        self.init()
        modified = attributes.modified.wire
        mode = UInt32(attributes.mode)
        extended = wireExtendedAttributes(attributes.extended)
    }
}

extension ItemContent {
    /// The longest target of a symbolic link (PATH_MAX without its NUL).
    package static let longestTarget = 4095

    package init(wire: WireContent) throws(WireError) {
        switch wire.kind {
        case .folder:
            self = .folder
        case .symlink:
            self = .symlink(target: try Self.target(wire: wire.target))
        case .file, .package:
            self = .file(try FileContent(wire: wire))
        case .unknown:
            throw .missing("the kind of an item")
        case .UNRECOGNIZED(let value):
            throw .unknown("the kind of an item", value: "\(value)")
        }
    }

    /// What a symbolic link leads to, checked.
    static func target(wire: Data) throws(WireError) -> [UInt8] {
        let target = [UInt8](wire)
        guard !target.isEmpty else { throw .missing("a symbolic link's target") }
        guard target.count <= longestTarget else {
            throw .tooLong("a symbolic link's target", bytes: target.count, limit: longestTarget)
        }
        guard !target.contains(0) else { throw .contradiction("a symbolic link's target contains a NUL byte") }
        return target
    }
}

extension FileContent {
    fileprivate init(wire: WireContent) throws(WireError) {
        self.init(
            revision: try RevisionID(wire: wire.revision, "the revision"),
            content: try ContentID.optional(wire: wire.content, "the content's id"),
            size: try checkedSize(wire.size),
            isPackage: wire.kind == .package
        )
    }
}

extension WireContent {
    package init(_ content: ItemContent) {
        self.init()
        switch content {
        case .folder:
            kind = .folder
        case .symlink(let target):
            kind = .symlink
            self.target = Data(target)
        case .file(let file):
            kind = file.isPackage ? .package : .file
            revision = file.revision.wire
            self.content = file.content?.wire ?? Data()
            size = file.size
        }
    }
}

extension RemoteItem {
    package init(wire: WireItem) throws(WireError) {
        let id = try ItemID(wire: wire.id, "the item's id")
        guard id != .root else { throw .contradiction("the root folder is never sent") }
        guard wire.hasPlace else { throw .missing("the item's place") }
        let place = try Place(wire: wire.place)
        guard place.parent != id else { throw .contradiction("an item lies in itself") }
        self.init(
            id: id,
            place: place,
            content: try ItemContent(wire: wire.content),
            attributes: try ItemAttributes(wire: wire.attributes),
            position: wire.position,
            isDeleted: wire.deleted,
            author: wire.author,
            edited: Timestamp(wire: wire.edited),
            conflicts: try wire.conflicts.map { (version) throws(WireError) in try ItemVersion(wire: version) }
        )
    }
}

extension WireItem {
    /// Longer manifests are not sent with the item but asked for by content.
    package static let longestInlineManifest = 32

    /// - Parameter manifest: of the item's current content, if it is at hand; sent along when it is short enough.
    package init(_ item: RemoteItem, manifest: Manifest?) {
        self.init()
        id = item.id.wire
        place = WirePlace(item.place)
        content = WireContent(item.content)
        attributes = WireAttributes(item.attributes)
        position = item.position
        deleted = item.isDeleted
        author = item.author
        edited = item.edited.wire
        conflicts = item.conflicts.map { WireVersion($0) }
        if let manifest, manifest.entries.count <= Self.longestInlineManifest {
            self.manifest = Data(manifest.encoded)
        }
    }

    /// The manifest that came with the item: `nil` if none did. That of an empty file is known without one.
    package func inlineManifest(for item: RemoteItem) throws(WireError) -> (content: ContentID, manifest: Manifest)? {
        guard case .file(let file) = item.content, let content = file.content else {
            guard manifest.isEmpty else { throw .contradiction("a manifest for an item without content") }
            return nil
        }
        if manifest.isEmpty, file.size > 0 { return nil }
        return (content, try Manifest(wire: manifest, size: file.size))
    }
}

extension Manifest {
    /// - Parameter size: of the content; its chunks must add up to it.
    package init(wire data: Data, size: Int64?) throws(WireError) {
        guard let manifest = Manifest(encoded: data) else { throw .undecodable("a manifest") }
        if let size, manifest.size != size { throw .contradiction("the chunks do not add up to the file's size") }
        self = manifest
    }
}
