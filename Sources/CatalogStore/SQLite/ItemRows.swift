internal import CatalogModel
internal import GRDB
internal import Reconciliation
internal import SQLiteRows
internal import UbiquityModel

/// Items and revisions as rows.
enum ItemRows {
    static let columns = """
        id, position, deleted, parent, name, kind, revision, content, size, target, modified, mode, extended, author, edited, conflicts
        """
    /// How many columns an item takes; further ones of a query follow.
    static let count = 16

    /// By itself SQLite takes the primary key, and walks through all revisions of the container for those of one item.
    static let revisionsOfItem = "revisions INDEXED BY revisions_item"

    /// The item of a row that begins with `columns`, without its conflict versions, and how many of these there are.
    static func item(_ row: SQLRow) throws -> (item: RemoteItem, conflicts: Int) {
        let item = RemoteItem(
            id: try row.identifier(0),
            place: Place(parent: try row.identifier(3), name: try row.name(4)),
            content: try content(row),
            attributes: ItemAttributes(
                modified: row.time(10),
                mode: UInt16(truncatingIfNeeded: row.integer(11)),
                extended: try row.isNull(12) ? [:] : ExtendedAttributesBlob.decode(row.blob(12) ?? [])
            ),
            position: UInt64(bitPattern: row.integer(1)),
            isDeleted: !row.isNull(2),
            author: row.text(13),
            edited: row.time(14)
        )
        return (item, Int(row.integer(15)))
    }

    private static func content(_ row: SQLRow) throws -> ItemContent {
        let kind = UInt8(exactly: row.integer(5)).flatMap(ItemKind.init(rawValue:))
        switch kind {
        case .folder: return .folder
        case .symlink:
            guard let target = row.blob(9) else { throw row.damaged(9) }
            return .symlink(target: target)
        case .file, .package:
            return .file(
                FileContent(
                    revision: try row.identifier(6),
                    content: try row.optionalDigest(7),
                    size: row.integer(8),
                    isPackage: kind == .package
                )
            )
        case nil: throw row.damaged(5)
        }
    }

    /// Writes an item over its former row, every column of it, or as a new one. Its values are bound by `bind`.
    static let upsert = """
        INSERT INTO items (container, id, position, deleted, deleted_by, parent, name, kind, announced, revision, content, size, target,
            modified, mode, extended, author, edited, conflicts, folded)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (container, id) DO UPDATE SET
            position = excluded.position, deleted = excluded.deleted, deleted_by = excluded.deleted_by,
            parent = excluded.parent, name = excluded.name, kind = excluded.kind, announced = excluded.announced,
            revision = excluded.revision, content = excluded.content, size = excluded.size, target = excluded.target,
            modified = excluded.modified, mode = excluded.mode, extended = excluded.extended,
            author = excluded.author, edited = excluded.edited, conflicts = excluded.conflicts,
            folded = excluded.folded
        """

    /// - Parameter deleted: when and by whom, of an item that is.
    /// - Parameter folding: the container is case-insensitive.
    static func bind(
        _ item: RemoteItem,
        container: Int64,
        deleted: (at: Timestamp, by: String)?,
        folding: Bool,
        _ row: inout ValueBinder
    ) {
        row.append(container)
        row.append(item.id)
        row.append(Int64(bitPattern: item.position))
        if let deleted {
            row.append(deleted.at.nanoseconds)
            row.append(text: deleted.by)
        } else {
            row.appendNull()
            row.appendNull()
        }
        row.append(item.place.parent)
        row.append(item.place.name.bytes)
        row.append(Int64(item.content.kind.rawValue))
        row.append(item.isAnnounced ? 1 : 0)
        bind(item.content, &row)
        row.append(item.attributes.modified.nanoseconds)
        row.append(Int64(item.attributes.mode))
        if let extended = ExtendedAttributesBlob.encode(item.attributes.extended) {
            row.append(extended)
        } else {
            row.appendNull()
        }
        row.append(text: item.author)
        row.append(item.edited.nanoseconds)
        row.append(item.isDeleted ? 0 : Int64(item.conflicts.count))
        if folding { row.append(item.place.name.folded.bytes) } else { row.appendNull() }
    }

    /// Revision, content, size and target.
    private static func bind(_ content: ItemContent, _ row: inout ValueBinder) {
        switch content {
        case .folder:
            row.appendNull()
            row.appendNull()
            row.append(content.size)
            row.appendNull()
        case .symlink(let target):
            row.appendNull()
            row.appendNull()
            row.append(content.size)
            row.append(target)
        case .file(let file):
            row.append(file.revision)
            if let content = file.content { row.append(content) } else { row.appendNull() }
            row.append(content.size)
            row.appendNull()
        }
    }

    static let revisionColumns =
        "id, kind, content, size, edited, modified, device, name, item, base, resolved, unwanted"
    /// In the place of a kind: the content is kept no longer.
    static let discardedKind: Int64 = 3

    static func revision(_ row: SQLRow) throws -> StoredRevision {
        let stored = try row.number(1)
        let isDiscarded = stored == discardedKind
        guard let kind = isDiscarded ? .saved : UInt8(exactly: stored).flatMap(ItemVersion.Kind.init) else {
            throw row.damaged(1)
        }
        let version = ItemVersion(
            revision: try row.identifier(0),
            kind: kind,
            content: try row.digest(2),
            size: try row.number(3),
            edited: Timestamp(nanoseconds: try row.number(4)),
            modified: Timestamp(nanoseconds: try row.number(5)),
            device: row.text(6),
            name: try row.name(7)
        )
        return StoredRevision(
            item: try row.identifier(8),
            version: version,
            base: try row.optionalIdentifier(9),
            isResolved: try row.number(10) != 0,
            isUnwanted: try row.number(11) != 0,
            isDiscarded: isDiscarded
        )
    }

    /// Writes a revision over its former row, if that is one of the same item, or as a new one.
    static let upsertRevision = """
        INSERT INTO revisions
            (container, id, item, kind, base, content, size, edited, modified, device, name, since, resolved, unwanted)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (container, id) DO UPDATE SET
            kind = excluded.kind, base = excluded.base, content = excluded.content, size = excluded.size,
            edited = excluded.edited, modified = excluded.modified, device = excluded.device, name = excluded.name,
            since = excluded.since, resolved = excluded.resolved, unwanted = excluded.unwanted
            WHERE item = excluded.item
        """

    /// - Parameter since: when it became what it is.
    static func bind(_ revision: StoredRevision, container: Int64, since: Timestamp, _ row: inout ValueBinder) {
        let version = revision.version
        row.append(container)
        row.append(version.revision)
        row.append(revision.item)
        row.append(revision.isDiscarded ? discardedKind : Int64(version.kind.rawValue))
        if let base = revision.base { row.append(base) } else { row.appendNull() }
        row.append(version.content)
        row.append(version.size)
        row.append(version.edited.nanoseconds)
        row.append(version.modified.nanoseconds)
        row.append(text: version.device)
        row.append(version.name.bytes)
        row.append(since.nanoseconds)
        row.append(revision.isResolved ? 1 : 0)
        row.append(revision.isUnwanted ? 1 : 0)
    }

    /// Unresolved conflict versions, oldest first.
    static func conflicts(of item: ItemID, container: Int64, _ db: Database) throws -> [ItemVersion] {
        try db.rows(conflictsSQL, [.integer(container), .identifier(item)]) { try revision($0).version }
    }

    private static let conflictsSQL = """
        SELECT \(revisionColumns) FROM \(revisionsOfItem)
        WHERE container = ? AND item = ? AND kind = 1 ORDER BY edited, id
        """
}

/// Extended attributes in one value: name and value by turns, each with its length in four bytes. `nil` for none.
enum ExtendedAttributesBlob {
    static func encode(_ attributes: [[UInt8]: [UInt8]]) -> [UInt8]? {
        guard !attributes.isEmpty else { return nil }
        var result = [UInt8]()
        for (name, value) in attributes.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
            for part in [name, value] {
                withUnsafeBytes(of: UInt32(part.count).bigEndian) { result.append(contentsOf: $0) }
                result.append(contentsOf: part)
            }
        }
        return result
    }

    static func decode(_ blob: [UInt8]) throws -> [[UInt8]: [UInt8]] {
        var result = [[UInt8]: [UInt8]]()
        var rest = blob[...]
        while !rest.isEmpty {
            let name = try part(&rest)
            result[name] = try part(&rest)
        }
        return result
    }

    private static func part(_ rest: inout ArraySlice<UInt8>) throws -> [UInt8] {
        let length = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
        guard rest.count >= 4, rest.count - 4 >= length else {
            throw CatalogError.failed("the catalogue is damaged: extended attributes of an item")
        }
        rest = rest.dropFirst(4)
        defer { rest = rest.dropFirst(length) }
        return Array(rest.prefix(length))
    }
}
