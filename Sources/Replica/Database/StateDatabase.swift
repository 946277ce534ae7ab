internal import GRDB
internal import SQLiteRows

/// The device's knowledge of one container: the remote and the synced tree, and what else must survive a restart.
///
/// Synchronous and safe from any thread, but never to be called on Swift's cooperative pool. WAL with `synchronous =
/// NORMAL`: after a power loss the newest transactions may be missing, never a part of one; what is missing is found
/// again by comparing the trees. Writers queue; readers see the last committed state and do not wait for them.
package final class StateDatabase: Sendable {
    private let pool: DatabasePool

    package init(path: String) throws(ReplicaError) {
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
            pool = try DatabasePool(path: path, configuration: configuration)
            try pool.write { try Schema.prepare($0, path: path) }
        } catch {
            throw Self.described(error)
        }
    }

    /// Checkpoints and closes. Later calls fail.
    package func close() throws(ReplicaError) {
        do { try pool.close() } catch { throw Self.described(error) }
    }

    /// One or more reads that need not agree with each other: no transaction.
    func reading<Result>(_ body: (Database) throws -> Result) throws(ReplicaError) -> Result {
        do { return try pool.unsafeRead(body) } catch { throw Self.described(error) }
    }

    /// Reads of one and the same state.
    func readingSnapshot<Result>(_ body: (Database) throws -> Result) throws(ReplicaError) -> Result {
        do { return try pool.read(body) } catch { throw Self.described(error) }
    }

    /// One transaction.
    func writing<Result>(_ body: (Database) throws -> Result) throws(ReplicaError) -> Result {
        do { return try pool.write(body) } catch { throw Self.described(error) }
    }

    private static func described(_ error: any Error) -> ReplicaError {
        if let error = error as? ReplicaError { return error }
        return .database(String(describing: error))
    }
}
