internal import CatalogModel
internal import FoundationEssentials
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

    /// Writes the item over its former row, or as a new one.
    static func put(
        _ item: RemoteItem,
        container: Int64,
        exists: Bool,
        deleted: (at: Timestamp, by: String)?,
        folding: Bool,
        _ db: Database
    ) throws {
        var revision = SQLValue.null
        var content = SQLValue.null
        var target = SQLValue.null
        switch item.content {
        case .folder: break
        case .symlink(let bytes): target = .blob(bytes)
        case .file(let file):
            revision = .identifier(file.revision)
            content = file.content.map { .blob($0.bytes) } ?? .null
        }
        let values: [SQLValue] = [
            .integer(Int64(bitPattern: item.position)), deleted.map { .integer($0.at.nanoseconds) } ?? .null,
            deleted.map { .text($0.by) } ?? .null, .identifier(item.place.parent), .blob(item.place.name.bytes),
            .integer(Int64(item.content.kind.rawValue)), .integer(item.isAnnounced ? 1 : 0), revision, content,
            .integer(item.content.size), target, .integer(item.attributes.modified.nanoseconds),
            .integer(Int64(item.attributes.mode)),
            ExtendedAttributesBlob.encode(item.attributes.extended).map { .blob($0) } ?? .null, .text(item.author),
            .integer(item.edited.nanoseconds), .integer(item.isDeleted ? 0 : Int64(item.conflicts.count)),
            folding ? .blob(item.place.name.folded.bytes) : .null,
            .integer(container), .identifier(item.id),
        ]
        try db.run(exists ? updateSQL : insertSQL, values)
    }

    private static let insertSQL = """
        INSERT INTO items (position, deleted, deleted_by, parent, name, kind, announced, revision, content, size, target, modified,
            mode, extended, author, edited, conflicts, folded, container, id)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """
    private static let updateSQL = """
        UPDATE items SET position = ?, deleted = ?, deleted_by = ?, parent = ?, name = ?, kind = ?, announced = ?, revision = ?,
            content = ?, size = ?, target = ?, modified = ?, mode = ?, extended = ?, author = ?, edited = ?, conflicts = ?,
            folded = ?
        WHERE container = ? AND id = ?
        """

    static let revisionColumns =
        "id, kind, content, size, edited, modified, device, name, item, base, resolved, unwanted"
    /// In the place of a kind: the content is kept no longer.
    static let discardedKind: Int64 = 3

    static func revision(_ row: Row) throws -> StoredRevision {
        let stored: Int64 = try row.value(1)
        let isDiscarded = stored == discardedKind
        guard let kind = isDiscarded ? .saved : UInt8(exactly: stored).flatMap(ItemVersion.Kind.init) else {
            throw row.damaged(1)
        }
        let version = ItemVersion(
            revision: try row.identifier(0),
            kind: kind,
            content: try row.digest(2),
            size: try row.value(3),
            edited: try row.time(4),
            modified: try row.time(5),
            device: try row.value(6),
            name: try row.name(7)
        )
        return StoredRevision(
            item: try row.identifier(8),
            version: version,
            base: try row.optionalIdentifier(9),
            isResolved: try row.value(10) != 0,
            isUnwanted: try row.value(11) != 0,
            isDiscarded: isDiscarded
        )
    }

    /// Unresolved conflict versions, oldest first.
    static func conflicts(of item: ItemID, container: Int64, _ db: Database) throws -> [ItemVersion] {
        var versions = [ItemVersion]()
        let sql = """
            SELECT \(revisionColumns) FROM \(revisionsOfItem)
            WHERE container = ? AND item = ? AND kind = 1 ORDER BY edited, id
            """
        try db.each(sql, [container, item.blob]) { row in versions.append(try revision(row).version) }
        return versions
    }
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
