internal import GRDB
internal import SQLiteRows
package import UbiquityModel

/// How much content is here, which of it was used when, and what is not here.
extension StateDatabase {
    /// Bytes of all content that is here, of whole files and of parts, as far as it is written down.
    package func localBytes() throws(ReplicaError) -> Int64 {
        try reading { try ContentTable.localBytes($0) }
    }

    /// Contents that are here, those first that were used least recently.
    package func localContents(limit: Int) throws(ReplicaError) -> [KeptContent] {
        try reading { database in
            let limits: [SQLValue] = [.integer(Int64(limit))]
            let whole = try database.rows(ContentTable.whole, limits, ContentTable.decode)
            let parts = try database.rows(ContentTable.parts, limits, ContentTable.decode)
            let all = (whole + parts).sorted { ($0.lastUsed, $0.id) < ($1.lastUsed, $1.id) }
            return Array(all.prefix(limit))
        }
    }

    /// When the content that was used first after a moment was used.
    package func firstUse(after moment: Timestamp) throws(ReplicaError) -> Timestamp? {
        try reading { database in
            let uses = try [ContentTable.firstWhole, ContentTable.firstPart].compactMap { sql in
                try database.row(sql, [.integer(moment.nanoseconds)]) { row in
                    row.isNull(0) ? nil : Timestamp(nanoseconds: row.integer(0))
                } ?? nil
            }
            return uses.min()
        }
    }

    /// Bytes that are written down of a file: those of its parts that are here, or all of them.
    package func countedBytes(of key: InodeKey) throws(ReplicaError) -> Int64 {
        try reading { database in
            let sums = try [ContentTable.part, ContentTable.wholeOne].map { sql in
                try database.row(sql, [.blob(key.bytes)]) { $0.integer(0) } ?? 0
            }
            return Sizes.sum(sums)
        }
    }

    /// When programs last had files open. An earlier moment than the known one changes nothing.
    package func write(uses: [InodeKey: Timestamp]) throws(ReplicaError) {
        guard !uses.isEmpty else { return }
        try writing { database in
            let update = try database.prepared("UPDATE synced SET used = ?1 WHERE inode = ?2 AND ifnull(used, 0) < ?1")
            for (key, time) in uses.sorted(by: { $0.key < $1.key }) {
                try update.run([.integer(time.nanoseconds), .blob(key.bytes)])
            }
        }
    }

    // MARK: What is not here

    /// Files in a folder whose content is in the cloud and not here, by name, after a given one.
    package func missingContents(
        in folder: ItemID,
        after name: Name?,
        limit: Int
    ) throws(ReplicaError) -> [MissingContent] {
        try reading { database in
            try database.rows(
                ContentTable.missing + "AND r.parent = ? AND r.name > ? ORDER BY r.name, r.id LIMIT ?",
                [.identifier(folder), .blob(name?.bytes ?? []), .integer(Int64(limit))],
                ContentTable.decodeMissing
            )
        }
    }

    /// The same of one file.
    package func missingContent(_ item: ItemID) throws(ReplicaError) -> MissingContent? {
        try reading {
            try $0.row(ContentTable.missing + "AND r.id = ?", [.identifier(item)], ContentTable.decodeMissing)
        }
    }

    /// How many files there are whose content is not here, and what they take together.
    package func missingTotals() throws(ReplicaError) -> (count: Int, bytes: Int64) {
        try reading { database in
            try database.row("SELECT count(*), CAST(total(size) AS INTEGER) FROM (\(ContentTable.missing))") { row in
                (Int(row.integer(0)), row.integer(1))
            } ?? (0, 0)
        }
    }

    /// The folders in a folder, in the cloud, by name.
    package func remoteFolders(in folder: ItemID) throws(ReplicaError) -> [ItemID] {
        let kind = SQLValue.integer(Int64(ItemKind.folder.rawValue))
        return try reading { database in
            try database.rows(
                "SELECT id FROM remote WHERE parent = ? AND NOT deleted AND kind = ? ORDER BY name, id",
                [.identifier(folder), kind]
            ) { try $0.item() }
        }
    }
}

private enum ContentTable {
    private static let isWhole = "FROM synced INDEXED BY syncedContent WHERE isDataless = 0 AND kind = 1"
    private static let isPart = "FROM ranges AS r CROSS JOIN synced AS s ON s.id = r.item WHERE s.isDataless = 1"
    /// As the index has it.
    private static let lastUse = "ifnull(used, localChanged)"

    static let whole = "SELECT id, size, \(lastUse) \(isWhole) ORDER BY \(lastUse), id LIMIT ?"
    static let parts = "SELECT r.item, r.bytes, \(lastUse) \(isPart) ORDER BY \(lastUse), r.item LIMIT ?"
    static let firstWhole = "SELECT min(\(lastUse)) \(isWhole) AND \(lastUse) > ?"
    static let firstPart = "SELECT min(\(lastUse)) \(isPart) AND \(lastUse) > ?"
    static let wholeOne = """
        SELECT CAST(total(size) AS INTEGER) FROM synced WHERE inode = ? AND isDataless = 0 AND kind = \(ItemKind.file.rawValue)
        """
    static let part = "SELECT CAST(total(r.bytes) AS INTEGER) \(isPart) AND s.inode = ?"

    static let missing = """
        SELECT r.id, r.parent, r.name, r.size, r.revision, r.content, r.kind FROM remote AS r LEFT JOIN synced AS s ON s.id = r.id
        WHERE NOT r.deleted AND r.kind IN (1, 4) AND r.content IS NOT NULL AND (s.id IS NULL OR s.isDataless = 1)

        """

    static func localBytes(_ database: Database) throws -> Int64 {
        // Not `sum`, which fails where the sizes that others announce are more than a number together.
        let sums = try ["CAST(total(size) AS INTEGER) \(isWhole)", "CAST(total(r.bytes) AS INTEGER) \(isPart)"].map {
            try database.row("SELECT \($0)") { $0.integer(0) } ?? 0
        }
        return Sizes.sum(sums)
    }

    static func decode(_ row: SQLRow) throws -> KeptContent {
        KeptContent(id: try row.item(), bytes: row.integer(1), lastUsed: Timestamp(nanoseconds: row.integer(2)))
    }

    static func decodeMissing(_ row: SQLRow) throws -> MissingContent {
        guard let parent = row.identifier(1, ItemKindTag.self),
            let name = row.blob(2).flatMap({ try? Name(bytes: $0) }),
            let revision = row.identifier(4, RevisionKindTag.self),
            let content = row.bytes(5).flatMap({ ContentID(bytes: $0) })
        else { throw ReplicaError.corrupted("a row of the state database") }
        let isPackage = row.integer(6) == Int64(ItemKind.package.rawValue)
        let file = FileContent(revision: revision, content: content, size: row.integer(3), isPackage: isPackage)
        return MissingContent(id: try row.item(), place: Place(parent: parent, name: name), file: file)
    }
}
