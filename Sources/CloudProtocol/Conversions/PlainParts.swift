internal import UbiquityModel

// Generated code makes an object, with copies of its bytes, of every message within a message. What nearly all items and operations consist
// of is read and written here without: the same bytes, and the same checks. Whoever is not exactly so (a field twice, one that is not
// known here, a value that cannot be) is `nil`, and goes the general way, which also says what is wrong.

/// The messages `Place`, `Content` and `Attributes`, of files and folders without extended attributes.
enum PlainParts {
    /// Fields as they stand on the wire: the number, and whether it is a varint (0), eight bytes (1) or bytes with their length (2).
    private enum Tag {
        static let placeParent: UInt64 = 1 << 3 | 2
        static let placeName: UInt64 = 2 << 3 | 2

        static let contentKind: UInt64 = 1 << 3 | 0
        static let contentRevision: UInt64 = 2 << 3 | 2
        static let contentID: UInt64 = 3 << 3 | 2
        static let contentSize: UInt64 = 4 << 3 | 0

        static let attributesModified: UInt64 = 1 << 3 | 1
        static let attributesMode: UInt64 = 2 << 3 | 0
    }

    // MARK: Reading

    // No field comes twice: so what is plain is also short, however long a message was made to do harm.

    static func place(_ bytes: UnsafeRawBufferPointer) -> Place? {
        var reader = WireReader(bytes)
        var parent: ItemID?
        var name: Name?
        while !reader.isAtEnd {
            switch reader.tag() {
            case Tag.placeParent:
                guard parent == nil, let value = reader.field().flatMap({ ItemID(bytes: $0) }) else { return nil }
                parent = value
            case Tag.placeName:
                guard name == nil, let value = reader.field().flatMap({ try? Name(bytes: $0) }) else { return nil }
                name = value
            default: return nil
            }
        }
        guard let parent, let name else { return nil }
        return Place(parent: parent, name: name)
    }

    static func content(_ bytes: UnsafeRawBufferPointer) -> ItemContent? {
        var reader = WireReader(bytes)
        var kind: UInt64?
        var revision: RevisionID?
        var content: ContentID?
        var size: Int64?
        while !reader.isAtEnd {
            switch reader.tag() {
            case Tag.contentKind:
                guard kind == nil, let value = reader.varint() else { return nil }
                kind = value
            case Tag.contentRevision:
                guard revision == nil, let value = reader.field().flatMap({ RevisionID(bytes: $0) }) else { return nil }
                revision = value
            case Tag.contentID:
                guard content == nil, let value = reader.field().flatMap({ ContentID(bytes: $0) }) else { return nil }
                content = value
            case Tag.contentSize:
                guard size == nil, let value = reader.varint().map({ Int64(bitPattern: $0) }), value >= 0 else {
                    return nil
                }
                size = value
            default: return nil
            }
        }
        switch (kind ?? 0, revision) {
        case (UInt64(WireKind.folder.rawValue), nil) where content == nil && size == nil: return .folder
        case (UInt64(WireKind.file.rawValue), let revision?):
            return .file(FileContent(revision: revision, content: content, size: size ?? 0))
        case (UInt64(WireKind.package.rawValue), let revision?):
            return .file(FileContent(revision: revision, content: content, size: size ?? 0, isPackage: true))
        default: return nil
        }
    }

    static func attributes(_ bytes: UnsafeRawBufferPointer) -> ItemAttributes? {
        var reader = WireReader(bytes)
        var modified: Int64?
        var mode: UInt64?
        while !reader.isAtEnd {
            switch reader.tag() {
            case Tag.attributesModified:
                guard modified == nil, let value = reader.fixed() else { return nil }
                modified = value
            case Tag.attributesMode:
                guard mode == nil, let value = reader.varint(), value <= 0o777 else { return nil }
                mode = value
            default: return nil
            }
        }
        return ItemAttributes(modified: Timestamp(wire: modified ?? 0), mode: UInt16(mode ?? 0))
    }

    // MARK: Writing

    // Each with the tag and the length that it has in its message. Fields that have their default are left out, as generated code does.

    static func append(_ place: Place, _ tag: UInt64, to bytes: inout [UInt8]) {
        let nameLength = place.name.bytes.count
        bytes.appendVarint(tag)
        bytes.appendVarint(UInt64(18 + 1 + (nameLength < 0x80 ? 1 : 2) + nameLength))
        bytes.appendField(Tag.placeParent, id: place.parent)
        bytes.appendVarint(Tag.placeName)
        bytes.appendVarint(UInt64(nameLength))
        bytes += place.name.bytes
    }

    static func append(_ content: ItemContent, _ tag: UInt64, to bytes: inout [UInt8]) {
        bytes.appendVarint(tag)
        let start = bytes.openMessage()
        switch content {
        case .folder: bytes.appendField(Tag.contentKind, UInt64(WireKind.folder.rawValue))
        case .file(let file):
            bytes.appendField(
                Tag.contentKind,
                UInt64((file.isPackage ? WireKind.package : WireKind.file).rawValue)
            )
            bytes.appendField(Tag.contentRevision, id: file.revision)
            if let content = file.content {
                bytes.appendVarint(Tag.contentID)
                bytes.append(32)
                content.withBytes { bytes.append(contentsOf: $0) }
            }
            bytes.appendField(Tag.contentSize, UInt64(bitPattern: file.size))
        case .symlink: break
        }
        bytes.closeMessage(start)
    }

    static func append(_ attributes: ItemAttributes, _ tag: UInt64, to bytes: inout [UInt8]) {
        bytes.appendVarint(tag)
        let start = bytes.openMessage()
        bytes.appendField(Tag.attributesModified, fixed: attributes.modified.wire)
        bytes.appendField(Tag.attributesMode, UInt64(attributes.mode))
        bytes.closeMessage(start)
    }

    static func append(_ manifest: Manifest, _ tag: UInt64, to bytes: inout [UInt8]) {
        guard !manifest.entries.isEmpty else { return }
        bytes.appendVarint(tag)
        bytes.appendVarint(UInt64(manifest.entries.count * 36))
        manifest.appendEncoded(to: &bytes)
    }
}

extension [UInt8] {
    mutating func appendField<Kind>(_ tag: UInt64, id: Identifier<Kind>) {
        appendVarint(tag)
        append(16)
        id.withBytes { append(contentsOf: $0) }
    }
}
