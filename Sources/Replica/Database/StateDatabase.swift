internal import GRDB
internal import Glibc
internal import SQLiteRows
internal import Synchronization
internal import UbiquityModel

/// The device's knowledge of one container: the remote and the synced tree, and what else must survive a restart.
///
/// Synchronous and safe from any thread, but never to be called on Swift's cooperative pool. WAL with `synchronous =
/// NORMAL`: after a power loss the newest transactions may be missing, never a part of one; what is missing is found
/// again by comparing the trees. Writers queue; readers see the last committed state and do not wait for them.
package final class StateDatabase: Sendable {
    private let pool: DatabasePool
    /// As its container is made: that never changes.
    package let isCaseInsensitive: Bool
    private let readers: ReaderStack
    private let burst = ReadingBurst()
    let awaited = AwaitedRows()
    /// Rows of folders since the last change of any: each item that lies in one asks for it. A leaf in the order of locks.
    private let folders = Mutex(FolderRows())
    /// Contents of which was written what they are made of before any item named them, since unused ones were last looked for. A leaf in
    /// the order of locks.
    let unnamedContents = Mutex(Set<ContentID>())

    private struct FolderRows {
        static let limit = 1000

        /// Of what was written last; what was read before and is kept after a change would be old.
        var version: UInt64 = 0
        var rows: [ItemID: SyncedItem] = [:]
    }

    package init(path: String, isCaseInsensitive: Bool = false) throws(ReplicaError) {
        self.isCaseInsensitive = isCaseInsensitive
        SQLiteSettings.apply()
        var configuration = Configuration()
        configuration.label = "state database"
        configuration.foreignKeysEnabled = false
        configuration.maximumReaderCount = 3
        // Another process may just be closing it.
        configuration.busyMode = .timeout(5)
        configuration.prepareDatabase { database in
            try database.execute(sql: "PRAGMA synchronous = NORMAL")
            // 32 MiB a connection; a negative number counts KiB.
            try database.execute(sql: "PRAGMA cache_size = -32768")
            // 64 MiB of log until it is written back: pages that many transactions touch, those of the ids, are written back once.
            try database.execute(sql: "PRAGMA wal_autocheckpoint = 16384")
            try database.execute(sql: "PRAGMA journal_size_limit = 67108864")
        }
        do {
            pool = try DatabaseRoom.opening(path) {
                let pool = try DatabasePool(path: path, configuration: configuration)
                try pool.write { try Schema.prepare($0, path: path, isCaseInsensitive: isCaseInsensitive) }
                return pool
            }
            readers = ReaderStack(path: path, configuration)
        } catch {
            throw Self.described(error)
        }
    }

    /// Checkpoints and closes. Later calls fail.
    package func close() throws(ReplicaError) {
        do {
            try burst.close()
            try readers.close()
            try pool.close()
        } catch {
            throw Self.described(error)
        }
    }

    /// One or more reads that need not agree with each other: no transaction.
    func reading<Result>(
        _ subject: AwaitedRows.Subject = .anything,
        _ body: (Database) throws -> Result
    ) throws(ReplicaError) -> Result {
        awaitRows(subject)
        do {
            if let database = try burst.database(asOf: writings) { return try body(database) }
            if let reader = try burst.reader(asOf: writings, from: readers) { return try reader.unsafeRead(body) }
            guard let reader = try readers.take() else { return try pool.unsafeRead(body) }
            defer { readers.put(reader) }
            return try reader.unsafeRead(body)
        } catch {
            throw Self.described(error)
        }
    }

    /// What the calling thread reads one after the other comes from one transaction, begun anew only after something was written: without,
    /// each read locks and unlocks the file (14 system calls for a file that the engine looks at). One thread may have that.
    ///
    /// It calls `endReading` whenever it has nothing to do for a while: what it has read last is kept in the log until then.
    package func readInBursts() { burst.adopt() }

    package func endReading() { burst.end() }

    /// The same without going to the connection and back for each: it is the calling thread's until `body` ends.
    package func readingTogether(_ body: () -> Void) {
        let reader = (try? burst.reader(asOf: writings, from: readers)) ?? nil
        guard let reader, !burst.isTogether else { return body() }
        reader.unsafeRead { burst.together($0, body) }
    }

    /// Of what is read together.
    struct Names {
        var synced = NameCache<SyncedItem>()
        var remote = NameCache<RemoteItem>()
    }

    /// - Parameter ask: gets what is known of the state of which it gets the number as well.
    /// - Returns: `nil` where nothing is read together, or `ask` knows nothing.
    func readingNames<Row>(
        _ subject: AwaitedRows.Subject,
        _ ask: (inout Names, Database, UInt64) throws -> [Row]?
    ) throws(ReplicaError) -> [Row]? {
        awaitRows(subject)
        do {
            let version = writings
            guard let database = try burst.database(asOf: version) else { return nil }
            return try ask(&burst.names, database, version)
        } catch {
            throw Self.described(error)
        }
    }

    /// How often something was written.
    private var writings: UInt64 { folders.withLock { $0.version } }

    /// Reads of one and the same state.
    func readingSnapshot<Result>(_ body: (Database) throws -> Result) throws(ReplicaError) -> Result {
        awaitRows(.anything)
        do { return try pool.read(body) } catch { throw Self.described(error) }
    }

    /// One transaction.
    func writing<Result>(_ body: (Database) throws -> Result) throws(ReplicaError) -> Result {
        awaitRows(.anything)
        defer {
            folders.withLock { folders in
                folders.version += 1
                folders.rows.removeAll(keepingCapacity: true)
            }
        }
        do { return try pool.write(body) } catch { throw Self.described(error) }
    }

    private func awaitRows(_ subject: AwaitedRows.Subject) {
        if awaited.mayBeMissing, burst.isOwnThread { awaited.wait(for: subject) }
    }

    /// A synced row that may be a folder's: known, or read now.
    func rememberingFolder(
        _ id: ItemID,
        _ read: () throws(ReplicaError) -> SyncedItem?
    ) throws(ReplicaError) -> SyncedItem? {
        let (known, version) = folders.withLock { ($0.rows[id], $0.version) }
        if let known { return known }
        let found = try read()
        guard let found, found.content == .folder else { return found }
        folders.withLock { folders in
            guard folders.version == version else { return }
            if folders.rows.count >= FolderRows.limit { folders.rows.removeAll() }
            folders.rows[id] = found
        }
        return found
    }

    private static func described(_ error: any Error) -> ReplicaError {
        if let error = error as? ReplicaError { return error }
        return .database(String(describing: error))
    }
}

/// One thread's connection, and whether it has a transaction open.
///
/// `@unchecked Sendable`: `current` and `names` are touched by that thread only, which `thread` says; the rest is safe by itself.
private final class ReadingBurst: @unchecked Sendable {
    private struct State {
        var reader: DatabaseQueue?
        /// As of when the transaction reads.
        var version: UInt64?
    }

    /// While several reads are made together.
    private var current: Database?
    var names = StateDatabase.Names()

    /// 0: none.
    private let thread = Atomic<UInt>(0)
    /// Guards memory only, and only that thread uses it, until the database is closed.
    private let state = Mutex(State())

    func adopt() { thread.store(UInt(pthread_self()), ordering: .relaxed) }

    var isOwnThread: Bool { thread.load(ordering: .relaxed) == UInt(pthread_self()) }

    /// - Returns: `nil` for all other threads.
    func reader(asOf version: UInt64, from readers: ReaderStack) throws -> DatabaseQueue? {
        guard isOwnThread else { return nil }
        let (known, begun) = state.withLock { ($0.reader, $0.version) }
        guard let reader = try known ?? readers.take() else { return nil }
        if begun != version {
            try reader.unsafeRead { try begin($0) }
            state.withLock { $0 = State(reader: reader, version: version) }
        }
        return reader
    }

    private func begin(_ database: Database) throws {
        if database.isInsideTransaction { try database.run("COMMIT", []) }
        try database.run("BEGIN", [])
    }

    var isTogether: Bool { isOwnThread && current != nil }

    /// Until `body` ends, this thread's reads find the connection by `database(asOf:)`.
    func together(_ database: Database, _ body: () -> Void) {
        current = database
        defer {
            current = nil
            names = StateDatabase.Names()
        }
        body()
    }

    /// - Returns: `nil` for all other threads, and where each read goes to the connection by itself.
    func database(asOf version: UInt64) throws -> Database? {
        guard isOwnThread, let current else { return nil }
        if state.withLock({ $0.version }) != version {
            try begin(current)
            state.withLock { $0.version = version }
        }
        return current
    }

    func end() {
        let (reader, begun) = state.withLock { state in
            defer { state.version = nil }
            return (state.reader, state.version)
        }
        guard let reader, begun != nil else { return }
        // A transaction that cannot be ended is ended before the next.
        try? reader.unsafeRead { if $0.isInsideTransaction { try $0.run("COMMIT", []) } }
    }

    func close() throws {
        thread.store(0, ordering: .relaxed)
        end()
        let reader = state.withLock { state in
            defer { state.reader = nil }
            return state.reader
        }
        try reader?.close()
    }
}

/// Connections for reading, the one that was used last first, whose cache is warm.
///
/// `DatabasePool` has the same, and takes longer to find one that is free than a row takes to be read (which the engine does ten times for
/// each file that it looks at).
private final class ReaderStack: Sendable {
    /// Who finds none left waits with the pool's.
    private static let limit = 4

    private struct State {
        var idle: [DatabaseQueue] = []
        var count = 0
        var isClosed = false
    }

    /// Guards memory only; a leaf in the order of locks.
    private let state = Mutex(State())
    private let path: String
    private let configuration: Configuration

    init(path: String, _ configuration: Configuration) {
        self.path = path
        self.configuration = configuration
    }

    /// `nil` when all are in use, or closed.
    func take() throws -> DatabaseQueue? {
        let (idle, mayMake): (DatabaseQueue?, Bool) = state.withLock { state in
            if let idle = state.idle.popLast() { return (idle, false) }
            guard !state.isClosed, state.count < Self.limit else { return (nil, false) }
            state.count += 1
            return (nil, true)
        }
        guard mayMake else { return idle }
        do {
            var configuration = configuration
            configuration.readonly = true
            // See `ReadingBurst`.
            configuration.allowsUnsafeTransactions = true
            // 16 MiB: there are several.
            configuration.prepareDatabase { try $0.execute(sql: "PRAGMA cache_size = -16384") }
            return try DatabaseQueue(path: path, configuration: configuration)
        } catch {
            state.withLock { $0.count -= 1 }
            throw error
        }
    }

    func put(_ reader: DatabaseQueue) {
        let isClosed = state.withLock { state in
            if !state.isClosed { state.idle.append(reader) }
            return state.isClosed
        }
        if isClosed { try? reader.close() }
    }

    func close() throws {
        let idle = state.withLock { state in
            state.isClosed = true
            defer { state.idle = [] }
            return state.idle
        }
        for reader in idle { try reader.close() }
    }
}
