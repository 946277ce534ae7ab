package import CatalogModel
internal import GRDB
internal import Reconciliation
internal import SQLiteRows
package import UbiquityModel

extension SQLiteCatalog {
    package func intake(_ chunks: [ChunkSize], _ scope: Scope) async throws(CatalogError) -> Intake {
        try await read { db in
            let (access, container) = try db.authorizeWriting(scope)
            var unknown = Set<ChunkID>()
            var waning = Set<ChunkID>()
            var bytes: Int64 = 0
            for chunk in chunks where !unknown.contains(chunk.chunk) {
                if try db.hasChunk(chunk.chunk, container: container.number) {
                    if try db.offered(chunk.chunk, container: container.number) != nil { waning.insert(chunk.chunk) }
                    continue
                }
                unknown.insert(chunk.chunk)
                bytes += Int64(chunk.length)
            }
            let room = bytes == 0 ? nil : try db.room(account: access.account)
            return Intake(
                container: container,
                unknown: unknown,
                waning: waning,
                isQuotaExceeded: room.map { bytes > $0 } ?? false
            )
        }
    }

    package func addChunks(
        _ chunks: [ChunkRecord],
        renewed: [ChunkID],
        _ scope: Scope,
        now: Timestamp
    ) async throws(CatalogError) {
        try await write { db in
            let (access, container) = try db.authorizeWriting(scope)
            guard let added = try db.add(chunks, container: container.number, account: access.account) else {
                throw CatalogError.quotaExceeded
            }
            let waning = try renewed.filter { try db.offered($0, container: container.number) != nil }
            try db.offer(added + waning, container: container.number, now: now)
        }
    }

    package func missing(_ chunks: [ChunkID], _ scope: Scope, now: Timestamp) async throws(CatalogError) -> [Int] {
        try await read { db in
            let container = try db.authorize(scope).container.number
            var result = [Int]()
            for (index, chunk) in chunks.enumerated() {
                let isOffered = try db.offered(chunk, container: container).map { $0 > now } ?? true
                if try !isOffered || !db.hasChunk(chunk, container: container) { result.append(index) }
            }
            return result
        }
    }

    package func chunks(_ chunks: [ChunkID], _ scope: Scope) async throws(CatalogError) -> [ChunkRecord?] {
        try await read { db in
            let container = try db.authorize(scope).container.number
            let sql = "SELECT length, compressed, pack, start, record FROM chunks WHERE container = ? AND id = ?"
            return try chunks.map { chunk in
                try db.row(sql, [.integer(container), .blob(chunk.bytes)]) { try ChunkRecord(chunk, $0) }
            }
        }
    }
}

extension ChunkRecord {
    /// Of a row that begins with length, compressed, pack, start, record.
    init(_ chunk: ChunkID, _ row: SQLRow) throws {
        self.init(
            chunk: chunk,
            length: try row.exactly(0),
            isCompressed: row.integer(1) != 0,
            pack: UInt64(bitPattern: row.integer(2)),
            offset: UInt64(bitPattern: row.integer(3)),
            recordLength: try row.exactly(4)
        )
    }
}

extension Database {
    func hasChunk(_ chunk: ChunkID, container: Int64) throws -> Bool {
        try exists(
            "SELECT 1 FROM chunks WHERE container = ? AND id = ?",
            [.integer(container), .blob(chunk.bytes)]
        )
    }

    /// Until when devices are told that the chunk is here; `nil` unless nothing refers to it.
    func offered(_ chunk: ChunkID, container: Int64) throws -> Timestamp? {
        try row(
            "SELECT offered FROM candidates WHERE container = ? AND id = ?",
            [.integer(container), .blob(chunk.bytes)]
        ) { $0.time(0) }
    }

    /// Nothing refers to them, yet: they are offered for a while.
    func offer(_ chunks: [ChunkID], container: Int64, now: Timestamp) throws {
        let offered = now.after(ChunkCollection.uploadLifetime).nanoseconds
        for chunk in chunks {
            try run(
                "INSERT OR REPLACE INTO candidates (container, id, offered) VALUES (?, ?, ?)",
                [.integer(container), .blob(chunk.bytes), .integer(offered)]
            )
        }
    }

    /// Records the chunks. Returns the new ones; `nil`, and nothing is recorded, if they would pass the account's quota.
    func add(_ chunks: [ChunkRecord], container: Int64, account: Int64) throws -> [ChunkID]? {
        guard !chunks.isEmpty else { return [] }
        var added: [ChunkID]? = []
        try inSavepoint {
            var bytes: Int64 = 0
            let sql = """
                INSERT INTO chunks (container, id, length, compressed, pack, start, record) VALUES (?, ?, ?, ?, ?, ?, ?)
                ON CONFLICT DO NOTHING
                """
            for chunk in chunks {
                try run(
                    sql,
                    [
                        .integer(container), .blob(chunk.chunk.bytes), .integer(Int64(chunk.length)),
                        .integer(chunk.isCompressed ? 1 : 0), .integer(Int64(bitPattern: chunk.pack)),
                        .integer(Int64(bitPattern: chunk.offset)), .integer(Int64(chunk.recordLength)),
                    ]
                )
                if changesCount > 0 {
                    bytes += Int64(chunk.length)
                    added?.append(chunk.chunk)
                }
            }
            if bytes > 0, let room = try room(account: account), bytes > room {
                added = nil
                return .rollback
            }
            try run("UPDATE containers SET bytes = bytes + ? WHERE number = ?", [bytes, container])
            return .commit
        }
        return added
    }
}
