internal import GRDB
internal import SQLiteRows
internal import UbiquityModel

/// What contents are made of, manifests and the indexes of packages, can be had from the server again. It is kept as long as something
/// names the content: an item of a tree that is not deleted, or a file that stands for a part of it (`FormerTable`).
///
/// To find out what nothing names takes a look at all items: an index of contents would make a million rows much slower to write. So that
/// is done when as much was written as was of use when it was last done. What is of no use takes hardly more than that.
enum UnusedContents {
    /// Less, in bytes, is not worth a look.
    private static let least: Int64 = 16 * 1024 * 1024
    /// What a row takes besides, about.
    private static let rowBytes: Int64 = 100

    private struct Account {
        /// Bytes since the last look, and those that it has left.
        var written: Int64
        var kept: Int64

        /// How much may be written until the next look.
        var limit: Int64 { max(UnusedContents.least, kept) }
    }

    static func bytes(of encoded: [UInt8]) -> Int64 { Int64(encoded.count) + rowBytes }

    /// At the start nobody waits for anything else: a part of it is enough then, and what a version has left that never looked.
    static func isDueAtStart(_ database: Database) throws -> Bool {
        guard let account = try account(database) else { return true }
        return account.written >= account.limit / 4
    }

    /// After something was written, in its transaction.
    /// - Parameter unnamed: contents that something is about to name.
    /// - Returns: whether what is of no use was removed.
    static func note(_ database: Database, written bytes: Int64, keeping unnamed: Set<ContentID>) throws -> Bool {
        // Nothing is counted before the first look, which is at a start.
        guard bytes > 0, var account = try account(database) else { return false }
        account.written = Sizes.sum(account.written, bytes)
        guard account.written >= account.limit else {
            try write(database, account)
            return false
        }
        try remove(database, keeping: unnamed)
        return true
    }

    static func remove(_ database: Database, keeping unnamed: Set<ContentID>) throws {
        try FormerTable.forgetOldest(database)
        let live = "content IS NOT NULL AND NOT deleted"
        let manifests = try remove(
            "manifests",
            namedBy: ["remote WHERE \(live)", "synced WHERE content IS NOT NULL", "former"],
            database,
            keeping: unnamed
        )
        let indexes = try remove(
            "packageIndexes",
            namedBy: ["remote WHERE kind = 4 AND \(live)", "synced WHERE kind = 4 AND content IS NOT NULL"],
            database,
            keeping: unnamed
        )
        try write(database, Account(written: 0, kept: Sizes.sum(manifests, indexes)))
    }

    /// - Returns: bytes that are left. Row by row: as one statement (`NOT IN`) it took four times as long (1,000,000 items: 17 s).
    private static func remove(
        _ table: String,
        namedBy sources: [String],
        _ database: Database,
        keeping unnamed: Set<ContentID>
    ) throws -> Int64 {
        var unused: Set<ContentID> = []
        try database.step("SELECT content FROM \(table)", []) { row in
            if let content = content(row) { unused.insert(content) }
            return true
        }
        unused.subtract(unnamed)
        for source in sources where !unused.isEmpty {
            try database.step("SELECT content FROM \(source)", []) { row in
                if let content = content(row) { unused.remove(content) }
                return !unused.isEmpty
            }
        }
        let delete = try database.prepared("DELETE FROM \(table) WHERE content = ?")
        for content in unused.sorted() { try delete.run { $0.append(content) } }
        let left = "SELECT CAST(total(length(entries)) AS INTEGER) + count(*) * \(rowBytes) FROM \(table)"
        return try database.row(left) { $0.integer(0) } ?? 0
    }

    private static func content(_ row: SQLRow) -> ContentID? { row.bytes(0).flatMap { ContentID(bytes: $0) } }

    // MARK: The account

    private static func account(_ database: Database) throws -> Account? {
        guard let bytes = try MetaTable.read(database, .contents) else { return nil }
        var reader = ByteReader(bytes)
        guard let written = reader.integer(Int64.self), let kept = reader.integer(Int64.self) else {
            throw ReplicaError.corrupted("what the state database knows of its manifests")
        }
        return Account(written: written, kept: kept)
    }

    private static func write(_ database: Database, _ account: Account) throws {
        var writer = ByteWriter()
        writer.integer(account.written)
        writer.integer(account.kept)
        try MetaTable.write(database, .contents, writer.result)
    }
}
