package import CatalogModel
internal import GRDB
internal import SQLiteRows
package import UbiquityModel

extension SQLiteCatalog: HousekeptCatalog {
    package func discardContainers(removedBefore until: Timestamp) async throws(CatalogError) -> Bool {
        try await write { db in
            let sql = "SELECT number FROM containers WHERE removed < ? ORDER BY number LIMIT 1"
            guard let container = try db.row(sql, [.integer(until.nanoseconds)], { $0.integer(0) }) else {
                return false
            }
            if try !db.forgetSome(ofContainer: container) {
                try db.run("DELETE FROM containers WHERE number = ?", [.integer(container)])
            }
            return true
        }
    }

    package func thinnedPacks(now: Timestamp) async throws(CatalogError) -> [PackUse] {
        let noted = try await read { db in try db.thinnedPacks() }
        let packs = noted.map { pack in
            var pack = pack
            pack.emptied = pack.liveBytes > 0 ? nil : pack.emptied ?? now
            return pack
        }
        let changed = zip(noted, packs).filter { $0.emptied != $1.emptied }.map { _, pack in pack }
        guard !changed.isEmpty else { return packs }
        do throws(CatalogError) {
            try await write { db in
                for pack in changed {
                    try db.run(
                        "UPDATE packs SET emptied = ? WHERE number = ?",
                        [
                            pack.emptied.map { .integer($0.nanoseconds) } ?? .null,
                            .integer(Int64(bitPattern: pack.pack)),
                        ]
                    )
                }
            }
        } catch {
            // Those whose time has come make room when they go; the others' time begins when there is some.
            guard error == .noSpace else { throw error }
        }
        return packs
    }

    package func chunks(in pack: UInt64) async throws(CatalogError) -> [PackedChunk] {
        try await chunks(in: [pack])
    }

    package func chunks(in packs: [UInt64]) async throws(CatalogError) -> [PackedChunk] {
        try await read { db in
            let sql = """
                SELECT length, compressed, pack, start, record, container, id FROM chunks
                WHERE pack IN (\(packs.map { _ in "?" }.joined(separator: ", "))) ORDER BY pack, start
                """
            return try db.rows(sql, packs.map { SQLValue.integer(Int64(bitPattern: $0)) }) { row in
                guard let chunk = try row.optionalDigest(6) as ChunkID? else { throw row.damaged(6) }
                return PackedChunk(container: row.integer(5), record: try ChunkRecord(chunk, row))
            }
        }
    }

    package func moveChunks(_ moves: [(chunk: PackedChunk, to: ChunkRecord)]) async throws(CatalogError) {
        try await write { db in
            for (chunk, to) in moves {
                let former = chunk.record
                try db.run(
                    """
                    UPDATE chunks SET pack = ?, start = ?, record = ?
                    WHERE container = ? AND id = ? AND pack = ? AND start = ?
                    """,
                    [
                        .integer(Int64(bitPattern: to.pack)), .integer(Int64(bitPattern: to.offset)),
                        .integer(Int64(to.recordLength)), .integer(chunk.container), .blob(former.chunk.bytes),
                        .integer(Int64(bitPattern: former.pack)), .integer(Int64(bitPattern: former.offset)),
                    ]
                )
            }
            for pack in Set(moves.map(\.chunk.record.pack)) {
                try db.run(
                    "INSERT INTO packs (number, moved) VALUES (?, 1) ON CONFLICT DO UPDATE SET moved = 1",
                    [.integer(Int64(bitPattern: pack))]
                )
            }
        }
    }

    package func notEmptied(_ pack: UInt64) async throws(CatalogError) {
        try await write { db in
            try db.run("UPDATE packs SET emptied = NULL WHERE number = ?", [.integer(Int64(bitPattern: pack))])
        }
    }

    package func forgetPack(_ pack: UInt64) async throws(CatalogError) {
        try await write { db in
            try db.run("DELETE FROM packs WHERE number = ?", [.integer(Int64(bitPattern: pack))])
        }
    }
}

extension Database {
    fileprivate func thinnedPacks() throws -> [PackUse] {
        let thinned = try rows("SELECT number, emptied, moved FROM packs ORDER BY number") { row in
            PackUse(
                pack: UInt64(bitPattern: row.integer(0)),
                liveBytes: 0,
                emptied: row.isNull(1) ? nil : row.time(1),
                isMoved: row.integer(2) != 0
            )
        }
        guard !thinned.isEmpty else { return [] }
        var live: [UInt64: Int64] = [:]
        let sql = "SELECT pack, SUM(record) FROM chunks WHERE pack IN (SELECT number FROM packs) GROUP BY pack"
        for (pack, bytes) in try rows(sql, [], { (UInt64(bitPattern: $0.integer(0)), $0.integer(1)) }) {
            live[pack] = bytes
        }
        return thinned.map { pack in
            var pack = pack
            pack.liveBytes = live[pack.pack] ?? 0
            return pack
        }
    }

    /// So many rows of a removed container go in one transaction.
    private static var rowsAtOnce: Int { 2_000 }

    /// - Returns: whether there was anything.
    fileprivate func forgetSome(ofContainer container: Int64) throws -> Bool {
        let limited = "WHERE container = ? LIMIT \(Self.rowsAtOnce)"
        try noteThinned(
            Set(try rows("SELECT pack FROM chunks \(limited)", [.integer(container)]) { $0.integer(0) })
        )
        let tables = [
            ("chunks", "id"), ("contents", "id"), ("revisions", "id"), ("operations", "id"), ("candidates", "id"),
            ("items", "rowid"), ("log", "position"),
        ]
        for (table, key) in tables {
            try run(
                "DELETE FROM \(table) WHERE container = ? AND \(key) IN (SELECT \(key) FROM \(table) \(limited))",
                [.integer(container), .integer(container)]
            )
            if changesCount > 0 { return true }
        }
        return false
    }
}
