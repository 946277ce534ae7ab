internal import GRDB
internal import SQLiteRows
package import UbiquityModel

/// What was agreed on before: with a server that was then restored from a backup, and of packages that have another revision by now, or are
/// no more. Files that are not here stand for parts of that, wherever they were moved.
extension StateDatabase {
    /// The item and the content that a revision was of which the server may know nothing any more; `nil` if none is known.
    package func former(_ revision: RevisionID) throws(ReplicaError) -> (item: ItemID, file: FileContent)? {
        let query = "SELECT item, content, size FROM former WHERE revision = ?"
        return try reading { database in
            try database.row(query, [.identifier(revision)]) { row in
                let content = ContentID(bytes: row.blob(1) ?? [])
                let file = FileContent(revision: revision, content: content, size: row.integer(2), isPackage: true)
                return (try row.item(), file)
            }
        }
    }

    /// Whether that was a package's content which was agreed on then.
    package func wasFormer(_ content: ContentID) throws(ReplicaError) -> Bool {
        try reading { database in
            try database.row("SELECT 1 FROM former WHERE content = ? LIMIT 1", [.blob(content.bytes)]) { _ in true }
                ?? false
        }
    }
}

enum FormerTable {
    /// So many are left of each package, those that were made last, when unused contents are removed. Nobody knows what stands for which;
    /// but what lies in a package is referred to the next revision, and what was moved out of it is fetched, so that it can be sent.
    private static let leftOfEach: Int64 = 16
    /// Of all packages together that are here no more.
    private static let leftOfGone: Int64 = 1000

    /// A package's files that are not here stand for parts of its revision.
    static func note(_ database: Database, _ former: SyncedItem, followedBy row: SyncedItem?) throws {
        guard former.content != row?.content, case .file(let file) = former.content, file.isPackage,
            let content = file.content
        else { return }
        try database.run(
            "INSERT OR IGNORE INTO former (revision, item, content, size) VALUES (?, ?, ?, ?)",
            [.identifier(file.revision), .identifier(former.id), .blob(content.bytes), .integer(file.size)]
        )
    }

    /// Does so for rows that are about to be replaced or removed. Not to be kept longer than the transaction.
    struct Noting {
        private let database: Database
        private let isPackage: PreparedStatement

        /// `nil` where no row is a package's.
        init?(_ database: Database) throws {
            let hasPackages = try database.row("SELECT 1 FROM synced WHERE kind = 4 LIMIT 1") { _ in true } ?? false
            guard hasPackages else { return nil }
            self.database = database
            isPackage = try database.prepared("SELECT 1 FROM synced WHERE id = ? AND kind = 4")
        }

        func note(_ id: ItemID, followedBy row: SyncedItem?) throws {
            let isPackage = try isPackage.integer { $0.append(id) } != 0
            guard isPackage, let former = try SyncedTable.fetch(database, id) else { return }
            // For what was all here nothing stands.
            guard former.local?.isDataless == true || row?.local?.isDataless == true else { return }
            try FormerTable.note(database, former, followedBy: row)
        }
    }

    /// Revisions begin with the time at which they were made.
    static func forgetOldest(_ database: Database) throws {
        try database.run(
            """
            DELETE FROM former WHERE revision IN (
                SELECT revision FROM (
                    SELECT revision, row_number() OVER (PARTITION BY item ORDER BY revision DESC) AS number FROM former
                ) WHERE number > ?
            )
            """,
            [.integer(leftOfEach)]
        )
        try database.run(
            """
            DELETE FROM former WHERE revision IN (
                SELECT revision FROM former WHERE NOT EXISTS (SELECT 1 FROM synced WHERE synced.id = former.item)
                ORDER BY revision DESC LIMIT -1 OFFSET ?
            )
            """,
            [.integer(leftOfGone)]
        )
    }
}
