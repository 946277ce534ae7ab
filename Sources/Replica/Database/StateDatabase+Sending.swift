internal import GRDB
internal import SQLiteRows
package import UbiquityModel

/// What was sent and not answered yet. Written before a commit leaves: if its answer is lost, by a kill or a cut connection,
/// the revision that then shows up in the cloud is known as this device's own, and not taken for somebody else's edit.
extension StateDatabase {
    package func sending() throws(ReplicaError) -> [ItemID: SentRevision] {
        try reading { database in
            let boot = MachineStart.id
            var sending: [ItemID: SentRevision] = [:]
            try database.step("SELECT item, revision, content, boot FROM sending", []) { row in
                if let item = row.identifier(0, ItemKindTag.self),
                    let revision = row.identifier(1, RevisionKindTag.self)
                {
                    sending[item] = SentRevision(
                        revision: revision,
                        content: row.blob(2).flatMap { ContentID(bytes: $0) },
                        isDoubtful: row.isNull(3) || row.text(3) != boot
                    )
                }
                return true
            }
            return sending
        }
    }

    package func write(sending: [(item: ItemID, sent: SentRevision)]) throws(ReplicaError) {
        guard !sending.isEmpty else { return }
        let boot: SQLValue = MachineStart.id.map { .text($0) } ?? .null
        try writing { database in
            for (item, sent) in sending {
                try database.run(
                    "INSERT OR REPLACE INTO sending (item, revision, content, boot) VALUES (?, ?, ?, ?)",
                    [
                        .identifier(item), .identifier(sent.revision), sent.content.map { .blob($0.bytes) } ?? .null,
                        sent.isDoubtful ? .null : boot,
                    ]
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
