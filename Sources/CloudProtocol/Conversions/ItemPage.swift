package import SwiftProtobuf
package import UbiquityModel

/// A message that consists of items (`Changes`, `ChildrenResponse`): the items, and what else is in it.
///
/// On the wire it is what messages/feed.proto says. A container may have a million items, and as objects of generated code, with their
/// parts, they take ten times as long as their bytes do (measured: 8 us an item to decode one). So the plain ones, nearly all, are read
/// and written here; those with conflicts, extended attributes, links, and whatever is not as expected go the general way, which also
/// says what is wrong with them.
package struct ItemPage<Rest: Message> {
    /// The field of the items, in both messages, as it stands on the wire.
    private static var itemsTag: UInt64 { 1 << 3 | 2 }

    package private(set) var items: [RemoteItem] = []
    /// Of those contents whose manifest is short enough to come along.
    package private(set) var manifests: [ContentID: Manifest] = [:]
    /// Items that are not in the page because they cannot be, in words: one of them must not lose the others.
    package private(set) var refused: [String] = []
    /// The message without its items.
    package private(set) var rest = Rest()

    package init(body: [UInt8]) throws(WireError) {
        var others: [UInt8] = []
        let slices = body.withUnsafeBytes { body -> [Range<Int>]? in
            var reader = WireReader(body)
            var slices: [Range<Int>] = []
            while !reader.isAtEnd {
                let start = reader.offset
                guard let tag = reader.varint() else { return nil }
                if tag == Self.itemsTag {
                    guard let item = reader.field() else { return nil }
                    slices.append(reader.offset - item.count..<reader.offset)
                } else {
                    guard reader.skip(tag) else { return nil }
                    others.append(contentsOf: body[start..<reader.offset])
                }
            }
            return slices
        }
        guard let slices else { throw .undecodable("a message of the kind \(Rest.protoMessageName)") }
        // Each that cannot be is told of in words, which are longer than it is.
        guard slices.count <= CloudLimits.itemsPerMessage else {
            throw .tooMany("items in one message", slices.count, limit: CloudLimits.itemsPerMessage)
        }
        rest = try Rest(body: others)
        items.reserveCapacity(slices.count)
        for slice in slices {
            let plain = body.withUnsafeBytes { PlainItem.decode(UnsafeRawBufferPointer(rebasing: $0[slice])) }
            if let plain {
                items.append(plain.item)
                if let (content, manifest) = plain.manifest { manifests[content] = manifest }
            } else {
                // A message that cannot be decoded is no page at all.
                add(try WireItem(body: Array(body[slice])))
            }
        }
    }

    private mutating func add(_ wire: WireItem) {
        do throws(WireError) {
            let item = try RemoteItem(wire: wire)
            items.append(item)
            // A manifest that is wrong leaves the item as it is: the manifest is asked for, and verified, when it is needed.
            if let (content, manifest) = try wire.inlineManifest(for: item) { manifests[content] = manifest }
        } catch {
            refused.append("item \(Hexadecimal.encode(wire.id)): \(error)")
        }
    }

    /// The bytes of the message that has these items and is `rest` for the rest.
    package static func body(
        _ items: some Collection<(item: RemoteItem, manifest: Manifest?)>,
        _ rest: Rest
    ) throws(WireError) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(256 * items.count)
        for (item, manifest) in items {
            bytes.appendVarint(itemsTag)
            if PlainItem.isPlain(item) {
                PlainItem.append(item, manifest, to: &bytes)
            } else {
                let encoded = try WireItem(item, manifest: manifest).body
                bytes.appendVarint(UInt64(encoded.count))
                bytes += encoded
            }
        }
        // Messages one after the other are one message.
        return try bytes + rest.body
    }
}

/// A file or folder without extended attributes and conflicts, as the message `Item`.
private enum PlainItem {
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
            switch reader.varint() {
            case Tag.id:
                guard let value = reader.field().flatMap({ ItemID(bytes: $0) }), value != .root else { return nil }
                id = value
            case Tag.place:
                // A part that comes twice is merged: rare enough.
                guard place == nil, let field = reader.field(), let value = self.place(field) else { return nil }
                place = value
            case Tag.content:
                guard content == nil, let field = reader.field(), let value = self.content(field) else { return nil }
                content = value
            case Tag.attributes:
                guard attributes == nil, let field = reader.field(), let value = self.attributes(field) else {
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

    private static func place(_ bytes: UnsafeRawBufferPointer) -> Place? {
        var reader = WireReader(bytes)
        var parent: ItemID?
        var name: Name?
        while !reader.isAtEnd {
            switch reader.varint() {
            case Tag.placeParent: parent = reader.field().flatMap { ItemID(bytes: $0) }
            case Tag.placeName: name = reader.field().flatMap { try? Name(bytes: $0) }
            default: return nil
            }
        }
        guard let parent, let name else { return nil }
        return Place(parent: parent, name: name)
    }

    private static func content(_ bytes: UnsafeRawBufferPointer) -> ItemContent? {
        var reader = WireReader(bytes)
        var kind: UInt64 = 0
        var revision: RevisionID?
        var content: ContentID?
        var size: Int64 = 0
        while !reader.isAtEnd {
            switch reader.varint() {
            case Tag.contentKind:
                guard let value = reader.varint() else { return nil }
                kind = value
            case Tag.contentRevision:
                guard let value = reader.field().flatMap({ RevisionID(bytes: $0) }) else { return nil }
                revision = value
            case Tag.contentID:
                guard let value = reader.field().flatMap({ ContentID(bytes: $0) }) else { return nil }
                content = value
            case Tag.contentSize:
                guard let value = reader.varint().map({ Int64(bitPattern: $0) }), value >= 0 else { return nil }
                size = value
            default: return nil
            }
        }
        switch (kind, revision) {
        case (UInt64(WireKind.folder.rawValue), nil) where content == nil && size == 0: return .folder
        case (UInt64(WireKind.file.rawValue), let revision?):
            return .file(FileContent(revision: revision, content: content, size: size))
        case (UInt64(WireKind.package.rawValue), let revision?):
            return .file(FileContent(revision: revision, content: content, size: size, isPackage: true))
        default: return nil
        }
    }

    private static func attributes(_ bytes: UnsafeRawBufferPointer) -> ItemAttributes? {
        var reader = WireReader(bytes)
        var modified: Int64 = 0
        var mode: UInt64 = 0
        while !reader.isAtEnd {
            switch reader.varint() {
            case Tag.attributesModified:
                guard let value = reader.fixed() else { return nil }
                modified = value
            case Tag.attributesMode:
                guard let value = reader.varint(), value <= 0o777 else { return nil }
                mode = value
            default: return nil
            }
        }
        return ItemAttributes(modified: Timestamp(wire: modified), mode: UInt16(mode))
    }

    // MARK: Writing

    static func isPlain(_ item: RemoteItem) -> Bool {
        if case .symlink = item.content { return false }
        return item.attributes.extended.isEmpty && item.conflicts.isEmpty
    }

    /// Its length and its bytes, the same that generated code makes: fields that have their default are left out.
    static func append(_ item: RemoteItem, _ manifest: Manifest?, to bytes: inout [UInt8]) {
        // The length comes first, and has one or two bytes: room for two is left, and closed up if one is enough.
        let start = bytes.count
        bytes.append(0)
        bytes.append(0)
        bytes.appendVarint(Tag.id)
        bytes.append(16)
        item.id.withBytes { bytes.append(contentsOf: $0) }
        let nameLength = item.place.name.bytes.count
        bytes.appendVarint(Tag.place)
        bytes.appendVarint(UInt64(18 + 1 + (nameLength < 0x80 ? 1 : 2) + nameLength))
        bytes.appendVarint(Tag.placeParent)
        bytes.append(16)
        item.place.parent.withBytes { bytes.append(contentsOf: $0) }
        bytes.appendVarint(Tag.placeName)
        bytes.appendVarint(UInt64(nameLength))
        bytes += item.place.name.bytes
        append(item.content, to: &bytes)
        append(item.attributes, to: &bytes)
        bytes.appendField(Tag.position, item.position)
        bytes.appendField(Tag.deleted, item.isDeleted ? 1 : 0)
        if !item.author.isEmpty {
            bytes.appendVarint(Tag.author)
            bytes.appendVarint(UInt64(item.author.utf8.count))
            bytes += item.author.utf8
        }
        bytes.appendField(Tag.edited, fixed: item.edited.wire)
        if let manifest, !manifest.entries.isEmpty, manifest.entries.count <= WireItem.longestInlineManifest {
            bytes.appendVarint(Tag.manifest)
            bytes.appendVarint(UInt64(manifest.entries.count * 36))
            manifest.appendEncoded(to: &bytes)
        }
        close(&bytes, start)
    }

    private static func append(_ content: ItemContent, to bytes: inout [UInt8]) {
        bytes.appendVarint(Tag.content)
        let start = bytes.count
        bytes.append(0)
        bytes.append(0)
        switch content {
        case .folder: bytes.appendField(Tag.contentKind, UInt64(WireKind.folder.rawValue))
        case .file(let file):
            bytes.appendField(
                Tag.contentKind,
                UInt64((file.isPackage ? WireKind.package : WireKind.file).rawValue)
            )
            bytes.appendVarint(Tag.contentRevision)
            bytes.append(16)
            file.revision.withBytes { bytes.append(contentsOf: $0) }
            if let content = file.content {
                bytes.appendVarint(Tag.contentID)
                bytes.append(32)
                content.withBytes { bytes.append(contentsOf: $0) }
            }
            bytes.appendField(Tag.contentSize, UInt64(bitPattern: file.size))
        case .symlink: break
        }
        close(&bytes, start)
    }

    private static func append(_ attributes: ItemAttributes, to bytes: inout [UInt8]) {
        bytes.appendVarint(Tag.attributes)
        let start = bytes.count
        bytes.append(0)
        bytes.append(0)
        bytes.appendField(Tag.attributesModified, fixed: attributes.modified.wire)
        bytes.appendField(Tag.attributesMode, UInt64(attributes.mode))
        close(&bytes, start)
    }

    /// Writes the length of what was appended after the two bytes at `start` into them. A plain item has some 1,800 bytes at the most
    /// (a name of 255, an author's, a manifest of 1,152), unless its author's name is absurd.
    private static func close(_ bytes: inout [UInt8], _ start: Int) {
        let length = bytes.count - start - 2
        if length < 0x80 {
            bytes[start] = UInt8(length)
            bytes.remove(at: start + 1)
        } else if length < 0x4000 {
            bytes[start] = UInt8(truncatingIfNeeded: length) | 0x80
            bytes[start + 1] = UInt8(length >> 7)
        } else {
            var longer: [UInt8] = []
            longer.appendVarint(UInt64(length))
            bytes.replaceSubrange(start..<start + 2, with: longer)
        }
    }
}
