package import CatalogModel
internal import GRDB
internal import Reconciliation
internal import SQLiteRows
package import UbiquityModel

extension SQLiteCatalog {
    package func intake(_ chunks: [ChunkSize], _ scope: Scope) async throws(CatalogError) -> Intake {
        let hasPack = hasPack
        return try await read { db in
            let (access, container) = try db.authorizeWriting(scope)
            var unknown = Set<ChunkID>()
            var waning = Set<ChunkID>()
            var bytes: Int64 = 0
            for chunk in chunks where !unknown.contains(chunk.chunk) {
                let known = try db.chunk(chunk.chunk, container: container.number)
                if let known, hasPack(known.pack, known.end) {
                    if try db.offered(chunk.chunk, container: container.number) != nil { waning.insert(chunk.chunk) }
                    continue
                }
                unknown.insert(chunk.chunk)
                // One that is listed, and whose pack is gone, counts already: else nobody could bring it back.
                if known == nil { bytes += Int64(chunk.length) }
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
        let (time, hasPack) = (kept(now), hasPack)
        try await write { db in
            let (access, container) = try db.authorizeWriting(scope)
            let number = container.number
            guard let added = try db.add(chunks, container: number, account: access.account, hasPack: hasPack) else {
                throw CatalogError.quotaExceeded
            }
            let waning = try renewed.filter { try db.offered($0, container: number) != nil }
            try db.offer(added + waning, container: number, now: time)
        }
    }

    package func missing(_ chunks: [ChunkID], _ scope: Scope, now: Timestamp) async throws(CatalogError) -> [Int] {
        let hasPack = hasPack
        return try await read { db in
            let container = try db.authorize(scope).container.number
            var result = [Int]()
            for (index, chunk) in chunks.enumerated() {
                let isOffered = try db.offered(chunk, container: container).map { $0 > now } ?? true
                if try !isOffered || !db.hasChunk(chunk, container: container, hasPack) { result.append(index) }
            }
            return result
        }
    }

    package func chunks(_ chunks: [ChunkID], _ scope: Scope) async throws(CatalogError) -> [ChunkRecord?] {
        try await read { db in
            let container = try db.authorize(scope).container.number
            return try chunks.map { chunk in try db.chunk(chunk, container: container) }
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
    /// Whether it can be had.
    fileprivate func hasChunk(
        _ chunk: ChunkID,
        container: Int64,
        _ hasPack: @Sendable (UInt64, UInt64) -> Bool
    ) throws -> Bool {
        try self.chunk(chunk, container: container).map { hasPack($0.pack, $0.end) } ?? false
    }

    func chunk(_ chunk: ChunkID, container: Int64) throws -> ChunkRecord? {
        try row(
            "SELECT length, compressed, pack, start, record FROM chunks WHERE container = ? AND id = ?",
            [.integer(container), .blob(chunk.bytes)]
        ) { try ChunkRecord(chunk, $0) }
    }

    /// Whether there is a row of it, wherever that leads to.
    func isListed(_ chunk: ChunkID, container: Int64) throws -> Bool {
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

    /// Records the chunks, also where those lie now whose packs are gone. Returns the new ones; `nil`, and nothing is recorded, if they
    /// would pass the account's quota. Packs of those that are known already have got bytes that nothing leads to.
    func add(
        _ chunks: [ChunkRecord],
        container: Int64,
        account: Int64,
        hasPack: @Sendable (UInt64, UInt64) -> Bool
    ) throws -> [ChunkID]? {
        guard !chunks.isEmpty else { return [] }
        var added: [ChunkID]? = []
        var thinned = Set<Int64>()
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
                } else if let known = try self.chunk(chunk.chunk, container: container),
                    hasPack(known.pack, known.end)
                {
                    // Two devices have sent it at the same time.
                    if known != chunk { thinned.insert(Int64(bitPattern: chunk.pack)) }
                } else {
                    try moveLost(chunk, container: container)
                }
            }
            try noteThinned(thinned)
            if bytes > 0, let room = try room(account: account), bytes > room {
                added = nil
                return .rollback
            }
            try run("UPDATE containers SET bytes = bytes + ? WHERE number = ?", [bytes, container])
            return .commit
        }
        return added
    }

    /// The length of a chunk goes with its id: what counts towards the quota stays the same.
    private func moveLost(_ chunk: ChunkRecord, container: Int64) throws {
        try run(
            "UPDATE chunks SET compressed = ?, pack = ?, start = ?, record = ? WHERE container = ? AND id = ?",
            [
                .integer(chunk.isCompressed ? 1 : 0), .integer(Int64(bitPattern: chunk.pack)),
                .integer(Int64(bitPattern: chunk.offset)), .integer(Int64(chunk.recordLength)),
                .integer(container), .blob(chunk.chunk.bytes),
            ]
        )
    }
}
