package import CatalogModel
internal import FoundationEssentials
internal import GRDB
internal import Reconciliation
internal import SQLiteRows
package import UbiquityModel

extension SQLiteCatalog {
    package func changes(_ scope: Scope, since: LogPosition?, limit: Int) async throws(CatalogError) -> CatalogPage {
        try await read { db in
            let described = try db.authorize(scope).container
            let container = described.number
            let head = try db.head(container: container)
            let since = since ?? .beginning
            var page: CatalogPage
            if try db.isKnown(since, container: container, head: head) {
                page = try db.page(container: container, since: since, head: head, limit: limit)
            } else {
                page = CatalogPage(position: .beginning, isUnknownPosition: true, head: head, container: container)
            }
            page.packages = described.info.packages
            return page
        }
    }

    package func children(
        of folders: [ItemID],
        after: Name?,
        limit: Int,
        _ scope: Scope
    ) async throws(CatalogError) -> ChildrenPage {
        try await read { db in
            let container = try db.authorize(scope).container.number
            var page = ChildrenPage()
            var bytes = 0
            for (index, folder) in folders.enumerated() {
                let start = index == 0 ? after : nil
                if start == nil {
                    let values: [SQLValue] = [.integer(container), .identifier(folder)]
                    _ = try db.append(announcedSQL, values, container, &page.entries, &bytes)
                }
                let before = page.entries.count
                // However long the announced ones are: a page that brought the asker no further would be asked for again for ever.
                let least = index == 0 ? 1 : 0
                let room = max(least, limit - before)
                let isWhole =
                    try db.append(
                        childrenSQL,
                        [
                            .integer(container), .identifier(folder), .blob(start?.bytes ?? []),
                            .integer(Int64(room + 1)),
                        ],
                        container,
                        &page.entries,
                        &bytes,
                        least: least,
                        room: room
                    )
                guard isWhole else {
                    page.last = page.entries.count > before ? page.entries.last?.item.place.name : start
                    break
                }
                page.completeCount += 1
            }
            return page
        }
    }

    package func versions(_ item: ItemID, _ scope: Scope) async throws(CatalogError) -> [ItemVersion] {
        try await read { db in
            let container = try db.authorize(scope).container.number
            guard try db.exists("SELECT 1 FROM items WHERE container = ? AND id = ?", [container, item.blob]) else {
                throw CatalogError.noSuchItem(item)
            }
            let sql = """
                SELECT \(ItemRows.revisionColumns) FROM \(ItemRows.revisionsOfItem)
                WHERE container = ? AND item = ? AND kind <> \(ItemRows.discardedKind) AND NOT (kind = 2 AND unwanted)
                ORDER BY kind, edited DESC, id LIMIT \(ItemVersion.listed)
                """
            return try db.rows(sql, [.integer(container), .identifier(item)]) { try ItemRows.revision($0).version }
        }
    }

    package func deleted(
        _ scope: Scope,
        since: Timestamp,
        after: DeletedPosition?,
        limit: Int
    ) async throws(CatalogError) -> DeletedPage {
        try await read { db in
            let container = try db.authorize(scope).container.number
            return try db.deletedPage(container: container, since: since, after: after, limit: limit)
        }
    }

    package func manifests(
        _ contents: [ContentID],
        limit: Int,
        _ scope: Scope
    ) async throws(CatalogError) -> [Manifest?] {
        try await read { db in
            let container = try db.authorize(scope).container.number
            var bytes: Int64 = 0
            for content in contents { bytes += try db.manifestBytes(of: content, container: container) }
            guard bytes <= limit else { throw CatalogError.tooMuch(bytes: bytes, limit: limit) }
            return try contents.map { try db.manifest(of: $0, container: container) }
        }
    }

    package func wholeness(
        _ revisions: [(item: ItemID, revision: RevisionID)],
        _ scope: Scope
    ) async throws(CatalogError) -> [Wholeness] {
        let hasPack = hasPack
        return try await read { db in
            let container = try db.authorize(scope).container.number
            var contents: [RevisionID: ContentID] = [:]
            var bytes: [ContentID: Int64] = [:]
            for (item, revision) in revisions where contents[revision] == nil {
                guard let content = try db.content(of: revision, item, container: container) else { continue }
                contents[revision] = content
                bytes[content] = try db.manifestBytes(of: content, container: container)
            }
            let sum = bytes.values.reduce(0, +)
            guard sum <= Wholeness.manifestBytes || bytes.count == 1 else {
                throw CatalogError.tooMuch(bytes: sum, limit: Int(Wholeness.manifestBytes))
            }
            // Each content once.
            var known: [ContentID: Wholeness] = [:]
            for content in bytes.keys { known[content] = try db.wholeness(of: content, container: container, hasPack) }
            return try revisions.map { item, revision in
                let content = try db.content(of: revision, item, container: container)
                return content.flatMap { known[$0] } ?? .unknown
            }
        }
    }
}

extension Database {
    /// Whether the position is one that this catalogue gave out. One in the middle of a commit has the hash of its commit.
    fileprivate func isKnown(_ position: LogPosition, container: Int64, head: LogPosition) throws -> Bool {
        if position == .beginning { return true }
        guard position.counter > 0, position.counter <= head.counter else { return false }
        return try hash(at: position.counter, container: container) == position.hash
    }

    private func hash(at counter: UInt64, container: Int64) throws -> [UInt8]? {
        let sql = "SELECT hash FROM log WHERE container = ? AND position >= ? ORDER BY position LIMIT 1"
        return try first(sql, [container, Int64(bitPattern: counter)])?.bytes(0)
    }

    fileprivate func page(container: Int64, since: LogPosition, head: LogPosition, limit: Int) throws -> CatalogPage {
        var page = CatalogPage(position: head, head: head, container: container)
        var bytes = 0
        var isCut = false
        let start = SQLValue.integer(Int64(bitPattern: since.counter))
        try step(pageSQL, [.integer(container), start, .integer(Int64(limit + 1))]) { row in
            guard page.entries.count < limit, bytes < CatalogPage.byteLimit else {
                isCut = true
                return false
            }
            page.entries.append(try entry(row, container, &bytes))
            return true
        }
        if isCut, let last = page.entries.last {
            page.hasMore = true
            let counter = last.item.position
            page.position = LogPosition(counter: counter, hash: try hash(at: counter, container: container) ?? [])
        }
        return page
    }

    private func entry(_ row: SQLRow, _ container: Int64, _ bytes: inout Int) throws -> CatalogPage.Entry {
        var (item, conflicts) = try ItemRows.item(row)
        if conflicts > 0 { item.conflicts = try ItemRows.conflicts(of: item.id, container: container, self) }
        let manifest = try row.manifest(ItemRows.count)
        let entry = CatalogPage.Entry(item: item, manifest: manifest)
        bytes += entry.byteCount
        return entry
    }

    /// False if there is more than the page takes.
    /// - Parameter least: so many go into the page, however long it is by then.
    fileprivate func append(
        _ sql: String,
        _ values: [SQLValue],
        _ container: Int64,
        _ entries: inout [CatalogPage.Entry],
        _ bytes: inout Int,
        least: Int = 0,
        room: Int = .max
    ) throws -> Bool {
        var told = 0
        var isWhole = true
        try step(sql, values) { row in
            guard told < room, bytes < CatalogPage.byteLimit || told < least else {
                isWhole = false
                return false
            }
            entries.append(try entry(row, container, &bytes))
            told += 1
            return true
        }
        return isWhole
    }

    fileprivate func deletedPage(
        container: Int64,
        since: Timestamp,
        after: DeletedPosition?,
        limit: Int
    ) throws -> DeletedPage {
        var folders = FolderPaths()
        func place(of folder: ItemID) throws -> Place? {
            let sql = "SELECT parent, name FROM items WHERE container = ? AND id = ?"
            guard let row = try first(sql, [container, folder.blob]) else { return nil }
            return Place(parent: try row.identifier(0), name: try row.name(1))
        }
        var page = DeletedPage()
        var bytes = 0
        let after = after ?? DeletedPosition(deleted: Timestamp(nanoseconds: .max), position: UInt64(Int64.max))
        let start: [SQLValue] = [
            .integer(container), .integer(since.nanoseconds), .integer(after.deleted.nanoseconds),
            .integer(Int64(bitPattern: after.position)), .integer(Int64(limit + 1)),
        ]
        try step(deletedSQL, start) { row in
            guard page.items.count < limit, bytes < CatalogPage.byteLimit else {
                page.hasMore = true
                return false
            }
            let item = try ItemRows.item(row).item
            let deleted = DeletedItem(
                item: item,
                path: try folders.path(of: item.place, folder: place),
                deleted: row.time(ItemRows.count),
                device: row.text(ItemRows.count + 1)
            )
            bytes += deleted.byteCount
            page.items.append(deleted)
            return true
        }
        return page
    }

    fileprivate func manifest(of content: ContentID, container: Int64) throws -> Manifest? {
        try first("SELECT manifest FROM contents WHERE container = ? AND id = ?", [container, content.blob])?.manifest(
            0
        )
    }

    fileprivate func manifestBytes(of content: ContentID, container: Int64) throws -> Int64 {
        let sql = "SELECT LENGTH(manifest) FROM contents WHERE container = ? AND id = ?"
        return try first(sql, [container, content.blob])?.optional(0) ?? 0
    }

    fileprivate func content(of revision: RevisionID, _ item: ItemID, container: Int64) throws -> ContentID? {
        let sql = "SELECT content FROM revisions WHERE container = ? AND id = ? AND item = ?"
        return try first(sql, [container, revision.blob, item.blob])?.digest(0)
    }

    fileprivate func wholeness(
        of content: ContentID,
        container: Int64,
        _ hasPack: @Sendable (UInt64, UInt64) -> Bool
    ) throws -> Wholeness {
        guard let manifest = try manifest(of: content, container: container) else { return .unknown }
        let lookup = try ChunkLookup(self, container: container)
        var packs: [UInt64: UInt64] = [:]
        for entry in manifest.entries {
            guard let record = try lookup(entry.chunk), hasPack(record.pack, record.end) else {
                return .unknown
            }
            packs[record.pack] = max(packs[record.pack] ?? 0, record.end)
        }
        return Wholeness(isKnown: true, packs: packs)
    }
}

/// Longer manifests are not even read here.
private let itemsSQL = """
    SELECT \(ItemRows.columns.split(separator: ", ").map { "items.\($0)" }.joined(separator: ", ")),
        CASE WHEN LENGTH(contents.manifest) <= \(CatalogPage.manifestByteLimit) THEN contents.manifest END
    FROM items LEFT JOIN contents ON contents.container = items.container AND contents.id = items.content
    """

private let pageSQL = itemsSQL + " WHERE items.container = ? AND items.position > ? ORDER BY items.position LIMIT ?"

private let childrenSQL =
    itemsSQL + """
         WHERE items.container = ? AND items.parent = ? AND items.name > ? AND items.deleted IS NULL AND items.announced = 0
        ORDER BY items.name LIMIT ?
        """

/// The order is that of the log. The sign keeps SQLite from walking through all of it for that: it sorts the few that there are.
private let announcedSQL =
    itemsSQL + """
         WHERE items.container = ? AND items.parent = ? AND items.deleted IS NULL AND items.announced = 1
        ORDER BY +items.position
        """

private let deletedSQL = """
    SELECT \(ItemRows.columns), deleted, deleted_by FROM items
    WHERE container = ? AND deleted IS NOT NULL AND deleted >= ? AND (deleted, position) < (?, ?) AND announced = 0
    ORDER BY deleted DESC, position DESC LIMIT ?
    """
