internal import UbiquityModel

/// A file or folder without extended attributes and conflicts, as the message `Item`.
enum PlainItem {
    /// Fields as they stand on the wire: the number, and whether it is a varint (0), eight bytes (1) or bytes with their length (2).
    private enum Tag {
        static let id: UInt64 = 1 << 3 | 2
        static let place: UInt64 = 2 << 3 | 2
        static let content: UInt64 = 3 << 3 | 2
        static let attributes: UInt64 = 4 << 3 | 2
        static let position: UInt64 = 5 << 3 | 0
        static let deleted: UInt64 = 6 << 3 | 0
        static let author: UInt64 = 7 << 3 | 2
        static let edited: UInt64 = 8 << 3 | 1
        static let manifest: UInt64 = 10 << 3 | 2
    }

    // MARK: Reading

    /// `nil` for an item that is not plain, or not as it should be.
    static func decode(
        _ bytes: UnsafeRawBufferPointer
    ) -> (item: RemoteItem, manifest: (content: ContentID, manifest: Manifest)?)? {
        var reader = WireReader(bytes)
        var id: ItemID?
        var place: Place?
        var content: ItemContent?
        var attributes: ItemAttributes?
        var position: UInt64 = 0
        var isDeleted = false
        var author = ""
        var edited = Timestamp(nanoseconds: 0)
        var encodedManifest: UnsafeRawBufferPointer?
        while !reader.isAtEnd {
            switch reader.tag() {
            case Tag.id:
                guard let value = reader.field().flatMap({ ItemID(bytes: $0) }), value != .root else { return nil }
                id = value
            case Tag.place:
                // A part that comes twice is merged: rare enough.
                guard place == nil, let field = reader.field(), let value = PlainParts.place(field) else { return nil }
                place = value
            case Tag.content:
                guard content == nil, let field = reader.field(), let value = PlainParts.content(field) else {
                    return nil
                }
                content = value
            case Tag.attributes:
                guard attributes == nil, let field = reader.field(), let value = PlainParts.attributes(field) else {
                    return nil
                }
                attributes = value
            case Tag.position:
                guard let value = reader.varint() else { return nil }
                position = value
            case Tag.deleted:
                guard let value = reader.varint() else { return nil }
                isDeleted = value != 0
            case Tag.author:
                guard let value = reader.field().flatMap({ String(validating: $0, as: UTF8.self) }) else { return nil }
                author = value
            case Tag.edited:
                guard let value = reader.fixed() else { return nil }
                edited = Timestamp(wire: value)
            case Tag.manifest:
                guard let field = reader.field() else { return nil }
                encodedManifest = field
            default: return nil
            }
        }
        guard let id, let place, place.parent != id, let content, let attributes else { return nil }
        var manifest: (content: ContentID, manifest: Manifest)?
        if case .file(let file) = content, let contentID = file.content {
            if encodedManifest?.isEmpty == false || file.size == 0 {
                guard let value = Manifest(encoded: encodedManifest ?? UnsafeRawBufferPointer(start: nil, count: 0)),
                    value.size == file.size
                else { return nil }
                manifest = (contentID, value)
            }
        } else if encodedManifest?.isEmpty == false {
            return nil
        }
        let item = RemoteItem(
            id: id,
            place: place,
            content: content,
            attributes: attributes,
            position: position,
            isDeleted: isDeleted,
            author: author,
            edited: edited
        )
        return (item, manifest)
    }

    // MARK: Writing

    static func isPlain(_ item: RemoteItem) -> Bool {
        if case .symlink = item.content { return false }
        return item.attributes.extended.isEmpty && item.conflicts.isEmpty
    }

    /// Its length and its bytes, the same that generated code makes: fields that have their default are left out.
    static func append(_ item: RemoteItem, _ manifest: Manifest?, to bytes: inout [UInt8]) {
        let start = bytes.openMessage()
        bytes.appendField(Tag.id, id: item.id)
        PlainParts.append(item.place, Tag.place, to: &bytes)
        PlainParts.append(item.content, Tag.content, to: &bytes)
        PlainParts.append(item.attributes, Tag.attributes, to: &bytes)
        bytes.appendField(Tag.position, item.position)
        bytes.appendField(Tag.deleted, item.isDeleted ? 1 : 0)
        if !item.author.isEmpty {
            bytes.appendVarint(Tag.author)
            bytes.appendVarint(UInt64(item.author.utf8.count))
            bytes += item.author.utf8
        }
        bytes.appendField(Tag.edited, fixed: item.edited.wire)
        if let manifest, manifest.entries.count <= WireItem.longestInlineManifest {
            PlainParts.append(manifest, Tag.manifest, to: &bytes)
        }
        bytes.closeMessage(start)
    }
}
