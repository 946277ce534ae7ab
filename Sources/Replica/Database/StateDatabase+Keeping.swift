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
            let all = try [ContentTable.whole, ContentTable.packages, ContentTable.parts]
                .flatMap { try database.rows($0, limits, ContentTable.decode) }
                .sorted { ($0.lastUsed, $0.id) < ($1.lastUsed, $1.id) }
            return Array(all.prefix(limit))
        }
    }

    /// When the content that was used first after a moment was used.
    package func firstUse(after moment: Timestamp) throws(ReplicaError) -> Timestamp? {
        try reading { database in
            let uses = try [ContentTable.firstWhole, ContentTable.firstPackage, ContentTable.firstPart].compactMap {
                sql in
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

    /// Packages of which nobody knows when they were used, as after they were made here, count as used at that moment: no time on the disk
    /// says when the content of one came.
    package func write(useOfUndatedPackages time: Timestamp) throws(ReplicaError) {
        let isNeeded = try reading { try $0.row(ContentTable.undated) { _ in true } ?? false }
        guard isNeeded else { return }
        try writing { try $0.run(ContentTable.date, [.integer(time.nanoseconds)]) }
    }

    /// How much of a package is here of which not all is; 0: nothing, or all.
    package func write(localBytes bytes: Int64, ofPackage item: SyncedItem) throws(ReplicaError) {
        guard case .file(let file) = item.content else { return }
        // In the table of what is here of files. A package has no placeholder by which anybody would ask for it.
        let known = try reading { database in
            try database.row("SELECT bytes FROM ranges WHERE item = ?", [.identifier(item.id)]) { $0.integer(0) }
        }
        guard known ?? 0 != bytes else { return }
        guard bytes > 0 else { return try removeRanges([item.id]) }
        try writing { database in
            try database.run(
                "INSERT OR REPLACE INTO ranges (item, revision, generation, present, bytes) VALUES (?, ?, 0, x'', ?)",
                [.identifier(item.id), .identifier(file.revision), .integer(bytes)]
            )
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
    /// They are few: the index of all of them is as good as one of those that are here.
    private static let isPackage = "FROM synced INDEXED BY syncedPackages WHERE kind = 4"
    private static let isWholePackage = "\(isPackage) AND isDataless = 0"
    /// As the index has it.
    private static let lastUse = "ifnull(used, localChanged)"
    /// What of a package stands in the place of a change time is none.
    private static let isDatedPart = "\(isPart) AND (s.kind <> 4 OR s.used IS NOT NULL)"

    static let whole = "SELECT id, size, \(lastUse) \(isWhole) ORDER BY \(lastUse), id LIMIT ?"
    static let packages = "SELECT id, size, used \(isWholePackage) AND used IS NOT NULL ORDER BY used, id LIMIT ?"
    static let parts = "SELECT r.item, r.bytes, \(lastUse) \(isDatedPart) ORDER BY \(lastUse), r.item LIMIT ?"
    static let firstWhole = "SELECT min(\(lastUse)) \(isWhole) AND \(lastUse) > ?"
    static let firstPackage = "SELECT min(used) \(isWholePackage) AND used > ?"
    static let firstPart = "SELECT min(\(lastUse)) \(isDatedPart) AND \(lastUse) > ?"
    static let undated = "SELECT 1 \(isPackage) AND used IS NULL LIMIT 1"
    static let date = "UPDATE synced SET used = ? WHERE kind = 4 AND used IS NULL"
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
        let (sizes, bytes) = ("CAST(total(size) AS INTEGER)", "CAST(total(r.bytes) AS INTEGER)")
        let sums = try ["\(sizes) \(isWhole)", "\(sizes) \(isWholePackage)", "\(bytes) \(isPart)"].map {
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
