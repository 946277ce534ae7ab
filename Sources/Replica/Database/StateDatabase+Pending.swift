internal import GRDB
internal import SQLiteRows
package import UbiquityModel

/// Where remote and synced differ: what is to be applied here, or was sent and not yet seen.
extension StateDatabase {
    /// In order of ids, in pages.
    package func differing(after id: ItemID? = nil, limit: Int) throws(ReplicaError) -> [ItemID] {
        try reading { try PendingTable.fetch($0, after: id, limit: limit) }
    }

    /// The same with both rows, of one and the same state.
    package func differences(after id: ItemID? = nil, limit: Int) throws(ReplicaError) -> [ItemDifference] {
        try readingSnapshot { database in
            try PendingTable.fetch(database, after: id, limit: limit).map { id in
                ItemDifference(
                    id: id,
                    remote: try RemoteTable.fetch(database, id),
                    synced: try SyncedTable.fetch(database, id)
                )
            }
        }
    }

    package func isDiffering(_ id: ItemID) throws(ReplicaError) -> Bool {
        try reading { try $0.row("SELECT 1 FROM pending WHERE id = ?", [.identifier(id)]) { _ in true } ?? false }
    }

    package func counts() throws(ReplicaError) -> StateCounts {
        try readingSnapshot { database in
            func count(_ sql: String) throws -> Int { try database.row(sql) { Int($0.integer(0)) } ?? 0 }
            var counts = StateCounts()
            counts.remote = try count("SELECT count(*) FROM remote WHERE NOT deleted")
            counts.synced = try count("SELECT count(*) FROM synced")
            counts.pending = try count("SELECT count(*) FROM pending")
            counts.dataless = try count("SELECT count(*) FROM synced WHERE isDataless")
            // Not `sum`, which fails where the sizes that others announce are more than a number together.
            counts.datalessBytes = Int64(try count("SELECT CAST(total(size) AS INTEGER) FROM synced WHERE isDataless"))
            counts.cloudOnly = max(0, counts.remote - counts.synced - counts.pending)
            counts.pinned = try count("SELECT count(*) FROM pins")
            counts.held = try count("SELECT count(*) FROM held")
            counts.conflicted = try count("SELECT count(*) FROM remote WHERE conflicts IS NOT NULL AND NOT deleted")
            return counts
        }
    }
}

enum PendingTable {
    /// A deleted item of which nothing is synced is as good as none; one in an unpopulated folder stays in the cloud until somebody asks,
    /// unless this device has sent it itself and does not know what became of that.
    fileprivate static let agrees = """
        SELECT EXISTS (
            SELECT 1 FROM remote AS r CROSS JOIN synced AS s ON s.id = r.id
            WHERE r.id = ?1 AND NOT r.deleted AND r.parent = s.parent AND r.name = s.name AND r.kind = s.kind
                AND r.revision IS s.revision AND r.content IS s.content AND r.size = s.size AND r.target IS s.target
                AND r.modified = s.modified AND r.mode = s.mode AND r.extended IS s.extended
        ) OR (
            NOT EXISTS (SELECT 1 FROM synced WHERE id = ?1) AND NOT EXISTS (
                SELECT 1 FROM remote WHERE id = ?1 AND NOT deleted AND (
                    parent NOT IN (SELECT item FROM unpopulated) OR id IN (SELECT item FROM sending)
                )
            )
        )
        """

    /// After every change of one of the two rows, in its transaction.
    static func refresh(_ database: Database, _ id: ItemID) throws { try Refresh(database)(id) }

    /// The same of many.
    struct Refresh {
        private let agrees: PreparedStatement
        private let remove: PreparedStatement
        private let insert: PreparedStatement

        /// Not to be kept longer than the transaction.
        init(_ database: Database) throws {
            agrees = try database.prepared(PendingTable.agrees)
            remove = try database.prepared("DELETE FROM pending WHERE id = ?")
            insert = try database.prepared("INSERT OR IGNORE INTO pending (id) VALUES (?)")
        }

        func callAsFunction(_ id: ItemID) throws {
            let agree = try agrees.integer { $0.append(id) } != 0
            try (agree ? remove : insert).run { $0.append(id) }
        }
    }

    static func fetch(_ database: Database, after id: ItemID?, limit: Int) throws -> [ItemID] {
        let values: [SQLValue] = [.blob(id?.bytes ?? []), .integer(Int64(limit))]
        return try database.rows("SELECT id FROM pending WHERE id > ? ORDER BY id LIMIT ?", values) { try $0.item() }
    }
}

extension SQLRow {
    /// Of a statement that selects nothing else.
    func item() throws(ReplicaError) -> ItemID {
        guard let id = identifier(0, ItemKindTag.self) else {
            throw .corrupted("an id in the state database")
        }
        return id
    }
}
