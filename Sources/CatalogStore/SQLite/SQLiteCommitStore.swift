internal import CatalogModel
internal import GRDB
internal import Reconciliation
internal import SQLiteRows
internal import UbiquityModel

/// A container inside the transaction of a commit.
struct SQLiteCommitStore: CommitStore {
    let db: Database
    let container: Int64
    private let isCaseInsensitive: Bool
    /// When this is recorded.
    private let time: Timestamp
    private let hasPack: @Sendable (UInt64, UInt64) -> Bool
    /// Whether there are chunks that a commit may have to take off that list.
    private let hasCandidates: Bool
    /// Chunks of contents that were new to the container.
    private(set) var named: Set<ChunkID> = []

    init(
        db: Database,
        container: Int64,
        isCaseInsensitive: Bool,
        time: Timestamp,
        hasPack: @escaping @Sendable (UInt64, UInt64) -> Bool
    ) throws {
        self.db = db
        self.container = container
        self.isCaseInsensitive = isCaseInsensitive
        self.time = time
        self.hasPack = hasPack
        hasCandidates = try db.exists("SELECT 1 FROM candidates WHERE container = ? LIMIT 1", [.integer(container)])
    }

    func item(_ id: ItemID) throws -> RemoteItem? {
        let sql = "SELECT \(ItemRows.columns) FROM items WHERE container = ? AND id = ?"
        let found = try db.row(sql, [.integer(container), .identifier(id)]) { try ItemRows.item($0) }
        guard case (var item, let conflicts)? = found else { return nil }
        // Those of a deleted item are not counted in its row.
        if conflicts > 0 || item.isDeleted {
            item.conflicts = try ItemRows.conflicts(of: id, container: container, db)
        }
        return item
    }

    func revision(_ id: RevisionID) throws -> StoredRevision? {
        let sql = "SELECT \(ItemRows.revisionColumns) FROM revisions WHERE container = ? AND id = ?"
        guard let row = try db.first(sql, [container, id.blob]) else { return nil }
        return try ItemRows.revision(row)
    }

    func keeps(_ content: ContentID, _ item: ItemID) throws -> Bool {
        try db.exists(
            """
            SELECT 1 FROM \(ItemRows.revisionsOfItem) WHERE container = ? AND item = ? AND content = ?
                AND kind <> \(ItemRows.discardedKind) AND unwanted = 0 LIMIT 1
            """,
            [.integer(container), .identifier(item), .blob(content.bytes)]
        )
    }

    func holder(of place: Place) throws -> ItemID? {
        let column = isCaseInsensitive ? "folded" : "name"
        let name = isCaseInsensitive ? place.name.folded.bytes : place.name.bytes
        let sql = """
            SELECT id FROM items WHERE container = ? AND parent = ? AND \(column) = ? AND deleted IS NULL AND announced = 0
            """
        let values: [SQLValue] = [.integer(container), .identifier(place.parent), .blob(name)]
        return try db.row(sql, values) { try $0.identifier(0) }
    }

    func hasLiveChildren(_ folder: ItemID) throws -> Bool {
        for announced in [0, 1] {
            let sql =
                "SELECT 1 FROM items WHERE container = ? AND parent = ? AND deleted IS NULL AND announced = \(announced) LIMIT 1"
            if try db.exists(sql, [container, folder.blob]) { return true }
        }
        return false
    }

    func presence(of manifest: Manifest, content: ContentID) throws -> ContentPresence {
        let known = "SELECT manifest = ? FROM contents WHERE container = ? AND id = ?"
        let values: [SQLValue] = [.blob(manifest.encoded), .integer(container), .blob(content.bytes)]
        // Its name comes from the chunks' names alone: their lengths are compared here. That it was whole when it was committed does not
        // make it so: nothing of it is collected while its manifest is here, but packs get lost, and whoever brings it may have the last
        // copy. The lookup costs some microseconds a chunk, as for a content that is new.
        if try db.row(known, values, { $0.integer(0) != 0 }) == false { return .contradicted }
        var missing = [ChunkID]()
        var lengths = [ChunkID: UInt32]()
        for entry in manifest.entries {
            if let length = lengths[entry.chunk] {
                guard length == entry.length else { return .contradicted }
                continue
            }
            lengths[entry.chunk] = entry.length
            if let stored = try db.chunk(entry.chunk, container: container), hasPack(stored.pack, stored.end) {
                guard stored.length == entry.length else { return .contradicted }
            } else {
                missing.append(entry.chunk)
            }
        }
        return missing.isEmpty ? .whole : .missing(missing)
    }

    func isCommitted(_ operation: OperationID) throws -> Bool {
        try db.exists(
            "SELECT 1 FROM operations WHERE container = ? AND id = ?",
            [.integer(container), .identifier(operation)]
        )
    }

    func remember(_ operation: OperationID) throws {
        try db.run(
            "INSERT INTO operations (container, id) VALUES (?, ?)",
            [.integer(container), .identifier(operation)]
        )
    }

    mutating func write(_ change: CommitChange, _ context: CommitContext) throws {
        let item = change.item
        let exists = try db.exists(
            "SELECT 1 FROM items WHERE container = ? AND id = ?",
            [.integer(container), .identifier(item.id)]
        )
        let deleted = item.isDeleted ? (at: time, by: context.device) : nil
        try ItemRows.put(item, container: container, exists: exists, deleted: deleted, folding: isCaseInsensitive, db)
        for revision in change.revisions { try put(revision) }
        if let content = change.content { try put(content) }
    }

    private mutating func put(_ content: CommitChange.NewContent) throws {
        try db.run(
            "INSERT INTO contents (container, id, manifest) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            [.integer(container), .blob(content.id.bytes), .blob(content.manifest.encoded)]
        )
        guard db.changesCount == 1 else { return }
        for entry in content.manifest.entries where named.insert(entry.chunk).inserted && hasCandidates {
            try db.run(
                "DELETE FROM candidates WHERE container = ? AND id = ?",
                [.integer(container), .blob(entry.chunk.bytes)]
            )
        }
    }

    private func put(_ revision: StoredRevision) throws {
        let version = revision.version
        let kind = revision.isDiscarded ? ItemRows.discardedKind : Int64(version.kind.rawValue)
        try db.run(
            """
            INSERT INTO revisions
                (container, id, item, kind, base, content, size, edited, modified, device, name, since, resolved, unwanted)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (container, id) DO UPDATE SET
                kind = excluded.kind, base = excluded.base, content = excluded.content, size = excluded.size,
                edited = excluded.edited, modified = excluded.modified, device = excluded.device, name = excluded.name,
                since = excluded.since, resolved = excluded.resolved, unwanted = excluded.unwanted
                WHERE item = excluded.item
            """,
            [
                .integer(container), .identifier(version.revision), .identifier(revision.item),
                .integer(kind), revision.base.map { .identifier($0) } ?? .null,
                .blob(version.content.bytes), .integer(version.size), .integer(version.edited.nanoseconds),
                .integer(version.modified.nanoseconds), .text(version.device), .blob(version.name.bytes),
                .integer(time.nanoseconds), .integer(revision.isResolved ? 1 : 0),
                .integer(revision.isUnwanted ? 1 : 0),
            ]
        )
        // The rules refuse it; a revision that changed its item would be lost to the other.
        guard db.changesCount == 1 else {
            throw CatalogError.failed("the revision \(version.revision) belongs to another item")
        }
    }
}
