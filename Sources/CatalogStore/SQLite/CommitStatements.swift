internal import GRDB
internal import SQLiteRows

/// What a commit asks and writes for each of its operations, prepared once for all of them: to look a statement up by its text takes about
/// as long as it runs. Not to be kept longer than the transaction.
final class CommitStatements {
    let item: PreparedStatement
    let revision: PreparedStatement
    /// By the name in the folder, or by that without its case in a case-insensitive container.
    let holder: PreparedStatement
    /// Whether a content is known with that manifest; no row if it is not known.
    let isManifest: PreparedStatement
    let chunk: ChunkLookup
    let isCommitted: PreparedStatement
    let remember: PreparedStatement
    let putItem: PreparedStatement
    let putRevision: PreparedStatement
    let putContent: PreparedStatement
    /// `nil` where no chunk is on that list.
    let dropCandidate: PreparedStatement?

    init(_ db: Database, container: Int64, isCaseInsensitive: Bool) throws {
        item = try db.prepared("SELECT \(ItemRows.columns) FROM items WHERE container = ? AND id = ?")
        revision = try db.prepared("SELECT \(ItemRows.revisionColumns) FROM revisions WHERE container = ? AND id = ?")
        holder = try db.prepared(
            """
            SELECT id FROM items WHERE container = ? AND parent = ? AND \(isCaseInsensitive ? "folded" : "name") = ?
                AND deleted IS NULL AND announced = 0
            """
        )
        isManifest = try db.prepared("SELECT manifest = ? FROM contents WHERE container = ? AND id = ?")
        chunk = try ChunkLookup(db, container: container)
        isCommitted = try db.prepared("SELECT 1 FROM operations WHERE container = ? AND id = ?")
        remember = try db.prepared("INSERT INTO operations (container, id) VALUES (?, ?)")
        putItem = try db.prepared(ItemRows.upsert)
        putRevision = try db.prepared(ItemRows.upsertRevision)
        putContent = try db.prepared(
            "INSERT INTO contents (container, id, manifest) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
        )
        let hasCandidates = try db.exists("SELECT 1 FROM candidates WHERE container = ? LIMIT 1", [.integer(container)])
        dropCandidate =
            hasCandidates ? try db.prepared("DELETE FROM candidates WHERE container = ? AND id = ?") : nil
    }
}
