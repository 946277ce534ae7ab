internal import GRDB
internal import SQLiteRows
package import UbiquityModel

/// The remote tree: what the server last said.
extension StateDatabase {
    package func remote(_ id: ItemID) throws(ReplicaError) -> RemoteItem? {
        try reading(.remoteTree) { try RemoteTable.fetch($0, id) }
    }

    /// The live item whose content is of that revision. Reads all items: for what is found in no other way.
    package func remote(revision: RevisionID) throws(ReplicaError) -> RemoteItem? {
        try reading(.remoteTree) {
            try RemoteTable.fetch($0, "revision = ? AND NOT deleted LIMIT 1", [.identifier(revision)]).first
        }
    }

    /// The same of deleted items.
    package func deletedRemote(revision: RevisionID) throws(ReplicaError) -> RemoteItem? {
        try reading(.remoteTree) {
            try RemoteTable.fetch($0, "revision = ? AND deleted LIMIT 1", [.identifier(revision)]).first
        }
    }

    /// The live items of a name: one, or several while some are only announced.
    package func remote(at place: Place) throws(ReplicaError) -> [RemoteItem] {
        let limit = SQLValue.integer(Int64(NameCache<RemoteItem>.largest + 1))
        let known = try readingNames(.remoteTree) { names, database, version in
            try names.remote.rows(at: place, asOf: version, name: \.place.name) {
                let condition = "parent = ? AND NOT deleted ORDER BY name, id LIMIT ?"
                return try RemoteTable.fetch(database, condition, [.identifier($0), limit])
            }
        }
        if let known { return known }
        return try reading(.remoteTree) {
            try RemoteTable.fetch($0, "parent = ? AND name = ? AND NOT deleted ORDER BY id", place.values)
        }
    }

    /// In a case-insensitive container the live items whose names equal this one without their case, those of the same name included.
    package func remote(like place: Place) throws(ReplicaError) -> [RemoteItem] {
        guard isCaseInsensitive else { return [] }
        let values: [SQLValue] = [.identifier(place.parent), .blob(place.name.folded.bytes)]
        return try reading(.remoteTree) {
            try RemoteTable.fetch($0, "parent = ? AND folded = ? AND NOT deleted ORDER BY id", values)
        }
    }

    /// The live items in a folder, by name.
    package func remoteChildren(of parent: ItemID) throws(ReplicaError) -> [RemoteItem] {
        try reading(.remoteTree) {
            try RemoteTable.fetch($0, "parent = ? AND NOT deleted ORDER BY name, id", [.identifier(parent)])
        }
    }

    /// Everything, tombstones too, in order of ids, in pages.
    package func remoteItems(after id: ItemID?, limit: Int) throws(ReplicaError) -> [RemoteItem] {
        try reading(.remoteTree) {
            try RemoteTable.fetch($0, "id > ? ORDER BY id LIMIT ?", [.blob(id?.bytes ?? []), .integer(Int64(limit))])
        }
    }

    /// The path of an item in the remote tree; `nil` if it or a folder above it is not known.
    package func remotePath(of id: ItemID) throws(ReplicaError) -> ItemPath? {
        try readingSnapshot { try ItemChain.path($0, of: id, in: "remote") }
    }

    /// Live items with unresolved conflict versions.
    package func conflicts() throws(ReplicaError) -> [RemoteItem] {
        try reading { try RemoteTable.fetch($0, "conflicts IS NOT NULL AND NOT deleted ORDER BY id", []) }
    }

    /// A page of the feed, in one transaction: the items, their manifests, and up to where the log is known now.
    ///
    /// An item is not written if a later state of it is known already (an answer to a commit may overtake the feed).
    ///
    /// - Parameter head: the log's end, if further pages follow. What has changed in what they tell was left out of this one: if the server
    ///   goes back to before that, they do not tell it any more (`answeredPosition`).
    package func write(
        remote items: [RemoteItem],
        manifests: [ContentID: Manifest] = [:],
        position: LogPosition?,
        head: LogPosition? = nil
    ) throws(ReplicaError) {
        try writing { database in
            try RemoteTable.write(database, items, folding: isCaseInsensitive)
            noteNamed(by: items)
            try noteWritten(database, ManifestTable.write(database, manifests))
            if let position { try MetaTable.write(database, .position, MetaTable.encode(position)) }
            guard let head, try head.counter > MetaTable.readAnswered(database)?.counter ?? 0 else { return }
            try MetaTable.write(database, .answered, MetaTable.encode(head))
        }
    }

    /// A page of a full listing from a server that does not know our position: it was restored from a backup. Its word counts,
    /// also where it knows less than it did, and what was agreed on with it changes (`SyncedItem.agreed(withRestored:known:)`).
    package func rewrite(remote items: [RemoteItem], manifests: [ContentID: Manifest]) throws(ReplicaError) {
        try writing { database in
            try MetaTable.write(database, .comparing, [1])
            for item in items {
                let known = try RemoteTable.fetch(database, item.id)
                guard let former = try SyncedTable.fetch(database, item.id),
                    let row = former.agreed(withRestored: item, known: known)
                else { continue }
                try FormerTable.note(database, former, followedBy: row)
                try SyncedTable.apply(database, SyncedChanges(upserts: [row]))
            }
            try RemoteTable.write(database, items, folding: isCaseInsensitive, overwriting: true)
            noteNamed(by: items)
            try noteWritten(database, ManifestTable.write(database, manifests))
        }
    }

    /// Forgets what the server turned out not to have, at the end of a full listing. Synced rows of these items are pending
    /// from then on.
    package func removeRemote(_ ids: [ItemID], position: LogPosition? = nil) throws(ReplicaError) {
        try writing { database in
            for id in ids {
                let known = try RemoteTable.fetch(database, id)
                if let former = try SyncedTable.fetch(database, id),
                    let row = former.agreed(withRestored: nil, known: known)
                {
                    try FormerTable.note(database, former, followedBy: row)
                    try SyncedTable.apply(database, SyncedChanges(upserts: [row]))
                }
                try database.run("DELETE FROM remote WHERE id = ?", [.identifier(id)])
                try PendingTable.refresh(database, id)
            }
            if let position {
                try MetaTable.write(database, .position, MetaTable.encode(position))
                try MetaTable.clear(database, .answered)
                try MetaTable.clear(database, .comparing)
            }
        }
    }
}

enum RemoteTable {
    private static let columns = ItemColumns.names + ", position, deleted, author, edited, conflicts"
    private static let upsert = """
        INSERT INTO remote (\(columns), folded) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (id) DO UPDATE SET
            parent = excluded.parent, name = excluded.name, kind = excluded.kind, revision = excluded.revision,
            content = excluded.content, size = excluded.size, target = excluded.target, modified = excluded.modified,
            mode = excluded.mode, extended = excluded.extended, position = excluded.position, deleted = excluded.deleted,
            author = excluded.author, edited = excluded.edited, conflicts = excluded.conflicts,
            folded = excluded.folded
        """
    /// What is written already is not written again: the feed tells as well what a commit was answered. Another state at the same position is
    /// that of a server that was restored.
    private static let upsertNewer =
        upsert + """
             WHERE excluded.position > remote.position OR (excluded.position = remote.position AND
                (excluded.parent, excluded.name, excluded.kind, excluded.revision, excluded.content, excluded.size,
                    excluded.target, excluded.modified, excluded.mode, excluded.extended, excluded.deleted,
                    excluded.author, excluded.edited, excluded.conflicts)
                IS NOT (remote.parent, remote.name, remote.kind, remote.revision, remote.content, remote.size,
                    remote.target, remote.modified, remote.mode, remote.extended, remote.deleted,
                    remote.author, remote.edited, remote.conflicts))
            """

    /// - Parameter refreshedLater: items for which the caller sees to it whether they are pending.
    static func write(
        _ database: Database,
        _ items: [RemoteItem],
        folding: Bool,
        overwriting: Bool = false,
        refreshedLater: Set<ItemID> = []
    ) throws {
        guard !items.isEmpty else { return }
        let upsert = try database.prepared(overwriting ? upsert : upsertNewer)
        let refresh = try PendingTable.Refresh(database)
        for item in items {
            try upsert.run { bind(item, folding: folding, &$0) }
            if item.content == .folder { try PopulationTable.mark(database, item) }
            if !refreshedLater.contains(item.id) { try refresh(item.id) }
        }
    }

    /// The items of folders that are unpopulated, as the first listing tells them.
    static func write(listing items: [RemoteItem], folding: Bool, _ database: Database) throws {
        let upsert = try database.prepared(upsertNewer)
        let look = try database.prepared("SELECT 1 FROM synced WHERE id = ?")
        // Most have no row, and on a device that is just joining hardly anything has.
        let known = try database.rows("SELECT id FROM synced LIMIT ?", [.integer(Int64(knownLimit))]) {
            $0.identifier(0, ItemKindTag.self)
        }
        let all = known.count < knownLimit ? Set(known) : nil
        // In the order of the index that is the widest scattered: each of its pages is gone to once.
        let order = items.indices.sorted { items[$0].id < items[$1].id }
        for index in order {
            let item = items[index]
            try upsert.run { bind(item, folding: folding, &$0) }
            if item.content == .folder {
                try PopulationTable.mark(database, item)
                try PopulationTable.insertUnlisted(database, item.id)
            }
            // Nothing of it is pending unless it is here.
            if try all?.contains(item.id) ?? look.hasRow([.identifier(item.id)]) {
                try PendingTable.refresh(database, item.id)
            }
        }
    }

    private static let knownLimit = 4096

    private static func bind(_ item: RemoteItem, folding: Bool, _ row: inout ValueBinder) {
        ItemColumns.bind(item.id, item.place, item.content, item.attributes, &row)
        row.append(Int64(bitPattern: item.position))
        row.append(item.isDeleted ? 1 : 0)
        row.append(text: item.author)
        row.append(item.edited.nanoseconds)
        if item.conflicts.isEmpty { row.appendNull() } else { row.append(VersionCoding.encode(item.conflicts)) }
        if folding { row.append(item.place.name.folded.bytes) } else { row.appendNull() }
    }

    /// Of what an older program has written.
    static func foldNames(_ database: Database) throws {
        let rows = try database.rows("SELECT id, name FROM remote") { row in
            (id: row.blob(0) ?? [], name: try Name(bytes: row.blob(1) ?? []))
        }
        for (id, name) in rows {
            try database.run("UPDATE remote SET folded = ? WHERE id = ?", [.blob(name.folded.bytes), .blob(id)])
        }
    }

    static func fetch(_ database: Database, _ id: ItemID) throws -> RemoteItem? {
        try database.row("SELECT \(columns) FROM remote WHERE id = ?", [.identifier(id)], decode)
    }

    static func fetch(_ database: Database, _ condition: String, _ values: [SQLValue]) throws -> [RemoteItem] {
        try database.rows("SELECT \(columns) FROM remote WHERE \(condition)", values, decode)
    }

    private static func decode(_ row: SQLRow) throws -> RemoteItem {
        let item = try ItemColumns.decode(row)
        let next = ItemColumns.count
        return RemoteItem(
            id: item.id,
            place: item.place,
            content: item.content,
            attributes: item.attributes,
            position: UInt64(bitPattern: row.integer(next)),
            isDeleted: row.integer(next + 1) != 0,
            author: row.text(next + 2),
            edited: Timestamp(nanoseconds: row.integer(next + 3)),
            conflicts: try row.blob(next + 4).map(VersionCoding.decode) ?? []
        )
    }
}

extension Place {
    var values: [SQLValue] { [.identifier(parent), .blob(name.bytes)] }
}

/// Follows parents up to the root.
enum ItemChain {
    /// More levels than any tree has; a circle, which no tree has either, ends here.
    private static let limit = 65_536

    static func path(_ database: Database, of id: ItemID, in table: String) throws -> ItemPath? {
        var names: [Name] = []
        var next = id
        while next != .root, names.count < limit {
            let link = try database.row("SELECT parent, name FROM \(table) WHERE id = ?", [.identifier(next)]) { row in
                (row.identifier(0, ItemKindTag.self), row.blob(1).flatMap { try? Name(bytes: $0) })
            }
            guard case (let parent?, let name?)? = link else { return nil }
            names.append(name)
            next = parent
        }
        return next == .root ? ItemPath(names.reversed()) : nil
    }
}
