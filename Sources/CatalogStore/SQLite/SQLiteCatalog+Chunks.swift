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
            let lookup = try ChunkLookup(db, container: container.number)
            var unknown = Set<ChunkID>()
            var waning = Set<ChunkID>()
            var bytes: Int64 = 0
            for chunk in chunks where !unknown.contains(chunk.chunk) {
                let known = try lookup(chunk.chunk)
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
            try db.offer(added.chunks + waning, container: number, now: time)
        }
    }

    package func missing(_ chunks: [ChunkID], _ scope: Scope, now: Timestamp) async throws(CatalogError) -> [Int] {
        let hasPack = hasPack
        return try await read { db in
            let container = try db.authorize(scope).container.number
            let lookup = try ChunkLookup(db, container: container)
            var result = [Int]()
            for (index, chunk) in chunks.enumerated() {
                let isHere = try lookup(chunk).map { hasPack($0.pack, $0.end) } ?? false
                // Mostly it is not, and nothing more is to be looked up.
                let remains = try isHere && (db.offered(chunk, container: container).map { $0 > now } ?? true)
                if !remains { result.append(index) }
            }
            return result
        }
    }

    package func chunks(_ chunks: [ChunkID], _ scope: Scope) async throws(CatalogError) -> [ChunkRecord?] {
        try await read { db in
            let container = try db.authorize(scope).container.number
            let lookup = try ChunkLookup(db, container: container)
            return try chunks.map { try lookup($0) }
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

    /// The values of a row: container, id, length, compressed, pack, start, record.
    fileprivate func bind(container: Int64, _ row: inout ValueBinder) {
        row.append(container)
        row.append(chunk)
        row.append(Int64(length))
        row.append(isCompressed ? 1 : 0)
        row.append(Int64(bitPattern: pack))
        row.append(Int64(bitPattern: offset))
        row.append(Int64(recordLength))
    }
}

/// Where chunks lie, one after the other; `nil` for unknown ones. Not to be kept longer than the transaction.
struct ChunkLookup {
    private let statement: PreparedStatement
    private let container: Int64

    init(_ db: Database, container: Int64) throws {
        statement = try db.prepared(
            "SELECT length, compressed, pack, start, record FROM chunks WHERE container = ? AND id = ?"
        )
        self.container = container
    }

    func callAsFunction(_ chunk: ChunkID) throws -> ChunkRecord? {
        try statement.row {
            $0.append(container)
            $0.append(chunk)
        } decode: {
            try ChunkRecord(chunk, $0)
        }
    }
}

/// Chunks that were new to a container.
struct AddedChunks {
    /// In the order in which they came.
    var chunks: [ChunkID] = []
    /// Their rows, but for those that were written over since.
    var records: [ChunkID: ChunkRecord] = [:]
}

extension Database {
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
        guard !chunks.isEmpty else { return }
        let offered = now.after(ChunkCollection.uploadLifetime).nanoseconds
        let put = try prepared("INSERT OR REPLACE INTO candidates (container, id, offered) VALUES (?, ?, ?)")
        for chunk in chunks {
            try put.run {
                $0.append(container)
                $0.append(chunk)
                $0.append(offered)
            }
        }
    }

    /// Records the chunks, also where those lie now whose packs are gone. Returns the new ones; `nil`, and nothing is recorded, if they
    /// would pass the account's quota. Packs of those that are known already have got bytes that nothing leads to.
    func add(
        _ chunks: [ChunkRecord],
        container: Int64,
        account: Int64,
        hasPack: @Sendable (UInt64, UInt64) -> Bool
    ) throws -> AddedChunks? {
        guard !chunks.isEmpty else { return AddedChunks() }
        var added = AddedChunks()
        var isOverQuota = false
        try inSavepoint {
            var bytes: Int64 = 0
            var thinned = Set<Int64>()
            let lookup = try ChunkLookup(self, container: container)
            let insert = try prepared(
                """
                INSERT INTO chunks (container, id, length, compressed, pack, start, record) VALUES (?, ?, ?, ?, ?, ?, ?)
                ON CONFLICT DO NOTHING
                """
            )
            for chunk in chunks {
                try insert.run { chunk.bind(container: container, &$0) }
                if changesCount > 0 {
                    bytes += Int64(chunk.length)
                    added.chunks.append(chunk.chunk)
                    added.records[chunk.chunk] = chunk
                } else if let known = try lookup(chunk.chunk), hasPack(known.pack, known.end) {
                    // Two devices have sent it at the same time.
                    if known != chunk { thinned.insert(Int64(bitPattern: chunk.pack)) }
                } else {
                    try moveLost(chunk, container: container)
                    // It may have come twice, and be new.
                    added.records[chunk.chunk] = nil
                }
            }
            try noteThinned(thinned)
            if bytes > 0, let room = try room(account: account), bytes > room {
                isOverQuota = true
                return .rollback
            }
            try run("UPDATE containers SET bytes = bytes + ? WHERE number = ?", [bytes, container])
            return .commit
        }
        return isOverQuota ? nil : added
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
