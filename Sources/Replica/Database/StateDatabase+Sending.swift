internal import GRDB
internal import SQLiteRows
package import UbiquityModel

/// What was sent and not answered yet. Written before a commit leaves: if its answer is lost, by a kill or a cut connection,
/// the revision that then shows up in the cloud is known as this device's own, and not taken for somebody else's edit.
extension StateDatabase {
    package func sending() throws(ReplicaError) -> [ItemID: SentRevision] {
        try reading { database in
            let rows = try database.rows("SELECT item, revision, content FROM sending") { row in
                (
                    row.identifier(0, ItemKindTag.self), row.identifier(1, RevisionKindTag.self),
                    row.blob(2).flatMap { ContentID(bytes: $0) }
                )
            }
            var sending: [ItemID: SentRevision] = [:]
            for case (let item?, let revision?, let content) in rows {
                sending[item] = SentRevision(revision: revision, content: content)
            }
            return sending
        }
    }

    package func write(sending: [(item: ItemID, sent: SentRevision)]) throws(ReplicaError) {
        guard !sending.isEmpty else { return }
        try writing { database in
            for (item, sent) in sending {
                try database.run(
                    "INSERT OR REPLACE INTO sending (item, revision, content) VALUES (?, ?, ?)",
                    [.identifier(item), .identifier(sent.revision), sent.content.map { .blob($0.bytes) } ?? .null]
                )
            }
        }
    }
}

enum SendingTable {
    static func remove(_ database: Database, _ items: [ItemID]) throws {
        for item in items {
            try database.run("DELETE FROM sending WHERE item = ?", [.identifier(item)])
            try PendingTable.refresh(database, item)
        }
    }
}
