internal import GRDB
internal import SQLiteRows
package import UbiquityModel

/// What was agreed on with a server before it was restored from a backup.
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
    /// A package's files that are not here stand for parts of its revision.
    static func note(_ database: Database, _ former: SyncedItem, followedBy row: SyncedItem) throws {
        guard former.content != row.content, case .file(let file) = former.content, file.isPackage,
            let content = file.content
        else { return }
        try database.run(
            "INSERT OR IGNORE INTO former (revision, item, content, size) VALUES (?, ?, ?, ?)",
            [.identifier(file.revision), .identifier(former.id), .blob(content.bytes), .integer(file.size)]
        )
    }
}
