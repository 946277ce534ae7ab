package import CatalogModel
internal import GRDB
internal import SQLiteRows
internal import Synchronization
package import UbiquityModel

/// The catalogue in one SQLite file: WAL, synced at every commit (`synchronous=FULL`), readers beside the one writer.
///
/// Several processes may have it open (`ubiquity account` beside a running server).
package final class SQLiteCatalog: Catalog {
    private let pool: DatabasePool
    private let writer: GroupWriter
    /// Whether a pack is there, up to that place in bytes. One may be gone, or shorter, where catalogue and packs are backups of different
    /// days: what lay in it is missing then.
    let hasPack: @Sendable (_ pack: UInt64, _ end: UInt64) -> Bool
    /// In nanoseconds: see `keepTimes(from:)`.
    private let earliest = Atomic<Int64>(.min)

    /// Opens the file, or makes it. The folder must exist.
    package init(
        path: String,
        hasPack: @escaping @Sendable (_ pack: UInt64, _ end: UInt64) -> Bool = { _, _ in true }
    ) throws(CatalogError) {
        self.hasPack = hasPack
        do {
            pool = try DatabaseRoom.opening(path) { try Self.open(path) }
        } catch {
            throw CatalogError(error)
        }
        writer = GroupWriter(pool: pool)
    }

    private static func open(_ path: String) throws -> DatabasePool {
        SQLiteSettings.apply()
        var configuration = Configuration()
        configuration.label = "catalog"
        configuration.busyMode = .timeout(30)
        configuration.prepareDatabase { db in try db.execute(sql: "PRAGMA temp_store = MEMORY") }
        let pool = try DatabasePool(path: path, configuration: configuration)
        try pool.writeWithoutTransaction { db in
            // GRDB sets NORMAL, which may lose the last commits with the power. What was answered must be there.
            try db.execute(sql: "PRAGMA synchronous = FULL")
            // In KiB, for the writer alone: it looks up random ids all the time.
            try db.execute(sql: "PRAGMA cache_size = -32768")
            // In pages: fewer checkpoints for imports of many items.
            try db.execute(sql: "PRAGMA wal_autocheckpoint = 4000")
            try Schema.migrate(db)
        }
        return pool
    }

    /// Closes the file. To be called when nothing is under way any more.
    package func close() throws(CatalogError) {
        do { try pool.close() } catch { throw CatalogError(error) }
    }

    func read<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws(CatalogError) -> Value {
        do { return try await pool.read(body) } catch { throw CatalogError(error) }
    }

    func write<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws(CatalogError) -> Value {
        do { return try await writer.write(body) } catch { throw CatalogError(error) }
    }

    /// What is replaced or deleted is recorded as of then, if the clock is behind that, as that of a machine may be that was without
    /// power: it would be taken for old, and kept no longer, when the clock is right again.
    package func keepTimes(from time: Timestamp) { earliest.store(time.nanoseconds, ordering: .relaxed) }

    /// From when on the age of what is replaced or deleted now counts.
    func kept(_ now: Timestamp) -> Timestamp {
        max(now, Timestamp(nanoseconds: earliest.load(ordering: .relaxed)))
    }

    package func setting(_ name: String) async throws(CatalogError) -> String? {
        try await read { db in
            try String.fetchOne(db, sql: "SELECT value FROM settings WHERE name = ?", arguments: [name])
        }
    }

    package func set(_ name: String, to value: String) async throws(CatalogError) {
        try await write { db in
            try db.run("INSERT OR REPLACE INTO settings (name, value) VALUES (?, ?)", [name, value])
        }
    }
}

extension CatalogError {
    init(_ error: any Error) {
        switch error {
        case let error as CatalogError: self = error
        case is CancellationError: self = .cancelled
        case let error as DatabaseError: self = Self(error)
        default: self = .failed("\(error)")
        }
    }

    private init(_ error: DatabaseError) {
        // The shared memory of the WAL lies on the same disk: it reports a full one in its own way.
        if error.resultCode == .SQLITE_FULL || error.extendedResultCode == .SQLITE_IOERR_SHMSIZE {
            self = .noSpace
        } else {
            self = .failed(error.message ?? error.description)
        }
    }
}
