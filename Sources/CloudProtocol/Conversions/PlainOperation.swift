internal import UbiquityModel

/// The creation of a file or folder, or a file's edit, without extended attributes, as the message `Operation`: what a commit of many
/// operations consists of. One with anything more, or with anything else in it, goes the general way.
enum PlainOperation {
    /// Fields as they stand on the wire: the number, and whether it is a varint (0), eight bytes (1) or bytes with their length (2).
    private enum Tag {
        static let id: UInt64 = 1 << 3 | 2
        static let item: UInt64 = 2 << 3 | 2
        static let create: UInt64 = 3 << 3 | 2
        static let edit: UInt64 = 5 << 3 | 2
        static let unwitnessed: UInt64 = 14 << 3 | 0
        static let formerAttributes: UInt64 = 15 << 3 | 2

        /// The place in `Create`, the base in `Edit`; the others are the same in both.
        static let first: UInt64 = 1 << 3 | 2
        static let content: UInt64 = 2 << 3 | 2
        static let attributes: UInt64 = 3 << 3 | 2
        static let manifest: UInt64 = 4 << 3 | 2
        static let edited: UInt64 = 5 << 3 | 1
    }

    // MARK: Reading

    /// `nil` for an operation that is not plain, or not as it should be.
    static func decode(_ bytes: UnsafeRawBufferPointer) -> ItemOperation? {
        var reader = WireReader(bytes)
        var id: OperationID?
        var item: ItemID?
        // Of one action there is one at the most: another one replaces it, and the same one again is merged.
        var action: (tag: UInt64, fields: UnsafeRawBufferPointer)?
        var isUnwitnessed: Bool?
        var former: ItemAttributes?
        while !reader.isAtEnd {
            let tag = reader.tag()
            switch tag {
            case Tag.id:
                guard id == nil, let value = reader.field().flatMap({ OperationID(bytes: $0) }) else { return nil }
                id = value
            case Tag.item:
                guard item == nil, let value = reader.field().flatMap({ ItemID(bytes: $0) }), value != .root else {
                    return nil
                }
                item = value
            case Tag.create, Tag.edit:
                guard action == nil, let tag, let fields = reader.field() else { return nil }
                action = (tag, fields)
            case Tag.unwitnessed:
                guard isUnwitnessed == nil, let value = reader.varint() else { return nil }
                isUnwitnessed = value != 0
            case Tag.formerAttributes:
                guard former == nil, let value = reader.field().flatMap({ PlainParts.attributes($0) }) else {
                    return nil
                }
                former = value
            default: return nil
            }
        }
        guard let id, let item, let action, let change = Change(action.fields) else { return nil }
        let decoded = action.tag == Tag.create ? create(change, of: item) : edit(change)
        guard let decoded else { return nil }
        return ItemOperation(
            id: id,
            item: item,
            action: decoded,
            isUnwitnessed: isUnwitnessed ?? false,
            formerAttributes: former
        )
    }

    /// What `Create` and `Edit` have in common.
    private struct Change {
        var first: UnsafeRawBufferPointer?
        var content: ItemContent
        var attributes: ItemAttributes
        var manifest: Manifest
        var edited: Timestamp

        init?(_ bytes: UnsafeRawBufferPointer) {
            var reader = WireReader(bytes)
            var content: ItemContent?
            var attributes: ItemAttributes?
            var encodedManifest: UnsafeRawBufferPointer?
            var edited: Int64?
            while !reader.isAtEnd {
                switch reader.tag() {
                case Tag.first:
                    guard first == nil, let value = reader.field() else { return nil }
                    first = value
                case Tag.content:
                    guard content == nil, let value = reader.field().flatMap({ PlainParts.content($0) }) else {
                        return nil
                    }
                    content = value
                case Tag.attributes:
                    guard attributes == nil, let value = reader.field().flatMap({ PlainParts.attributes($0) }) else {
                        return nil
                    }
                    attributes = value
                case Tag.manifest:
                    guard encodedManifest == nil, let value = reader.field() else { return nil }
                    encodedManifest = value
                case Tag.edited:
                    guard edited == nil, let value = reader.fixed() else { return nil }
                    edited = value
                default: return nil
                }
            }
            guard let content, let attributes,
                let manifest = PlainOperation.manifest(encodedManifest, of: content)
            else { return nil }
            self.content = content
            self.attributes = attributes
            self.manifest = manifest
            self.edited = Timestamp(wire: edited ?? 0)
        }
    }

    /// The manifest of a content that is committed: its chunks add up to the size, and only files have one.
    private static func manifest(_ bytes: UnsafeRawBufferPointer?, of content: ItemContent) -> Manifest? {
        switch content {
        case .folder: return bytes?.isEmpty ?? true ? Manifest() : nil
        case .symlink: return nil
        case .file(let file):
            guard file.content != nil,
                let manifest = Manifest(encoded: bytes ?? UnsafeRawBufferPointer(start: nil, count: 0)),
                manifest.size == file.size
            else { return nil }
            return manifest
        }
    }

    private static func create(_ change: Change, of item: ItemID) -> ItemOperation.Action? {
        guard let place = change.first.flatMap({ PlainParts.place($0) }), place.parent != item else { return nil }
        return .create(
            place: place,
            content: change.content,
            attributes: change.attributes,
            manifest: change.manifest,
            edited: change.edited
        )
    }

    private static func edit(_ change: Change) -> ItemOperation.Action? {
        guard case .file = change.content else { return nil }
        let base = change.first.flatMap { RevisionID(bytes: $0) }
        // A base that is none is no edit without one.
        guard base != nil || change.first == nil else { return nil }
        return .edit(
            base: base,
            content: change.content,
            attributes: change.attributes,
            manifest: change.manifest,
            edited: change.edited
        )
    }

    // MARK: Writing

    static func isPlain(_ operation: ItemOperation) -> Bool {
        guard operation.formerTarget == nil, operation.formerAttributes?.extended.isEmpty ?? true else { return false }
        switch operation.action {
        case .create(_, .file, let attributes, _, _), .create(_, .folder, let attributes, _, _),
            .edit(_, .file, let attributes, _, _):
            return attributes.extended.isEmpty
        case .create(_, .symlink, _, _, _), .edit(_, .symlink, _, _, _), .edit(_, .folder, _, _, _), .announce, .move,
            .setAttributes, .delete, .revive, .resolve, .restore, .undelete, .discard:
            return false
        }
    }

    /// Its length and its bytes, the same that generated code makes: fields that have their default are left out.
    /// - Precondition: it is plain.
    static func append(_ operation: ItemOperation, to bytes: inout [UInt8]) {
        let start = bytes.openMessage()
        bytes.appendField(Tag.id, id: operation.id)
        bytes.appendField(Tag.item, id: operation.item)
        switch operation.action {
        case .create(let place, let content, let attributes, let manifest, let edited):
            bytes.appendVarint(Tag.create)
            let action = bytes.openMessage()
            PlainParts.append(place, Tag.first, to: &bytes)
            append(content, attributes, manifest, edited, to: &bytes)
            bytes.closeMessage(action)
        case .edit(let base, let content, let attributes, let manifest, let edited):
            bytes.appendVarint(Tag.edit)
            let action = bytes.openMessage()
            if let base { bytes.appendField(Tag.first, id: base) }
            append(content, attributes, manifest, edited, to: &bytes)
            bytes.closeMessage(action)
        case .announce, .move, .setAttributes, .delete, .revive, .resolve, .restore, .undelete, .discard:
            preconditionFailure("only plain operations are written without generated code")
        }
        bytes.appendField(Tag.unwitnessed, operation.isUnwitnessed ? 1 : 0)
        if let former = operation.formerAttributes { PlainParts.append(former, Tag.formerAttributes, to: &bytes) }
        bytes.closeMessage(start)
    }

    private static func append(
        _ content: ItemContent,
        _ attributes: ItemAttributes,
        _ manifest: Manifest,
        _ edited: Timestamp,
        to bytes: inout [UInt8]
    ) {
        PlainParts.append(content, Tag.content, to: &bytes)
        PlainParts.append(attributes, Tag.attributes, to: &bytes)
        PlainParts.append(manifest, Tag.manifest, to: &bytes)
        bytes.appendField(Tag.edited, fixed: edited.wire)
    }
}
