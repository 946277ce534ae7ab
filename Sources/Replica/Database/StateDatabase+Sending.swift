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
            try database.step("SELECT item, revision, content, boot FROM sending WHERE target IS NULL", []) { row in
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

    package func sentLinks() throws(ReplicaError) -> [ItemID: SentLink] {
        try reading { database in
            let boot = MachineStart.id
            var sent: [ItemID: SentLink] = [:]
            try database.step("SELECT item, revision, target, boot FROM sending WHERE target IS NOT NULL", []) { row in
                if let item = row.identifier(0, ItemKindTag.self),
                    let operation = row.identifier(1, OperationKindTag.self), let target = row.blob(2)
                {
                    sent[item] = SentLink(
                        operation: operation,
                        target: target,
                        isDoubtful: row.isNull(3) || row.text(3) != boot
                    )
                }
                return true
            }
            return sent
        }
    }

    package func write(sentLinks: [(item: ItemID, sent: SentLink)]) throws(ReplicaError) {
        guard !sentLinks.isEmpty else { return }
        try writing { database in
            let insertion = try SendingTable.Insertion(database)
            for (item, sent) in sentLinks {
                try insertion(item, sent.operation, target: sent.target, isDoubtful: sent.isDoubtful)
            }
        }
    }

    package func sentDeletions() throws(ReplicaError) -> [ItemID: SentDeletion] {
        try reading { database in
            var sent: [ItemID: SentDeletion] = [:]
            try database.step("SELECT item, operation, base, leaving FROM sentDeletions", []) { row in
                if let item = row.identifier(0, ItemKindTag.self),
                    let operation = row.identifier(1, OperationKindTag.self)
                {
                    sent[item] = SentDeletion(
                        operation: operation,
                        base: row.identifier(2, RevisionKindTag.self),
                        isLeaving: row.integer(3) != 0
                    )
                }
                return true
            }
            return sent
        }
    }

    package func write(sentDeletions: [(item: ItemID, sent: SentDeletion)]) throws(ReplicaError) {
        guard !sentDeletions.isEmpty else { return }
        try writing { database in
            let insert = try database.prepared(
                "INSERT OR REPLACE INTO sentDeletions (item, operation, base, leaving) VALUES (?, ?, ?, ?)"
            )
            for (item, sent) in sentDeletions {
                try insert.run { row in
                    row.append(item)
                    row.append(sent.operation)
                    if let base = sent.base { row.append(base) } else { row.appendNull() }
                    row.append(sent.isLeaving ? 1 : 0)
                }
            }
        }
    }

    package func write(sending: [(item: ItemID, sent: SentRevision)]) throws(ReplicaError) {
        guard !sending.isEmpty else { return }
        try writing { database in
            let insertion = try SendingTable.Insertion(database)
            for (item, sent) in sending {
                try insertion(item, sent.revision, content: sent.content, isDoubtful: sent.isDoubtful)
            }
        }
    }
}

enum SendingTable {
    /// Not to be kept longer than the transaction.
    struct Insertion {
        private let statement: PreparedStatement
        private let boot = MachineStart.id

        init(_ database: Database) throws {
            statement = try database.prepared(
                "INSERT OR REPLACE INTO sending (item, revision, content, target, boot) VALUES (?, ?, ?, ?, ?)"
            )
        }

        /// - Parameter id: a file's revision, or the operation that gave a link its target.
        func callAsFunction<Kind>(
            _ item: ItemID,
            _ id: Identifier<Kind>,
            content: ContentID? = nil,
            target: [UInt8]? = nil,
            isDoubtful: Bool
        ) throws {
            try statement.run { row in
                row.append(item)
                row.append(id)
                if let content { row.append(content) } else { row.appendNull() }
                if let target { row.append(target) } else { row.appendNull() }
                if let boot, !isDoubtful { row.append(text: boot) } else { row.appendNull() }
            }
        }
    }

    static func removeDeletions(_ database: Database, _ items: [ItemID]) throws {
        guard !items.isEmpty else { return }
        let remove = try database.prepared("DELETE FROM sentDeletions WHERE item = ?")
        for item in items { try remove.run { $0.append(item) } }
    }

    /// - Parameter refreshedLater: items for which the caller sees to it whether they are pending.
    static func remove(_ database: Database, _ items: [ItemID], refreshedLater: Set<ItemID>) throws {
        guard !items.isEmpty else { return }
        let remove = try database.prepared("DELETE FROM sending WHERE item = ?")
        let refresh = try PendingTable.Refresh(database)
        for item in items {
            try remove.run { $0.append(item) }
            if !refreshedLater.contains(item) { try refresh(item) }
        }
    }
}
