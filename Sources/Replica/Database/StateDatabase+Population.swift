internal import GRDB
internal import SQLiteRows
package import UbiquityModel

/// An item of a folder that is known from the cloud alone.
package struct CloudEntry: Hashable, Sendable {
    package var id: ItemID
    package var name: Name
    package var kind: ItemKind

    package init(id: ItemID, name: Name, kind: ItemKind) {
        self.id = id
        self.name = name
        self.kind = kind
    }
}

/// Folders that populate themselves (architecture section 3.4). An *unpopulated* folder shows what the cloud has in it without an inode
/// for each item: an item gets one, and its synced row, when somebody asks for its name.
extension StateDatabase {
    /// The first time that a container is here at all: nothing of it is known, and its root is the first folder to ask for.
    package func beginListing() throws(ReplicaError) {
        try writing { database in
            let isFresh =
                try database.row("SELECT 1 FROM remote UNION ALL SELECT 1 FROM synced LIMIT 1") { _ in true } == nil
            guard isFresh, try MetaTable.read(database, .position) == nil else { return }
            try PopulationTable.insert(database, .root)
            try PopulationTable.insertUnlisted(database, .root)
        }
    }

    /// The unpopulated folders that are here, the root among them.
    package func unpopulatedFolders(root: InodeKey) throws(ReplicaError) -> [InodeKey: ItemID] {
        let rows = try reading { database in
            try database.rows(
                "SELECT u.item, s.inode FROM unpopulated AS u LEFT JOIN synced AS s ON s.id = u.item"
            ) { row in (row.identifier(0, ItemKindTag.self), row.blob(1).flatMap { InodeKey(bytes: $0) }) }
        }
        var folders: [InodeKey: ItemID] = [:]
        for case (let id?, let key) in rows {
            if let key = id == .root ? root : key { folders[key] = id }
        }
        return folders
    }

    package func isUnpopulated(_ folder: ItemID) throws(ReplicaError) -> Bool {
        try reading {
            try $0.row("SELECT 1 FROM unpopulated WHERE item = ?", [.identifier(folder)]) { _ in true } ?? false
        }
    }

    /// All that the cloud has in them is to come here.
    package func setPopulated(_ folders: [ItemID]) throws(ReplicaError) {
        guard !folders.isEmpty else { return }
        try writing { database in
            for folder in folders {
                try database.run("DELETE FROM unpopulated WHERE item = ?", [.identifier(folder)])
                try database.run(
                    "INSERT OR IGNORE INTO pending (id) SELECT id FROM (\(PopulationTable.entries))",
                    [.identifier(folder), .integer(.max)]
                )
            }
        }
    }

    /// What the cloud alone has under a name: rather what has content than what is only announced. Not what this device itself has
    /// announced or is just sending: its file here may be gone already.
    package func cloudOnly(at place: Place) throws(ReplicaError) -> RemoteItem? {
        let items = try reading {
            try RemoteTable.fetch($0, "parent = ? AND name = ? AND \(Self.isCloudOnly)", place.values)
        }
        return items.first { !$0.isAnnounced } ?? items.first
    }

    /// The same of all that have content and a name that equals this one without its case. Only in a case-insensitive container.
    package func cloudOnly(folded name: FoldedName, in parent: ItemID) throws(ReplicaError) -> [RemoteItem] {
        let values: [SQLValue] = [.identifier(parent), .blob(name.bytes)]
        let items = try reading {
            try RemoteTable.fetch($0, "parent = ? AND folded = ? AND \(Self.isCloudOnly)", values)
        }
        return items.filter { !$0.isAnnounced }
    }

    private static let isCloudOnly = """
        NOT deleted AND NOT EXISTS (SELECT 1 FROM synced WHERE id = remote.id)
            AND NOT EXISTS (SELECT 1 FROM sending WHERE item = remote.id) ORDER BY id
        """

    /// What the cloud alone has in a folder, by name; several may have one name while they are only announced.
    package func cloudOnlyEntries(
        of parent: ItemID,
        limit: Int = .max
    ) throws(ReplicaError) -> [CloudEntry] {
        try reading { database in
            try database.rows(PopulationTable.entries, [.identifier(parent), .integer(Int64(limit))]) { row in
                guard let id = row.identifier(0, ItemKindTag.self),
                    let name = row.blob(1).flatMap({ try? Name(bytes: $0) }),
                    let kind = UInt8(exactly: row.integer(2)).flatMap(ItemKind.init(rawValue:))
                else { throw ReplicaError.corrupted("a row of the state database") }
                return CloudEntry(id: id, name: name, kind: kind)
            }
        }
    }

    /// A file whose content is in the cloud and not here.
    package struct DatalessFile: Sendable {
        package var id: ItemID
        package var name: Name
        package var file: FileContent
        package var manifest: Manifest
        /// Its placeholder is; else it is in the cloud only.
        package var isHere: Bool
    }

    /// Small ones in the folder of a place, by name from there on, and from the first name on when the last is reached. Only those of which
    /// the chunks are known.
    package func datalessFiles(
        after place: Place,
        upTo size: Int64,
        limit: Int
    ) throws(ReplicaError) -> [DatalessFile] {
        try reading { database in
            var found: [DatalessFile] = []
            for comparison in [">", "<"] where found.count < limit {
                let values = place.values + [.integer(size), .integer(Int64(limit - found.count))]
                found += try database.rows(PopulationTable.dataless(comparison), values) { row in
                    guard let id = row.identifier(0, ItemKindTag.self),
                        let name = row.blob(1).flatMap({ try? Name(bytes: $0) }),
                        let revision = row.identifier(2, RevisionKindTag.self),
                        let content = row.bytes(3).flatMap({ ContentID(bytes: $0) }),
                        let manifest = Manifest(encoded: row.blob(5) ?? [])
                    else { throw ReplicaError.corrupted("a row of the state database") }
                    let file = FileContent(revision: revision, content: content, size: row.integer(4))
                    return DatalessFile(
                        id: id,
                        name: name,
                        file: file,
                        manifest: manifest,
                        isHere: row.integer(6) != 0
                    )
                }
            }
            return found
        }
    }

    // MARK: The first listing

    /// Folders that the first listing has not reached; empty when it has come to its end.
    package func unlisted(limit: Int = .max) throws(ReplicaError) -> [ItemID] {
        try reading { database in
            try database.rows("SELECT item FROM unlisted LIMIT ?", [.integer(Int64(limit))]) {
                $0.identifier(0, ItemKindTag.self)
            }
        }.compactMap { $0 }
    }

    /// What the cloud says lies in some folders, and which of them are now known whole.
    package func write(
        listing items: [RemoteItem],
        manifests: [ContentID: Manifest],
        complete: [ItemID]
    ) throws(ReplicaError) {
        try writing { database in
            try RemoteTable.write(listing: items, folding: isCaseInsensitive, database)
            noteNamed(by: items)
            // Not counted: in a first listing nothing has become of no use.
            try ManifestTable.write(database, manifests)
            for folder in complete { try database.run("DELETE FROM unlisted WHERE item = ?", [.identifier(folder)]) }
        }
    }

    /// Folders that came to light by another way than the listing of the folder above.
    package func addUnlisted(_ folders: [ItemID]) throws(ReplicaError) {
        try writing { database in
            for folder in folders { try PopulationTable.insertUnlisted(database, folder) }
        }
    }
}

enum PopulationTable {
    /// `sending` is nearly always empty, which is asked once instead of for every row.
    static let entries = """
        SELECT id, name, kind FROM remote WHERE parent = ? AND NOT deleted
            AND NOT EXISTS (SELECT 1 FROM synced WHERE synced.id = remote.id)
            AND (NOT EXISTS (SELECT 1 FROM sending)
                OR NOT EXISTS (SELECT 1 FROM sending WHERE sending.item = remote.id))
        ORDER BY name, id LIMIT ?
        """

    static func dataless(_ comparison: String) -> String {
        """
        SELECT r.id, r.name, r.revision, r.content, r.size, m.entries, s.id IS NOT NULL
        FROM remote AS r LEFT JOIN synced AS s ON s.id = r.id CROSS JOIN manifests AS m ON m.content = r.content
        WHERE r.parent = ? AND r.name \(comparison) ? AND NOT r.deleted AND r.kind = \(ItemKind.file.rawValue)
            AND r.size BETWEEN 1 AND ? AND (s.id IS NULL
                OR s.isDataless AND s.revision = r.revision AND s.parent = r.parent AND s.name = r.name)
        ORDER BY r.name, r.id LIMIT ?
        """
    }

    static func insert(_ database: Database, _ folder: ItemID) throws {
        try database.run("INSERT OR IGNORE INTO unpopulated (item) VALUES (?)", [.identifier(folder)])
    }

    static func insertUnlisted(_ database: Database, _ folder: ItemID) throws {
        try database.run("INSERT OR IGNORE INTO unlisted (item) VALUES (?)", [.identifier(folder)])
    }

    /// What lies in a folder that is in the cloud only is there as well.
    static func mark(_ database: Database, _ folder: RemoteItem) throws {
        if folder.isDeleted {
            try database.run("DELETE FROM unpopulated WHERE item = ?", [.identifier(folder.id)])
            try database.run("DELETE FROM unlisted WHERE item = ?", [.identifier(folder.id)])
            return
        }
        try database.run(
            """
            INSERT OR IGNORE INTO unpopulated (item)
            SELECT ?1 WHERE EXISTS (SELECT 1 FROM unpopulated WHERE item = ?2) AND NOT EXISTS (SELECT 1 FROM synced WHERE id = ?1)
            """,
            [.identifier(folder.id), .identifier(folder.place.parent)]
        )
    }
}
