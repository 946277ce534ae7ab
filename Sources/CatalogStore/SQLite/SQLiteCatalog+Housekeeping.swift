package import CatalogModel
internal import GRDB
package import Reconciliation
internal import SQLiteRows
package import UbiquityModel

/// What is kept no longer.
///
/// 1. A revision that is discarded keeps its row, with which others are compared. If no other one has its content, the content's
///    manifest goes, and its chunks become candidates.
/// 2. Candidates are compared with all manifests of the container. This takes many transactions: a commit that names a candidate takes it
///    off the list by itself, so what was not found in any manifest, and is still on the list, is named by nobody.
/// 3. Those that nobody can rely on any more go.
extension SQLiteCatalog {
    package func discardVersions(
        _ rules: RetentionRules,
        after: ItemPosition?,
        now: Timestamp
    ) async throws(CatalogError) -> HousekeepingPage<ItemPosition> {
        try await write { db in
            var page = HousekeepingPage<ItemPosition>()
            var chunks = 0
            let items = try db.itemsWithSavedVersions(after: after)
            for position in items {
                let saved = try db.savedVersions(of: position)
                for revision in rules.discarded(among: saved, now: now) {
                    if chunks > Self.chunksPerTransaction {
                        // The next step goes on with the rest of this item: what was discarded is no saved version any more.
                        page.next = page.next ?? after ?? ItemPosition.beginning
                        return page
                    }
                    chunks += try db.discard(revision, container: position.container, now: now)
                    page.discarded += 1
                }
                page.next = position
            }
            if items.count < HousekeepingSizes.items { page.next = nil }
            return page
        }
    }

    package func discardDeleted(
        in time: Range<Timestamp>,
        after: TombstonePosition?,
        now: Timestamp
    ) async throws(CatalogError) -> HousekeepingPage<TombstonePosition> {
        try await write { db in
            var page = HousekeepingPage<TombstonePosition>()
            var chunks = 0
            let tombstones = try db.tombstones(in: time, after: after)
            for (item, position) in tombstones {
                let sql = """
                    SELECT id FROM \(ItemRows.revisionsOfItem) WHERE container = ? AND item = ? AND kind <> \(ItemRows.discardedKind)
                    """
                let kept: [RevisionID] = try db.rows(sql, [.integer(position.container), .identifier(item)]) {
                    try $0.identifier(0)
                }
                for revision in kept {
                    if chunks > Self.chunksPerTransaction {
                        page.next = page.next ?? after ?? TombstonePosition.beginning
                        return page
                    }
                    chunks += try db.discard(revision, container: position.container, now: now)
                    page.discarded += 1
                }
                page.next = position
            }
            if tombstones.count < HousekeepingSizes.items { page.next = nil }
            return page
        }
    }

    package func collectChunks(
        after: ChunkPosition?,
        now: Timestamp
    ) async throws(CatalogError) -> HousekeepingPage<ChunkPosition> {
        var page = HousekeepingPage<ChunkPosition>()
        let found = try await read { db in try db.candidates(after: after) }
        guard let last = found.chunks.last else { return page }
        page.next = ChunkPosition(container: found.container, chunk: last)
        guard let referred = try await self.referred(among: Set(found.chunks), container: found.container) else {
            page.isDamaged = true
            return page
        }
        let parts = stride(from: 0, to: found.chunks.count, by: Self.chunksPerTransaction).map {
            found.chunks[$0..<min(found.chunks.count, $0 + Self.chunksPerTransaction)]
        }
        for part in parts {
            page.discarded += try await write { db in
                try db.collect(part, referred: referred, container: found.container, now: now)
            }
        }
        return page
    }

    package func notAfter(_ now: Timestamp) async throws(CatalogError) {
        // The longest that any chunk is offered.
        let offered = now.after(ChunkCollection.uploadLifetime)
        try await write { db in
            for (sql, time) in [
                ("UPDATE packs SET emptied = ? WHERE emptied > ?", now),
                ("UPDATE candidates SET offered = ? WHERE offered > ?", offered),
            ] {
                try db.run(sql, [.integer(time.nanoseconds), .integer(time.nanoseconds)] as [SQLValue])
            }
        }
    }

    /// Commits wait for the end of it. One version may have more.
    private static let chunksPerTransaction = 2_000

    /// Those of the chunks that a manifest of the container names; `nil` if one of its manifests is damaged: nobody knows what that names.
    private func referred(
        among candidates: Set<ChunkID>,
        container: Int64
    ) async throws(CatalogError) -> Set<ChunkID>? {
        var referred = Set<ChunkID>()
        var next: ContentID?
        while true {
            let after = next
            let named = try await read { db in try db.named(among: candidates, container: container, after: after) }
            guard let page = named else { return nil }
            referred.formUnion(page.chunks)
            guard let last = page.last else { return referred }
            next = last
        }
    }
}

extension ItemPosition {
    /// Before all items: containers are counted from 1.
    fileprivate static let beginning = ItemPosition(container: 0, item: .root)
}

extension TombstonePosition {
    fileprivate static let beginning = TombstonePosition(
        container: 0,
        deleted: DeletedPosition(deleted: Timestamp(nanoseconds: .min), position: 0)
    )
}

extension Database {
    // MARK: Versions

    fileprivate func itemsWithSavedVersions(after: ItemPosition?) throws -> [ItemPosition] {
        let limit = SQLValue.integer(Int64(HousekeepingSizes.items))
        let values: [SQLValue] =
            if let after { [.integer(after.container), .identifier(after.item), limit] } else { [limit] }
        let sql = """
            SELECT DISTINCT container, item FROM revisions
            WHERE kind = 2\(after == nil ? "" : " AND (container, item) > (?, ?)") AND \(isInUse("revisions.container"))
            ORDER BY container, item LIMIT ?
            """
        return try rows(sql, values) { ItemPosition(container: $0.integer(0), item: try $0.identifier(1)) }
    }

    /// What lies in removed containers goes with them.
    private func isInUse(_ container: String) -> String {
        "(SELECT removed FROM containers WHERE number = \(container)) IS NULL"
    }

    fileprivate func savedVersions(of position: ItemPosition) throws -> [RetainedVersion] {
        let sql = """
            SELECT id, edited, since, resolved, unwanted FROM revisions INDEXED BY revisions_saved
            WHERE container = ? AND item = ? AND kind = 2
            """
        return try rows(sql, [.integer(position.container), .identifier(position.item)]) { row in
            RetainedVersion(
                revision: try row.identifier(0),
                edited: row.time(1),
                since: row.time(2),
                isResolved: row.integer(3) != 0,
                isUnwanted: row.integer(4) != 0
            )
        }
    }

    fileprivate func tombstones(
        in time: Range<Timestamp>,
        after: TombstonePosition?
    ) throws -> [(item: ItemID, position: TombstonePosition)] {
        var result: [(item: ItemID, position: TombstonePosition)] = []
        let sql = """
            SELECT id, deleted, position FROM items
            WHERE container = ? AND deleted IS NOT NULL AND deleted < ? AND (deleted, position) > (?, ?)
            ORDER BY deleted, position LIMIT ?
            """
        for container in try containersInUse(from: after?.container) {
            // Positions begin with 1.
            var start = DeletedPosition(deleted: time.lowerBound, position: 0)
            if let after, after.container == container { start = after.deleted }
            let values: [SQLValue] = [
                .integer(container), .integer(time.upperBound.nanoseconds), .integer(start.deleted.nanoseconds),
                .integer(Int64(bitPattern: start.position)), .integer(Int64(HousekeepingSizes.items - result.count)),
            ]
            result += try rows(sql, values) { row in
                let deleted = DeletedPosition(deleted: row.time(1), position: UInt64(bitPattern: row.integer(2)))
                return (try row.identifier(0), TombstonePosition(container: container, deleted: deleted))
            }
            if result.count >= HousekeepingSizes.items { break }
        }
        return result
    }

    private func containersInUse(from first: Int64?) throws -> [Int64] {
        try rows(
            "SELECT number FROM containers WHERE removed IS NULL AND number >= ? ORDER BY number",
            [.integer(first ?? 1)]
        ) { $0.integer(0) }
    }

    /// The content goes with the last revision that has it.
    /// - Returns: of how many chunks that content was.
    fileprivate func discard(_ revision: RevisionID, container: Int64, now: Timestamp) throws -> Int {
        let key: [SQLValue] = [.integer(container), .identifier(revision)]
        let content = try row("SELECT content FROM revisions WHERE container = ? AND id = ?", key) { row in
            try row.optionalDigest(0) as ContentID?
        }
        guard let content = content ?? nil else { return 0 }
        try run("UPDATE revisions SET kind = \(ItemRows.discardedKind) WHERE container = ? AND id = ?", key)
        let isKept = try exists(
            """
            SELECT 1 FROM revisions INDEXED BY revisions_content
            WHERE container = ? AND content = ? AND kind <> \(ItemRows.discardedKind) LIMIT 1
            """,
            [.integer(container), .blob(content.bytes)]
        )
        guard !isKept else { return 0 }
        let named: [SQLValue] = [.integer(container), .blob(content.bytes)]
        let stored = try row("SELECT manifest FROM contents WHERE container = ? AND id = ?", named) {
            row -> Manifest? in
            try? row.manifest(0)
        }
        guard let stored else { return 0 }
        try run("DELETE FROM contents WHERE container = ? AND id = ?", named)
        // Nobody knows what a damaged one named: that stays. Without it the container's other chunks are collected again.
        guard let manifest = stored else { return 0 }
        for entry in manifest.entries where try isListed(entry.chunk, container: container) {
            try run(
                "INSERT INTO candidates (container, id, offered) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                [.integer(container), .blob(entry.chunk.bytes), .integer(now.nanoseconds)]
            )
        }
        return manifest.entries.count
    }

    // MARK: Chunks

    /// Some of the next container that has any.
    fileprivate func candidates(after: ChunkPosition?) throws -> (container: Int64, chunks: [ChunkID]) {
        let sql =
            "SELECT id FROM candidates WHERE container = ? AND id > ? ORDER BY id LIMIT \(HousekeepingSizes.candidates)"
        for container in try containersInUse(from: after?.container) {
            let start = container == after?.container ? after?.chunk.bytes : nil
            let chunks = try rows(sql, [.integer(container), .blob(start ?? [])]) { row -> ChunkID in
                guard let chunk = try row.optionalDigest(0) as ChunkID? else { throw row.damaged(0) }
                return chunk
            }
            if !chunks.isEmpty { return (container, chunks) }
        }
        return (0, [])
    }

    /// So many bytes of manifests are read at once: as long as readers may keep the log from being written back.
    private static var manifestBytes: Int { 16 * 1024 * 1024 }

    /// The candidates that some manifests name, beginning after that content; the last one's content, or `nil` at the end. Nothing if
    /// one of them is damaged.
    fileprivate func named(
        among candidates: Set<ChunkID>,
        container: Int64,
        after: ContentID?
    ) throws -> (chunks: Set<ChunkID>, last: ContentID?)? {
        var chunks = Set<ChunkID>()
        var last: ContentID?
        var bytes = 0
        var isDamaged = false
        let sql = "SELECT id, manifest FROM contents WHERE container = ? AND id > ? ORDER BY id"
        try step(sql, [.integer(container), .blob(after?.bytes ?? [])]) { row in
            guard let content = try? row.optionalDigest(0) as ContentID?, let manifest = try? row.manifest(1) else {
                isDamaged = true
                return false
            }
            for entry in manifest.entries where candidates.contains(entry.chunk) { chunks.insert(entry.chunk) }
            bytes += 100 + manifest.entries.count * 36
            last = content
            return bytes < Self.manifestBytes
        }
        guard !isDamaged else { return nil }
        return (chunks, last)
    }

    /// - Returns: how many chunks are not here any more.
    fileprivate func collect(
        _ candidates: ArraySlice<ChunkID>,
        referred: Set<ChunkID>,
        container: Int64,
        now: Timestamp
    ) throws -> Int {
        var count = 0
        var bytes: Int64 = 0
        var packs = Set<Int64>()
        let due = now.before(ChunkCollection.answerLifetime)
        for chunk in candidates {
            let key: [SQLValue] = [.integer(container), .blob(chunk.bytes)]
            if referred.contains(chunk) {
                try run("DELETE FROM candidates WHERE container = ? AND id = ?", key)
                continue
            }
            guard let offered = try offered(chunk, container: container), offered <= due else { continue }
            try run("DELETE FROM candidates WHERE container = ? AND id = ?", key)
            let stored = try row("SELECT length, pack FROM chunks WHERE container = ? AND id = ?", key) {
                (length: $0.integer(0), pack: $0.integer(1))
            }
            guard let stored else { continue }
            try run("DELETE FROM chunks WHERE container = ? AND id = ?", key)
            count += 1
            bytes += stored.length
            packs.insert(stored.pack)
        }
        try run("UPDATE containers SET bytes = bytes - ? WHERE number = ?", [.integer(bytes), .integer(container)])
        try noteThinned(packs)
        return count
    }

    func noteThinned(_ packs: Set<Int64>) throws {
        for pack in packs.sorted() {
            try run("INSERT INTO packs (number, moved) VALUES (?, 0) ON CONFLICT DO NOTHING", [.integer(pack)])
        }
    }
}
