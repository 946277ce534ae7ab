internal import GRDB
internal import SQLiteRows
package import UbiquityModel

/// The synced tree: what this device and the server last agreed on.
extension StateDatabase {
    package func synced(_ id: ItemID) throws(ReplicaError) -> SyncedItem? {
        try rememberingFolder(id) { () throws(ReplicaError) in
            try reading(.item(id)) { try SyncedTable.fetch($0, id) }
        }
    }

    package func synced(at place: Place) throws(ReplicaError) -> [SyncedItem] {
        let limit = SQLValue.integer(Int64(NameCache<SyncedItem>.largest + 1))
        let known = try readingNames(.place(place)) { names, database, version in
            try names.synced.rows(at: place, asOf: version, name: \.place.name) {
                try SyncedTable.fetch(database, "parent = ? ORDER BY name, id LIMIT ?", [.identifier($0), limit])
            }
        }
        if let known { return known }
        return try reading(.place(place)) {
            try SyncedTable.fetch($0, "parent = ? AND name = ? ORDER BY id", place.values)
        }
    }

    /// The items of an inode: several if it has several names.
    package func synced(key: InodeKey) throws(ReplicaError) -> [SyncedItem] {
        try reading(.inode(key)) { try SyncedTable.fetch($0, "inode = ? ORDER BY id", [.blob(key.bytes)]) }
    }

    /// Reads all items: for what is found in no other way.
    package func synced(revision: RevisionID) throws(ReplicaError) -> [SyncedItem] {
        try reading { try SyncedTable.fetch($0, "revision = ? ORDER BY id", [.identifier(revision)]) }
    }

    /// Whether there is any item at all.
    package func hasSynced() throws(ReplicaError) -> Bool {
        try reading { try $0.row("SELECT 1 FROM synced LIMIT 1") { _ in true } ?? false }
    }

    /// Those of the inodes that no item is known to be.
    package func strange(among keys: [InodeKey]) throws(ReplicaError) -> [InodeKey] {
        try readingSnapshot { database in
            try keys.filter { key in
                try database.row("SELECT 1 FROM synced WHERE inode = ? LIMIT 1", [.blob(key.bytes)]) { _ in true }
                    == nil
            }
        }
    }

    /// The items in a folder, by name.
    package func syncedChildren(of parent: ItemID) throws(ReplicaError) -> [SyncedItem] {
        try reading { try SyncedTable.fetch($0, "parent = ? ORDER BY name, id", [.identifier(parent)]) }
    }

    /// Everything, in order of ids, in pages.
    package func syncedItems(after id: ItemID?, limit: Int) throws(ReplicaError) -> [SyncedItem] {
        try reading {
            try SyncedTable.fetch($0, "id > ? ORDER BY id LIMIT ?", [.blob(id?.bytes ?? []), .integer(Int64(limit))])
        }
    }

    /// A folder's items at all depths, without itself, each after its folder.
    package func syncedSubtree(of root: ItemID) throws(ReplicaError) -> [SyncedItem] {
        try reading { try SyncedTable.fetchSubtree($0, root) }
    }

    /// The items whose folder is not in the synced tree.
    package func syncedOrphans() throws(ReplicaError) -> [ItemID] {
        try reading { database in
            try database.rows(
                """
                SELECT id FROM synced WHERE parent IN (
                    SELECT parent FROM (SELECT DISTINCT parent FROM synced) AS folders
                    WHERE parent <> ? AND NOT EXISTS (SELECT 1 FROM synced WHERE id = folders.parent)
                ) ORDER BY id
                """,
                [.identifier(.root)]
            ) { try $0.item() }
        }
    }

    /// The path of an item in the synced tree; `nil` if it or a folder above it is not in it.
    package func syncedPath(of id: ItemID) throws(ReplicaError) -> ItemPath? {
        try readingSnapshot { try ItemChain.path($0, of: id, in: "synced") }
    }

    /// One transaction. Only for inodes that are durable (architecture section 4, "Order").
    ///
    /// - Parameters:
    ///   - remote: the answers to a commit, which are the server's word as much as the feed is.
    ///   - answered: the log's end after that commit.
    ///   - unpopulated: folders that appeared without their items.
    package func apply(
        _ changes: SyncedChanges,
        remote: [RemoteItem] = [],
        answered: LogPosition? = nil,
        manifests: [ContentID: Manifest] = [:],
        unpopulated: [ItemID] = []
    ) throws(ReplicaError) {
        try writing { database in
            for folder in unpopulated { try PopulationTable.insert(database, folder) }
            let refreshedLater = Set(changes.upserts.map(\.id)).union(changes.removals)
            try RemoteTable.write(database, remote, folding: isCaseInsensitive, refreshedLater: refreshedLater)
            // Answers may be written down in another order than the server gave them.
            if let answered, try answered.counter > MetaTable.readAnswered(database)?.counter ?? 0 {
                try MetaTable.write(database, .answered, MetaTable.encode(answered))
            }
            // First: the rows that follow make most of these agree.
            try SendingTable.remove(database, changes.answered, refreshedLater: refreshedLater)
            try SendingTable.removeDeletions(database, changes.answeredDeletions)
            try SyncedTable.apply(database, changes)
            try noteWritten(database, ManifestTable.write(database, manifests))
        }
    }

    /// Another thread is about to write rows of items that have none, by `apply`, and calls `expectedAreWritten` when it has, or has failed.
    /// The calling thread, which is the one that reads in bursts, goes on meanwhile: only what depends on these rows it reads after that, and
    /// it writes after that.
    package func expect(_ rows: [SyncedItem]) { awaited.expect(rows) }

    /// From whichever thread has written them.
    package func expectedAreWritten() { awaited.noteWritten() }

    /// Dataless files that became whole: their rows, of those revisions, are of whole files from now on.
    package func write(filled files: [(revision: RevisionID, local: LocalEvidence)]) throws(ReplicaError) {
        try writing { database in
            let hasRanges = try database.row("SELECT 1 FROM ranges LIMIT 1") { _ in true } ?? false
            for (revision, local) in files {
                let row: [SQLValue] = [.blob(local.key.bytes), .identifier(revision)]
                try database.run(
                    """
                    UPDATE synced SET localSize = ?3, localModified = ?4, localChanged = ?5, isDataless = ?6,
                        used = max(used, ?5)
                    WHERE inode = ?1 AND revision = ?2
                    """,
                    row + [
                        .integer(local.size), .integer(local.modified.nanoseconds), .integer(local.changed.nanoseconds),
                        .integer(local.isDataless ? 1 : 0),
                    ]
                )
                guard hasRanges else { continue }
                try database.run(
                    "DELETE FROM ranges WHERE item IN (SELECT id FROM synced WHERE inode = ? AND revision = ?)",
                    row
                )
            }
        }
    }

    package func write(synced items: [SyncedItem]) throws(ReplicaError) { try apply(SyncedChanges(upserts: items)) }
}

enum SyncedTable {
    private static let columns = ItemColumns.names + ", inode, localSize, localModified, localChanged, isDataless"
    private static let upsert = """
        INSERT INTO synced (\(columns)) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (id) DO UPDATE SET
            parent = excluded.parent, name = excluded.name, kind = excluded.kind, revision = excluded.revision,
            content = excluded.content, size = excluded.size, target = excluded.target, modified = excluded.modified,
            mode = excluded.mode, extended = excluded.extended, inode = excluded.inode, localSize = excluded.localSize,
            localModified = excluded.localModified, localChanged = excluded.localChanged, isDataless = excluded.isDataless
        """
    private static let subtree = """
        WITH RECURSIVE below (id, depth) AS (
            SELECT id, 1 FROM synced WHERE parent = ?
            UNION
            SELECT synced.id, below.depth + 1 FROM below CROSS JOIN synced ON synced.parent = below.id WHERE below.depth < 65536
        )
        SELECT \(columns) FROM below CROSS JOIN synced USING (id) ORDER BY depth, parent, name
        """

    static func apply(_ database: Database, _ changes: SyncedChanges) throws {
        let former = try FormerTable.Noting(database)
        for id in changes.removals {
            try former?.note(id, followedBy: nil)
            try database.run("DELETE FROM synced WHERE id = ?", [.identifier(id)])
            try PendingTable.refresh(database, id)
            // What was here and is in the cloud still comes back by itself, also in an unpopulated folder.
            try database.run(
                "INSERT OR IGNORE INTO pending (id) SELECT id FROM remote WHERE id = ? AND NOT deleted",
                [.identifier(id)]
            )
        }
        let upsert = try database.prepared(upsert)
        let refresh = try PendingTable.Refresh(database)
        for item in changes.upserts {
            try former?.note(item.id, followedBy: item)
            try upsert.run { row in
                ItemColumns.bind(item.id, item.place, item.content, item.attributes, &row)
                if let local = item.local {
                    row.append(local.key.bytes)
                    row.append(local.size)
                    row.append(local.modified.nanoseconds)
                    row.append(local.changed.nanoseconds)
                    row.append(local.isDataless ? 1 : 0)
                } else {
                    for _ in 0..<5 { row.appendNull() }
                }
            }
            try refresh(item.id)
        }
    }

    static func fetch(_ database: Database, _ id: ItemID) throws -> SyncedItem? {
        try database.row("SELECT \(columns) FROM synced WHERE id = ?", [.identifier(id)], decode)
    }

    static func fetch(_ database: Database, _ condition: String, _ values: [SQLValue]) throws -> [SyncedItem] {
        try database.rows("SELECT \(columns) FROM synced WHERE \(condition)", values, decode)
    }

    static func fetchSubtree(_ database: Database, _ root: ItemID) throws -> [SyncedItem] {
        try database.rows(subtree, [.identifier(root)], decode)
    }

    private static func decode(_ row: SQLRow) throws -> SyncedItem {
        let item = try ItemColumns.decode(row)
        let next = ItemColumns.count
        var local: LocalEvidence?
        if let bytes = row.blob(next) {
            guard let key = InodeKey(bytes: bytes) else {
                throw ReplicaError.corrupted("an inode's key in the state database")
            }
            local = LocalEvidence(
                key: key,
                size: row.integer(next + 1),
                modified: Timestamp(nanoseconds: row.integer(next + 2)),
                changed: Timestamp(nanoseconds: row.integer(next + 3)),
                isDataless: row.integer(next + 4) != 0
            )
        }
        return SyncedItem(
            id: item.id,
            place: item.place,
            content: item.content,
            attributes: item.attributes,
            local: local
        )
    }
}
