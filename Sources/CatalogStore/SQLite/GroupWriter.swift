internal import CatalogModel
internal import GRDB
internal import Synchronization

/// Lets many small writes share one transaction, and so one sync of the disk.
///
/// 1. A write is queued. If nobody drains the queue, the caller asks the database's writer thread to do so.
/// 2. The writer takes what is queued by then and performs it in one transaction, each write in a savepoint of its own: one that
///    fails takes nothing of the others with it.
/// 3. After the commit (and its sync) every caller gets its answer. What was queued meanwhile is the next transaction.
final class GroupWriter: Sendable {
    private struct Job: Sendable {
        let perform: @Sendable (Database) throws -> Void
        let finish: @Sendable ((any Error)?) -> Void
    }

    private struct State {
        var waiting: [Job] = []
        var isDraining = false
    }

    /// A transaction of so many writes takes long enough already.
    private static let groupLimit = 64

    private let pool: DatabasePool
    /// Guards the queue. A leaf: nothing is called under it.
    private let state = Mutex(State())

    init(pool: DatabasePool) { self.pool = pool }

    /// Performs `body` and returns its result when it is on the disk.
    func write<Value: Sendable>(_ body: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
        let result = ResultBox<Value>()
        return try await withCheckedThrowingContinuation { continuation in
            let job = Job(
                perform: { db in result.set(try body(db)) },
                finish: { error in
                    if let error { return continuation.resume(throwing: error) }
                    guard let value = result.value else {
                        return continuation.resume(
                            throwing: CatalogError.failed("a write was committed without its result")
                        )
                    }
                    continuation.resume(returning: value)
                }
            )
            enqueue(job)
        }
    }

    private func enqueue(_ job: Job) {
        let mustStart = state.withLock { state in
            state.waiting.append(job)
            defer { state.isDraining = true }
            return !state.isDraining
        }
        if mustStart { pool.asyncWriteWithoutTransaction { db in self.drain(db) } }
    }

    private func drain(_ db: Database) {
        while let group = nextGroup() {
            var failures = [Int: any Error]()
            var groupFailure: (any Error)?
            do { failures = try perform(group, db) } catch { groupFailure = error }
            for (index, job) in group.enumerated() { job.finish(failures[index] ?? groupFailure) }
        }
    }

    private func nextGroup() -> [Job]? {
        state.withLock { state in
            guard !state.waiting.isEmpty else {
                state.isDraining = false
                return nil
            }
            let group = Array(state.waiting.prefix(Self.groupLimit))
            state.waiting.removeFirst(group.count)
            return group
        }
    }

    /// The failures of single writes, by index; throws if the transaction as a whole failed.
    private func perform(_ group: [Job], _ db: Database) throws -> [Int: any Error] {
        var failures = [Int: any Error]()
        try db.inTransaction(.immediate) {
            for (index, job) in group.enumerated() {
                do {
                    try db.inSavepoint {
                        try job.perform(db)
                        return .commit
                    }
                } catch {
                    // A full disk may have made SQLite roll back everything: then nothing of the group was done.
                    guard db.isInsideTransaction else { throw error }
                    failures[index] = error
                }
            }
            return failures.count == group.count ? .rollback : .commit
        }
        return failures
    }
}

/// Carries a result from the writer's thread to the end of the transaction.
private final class ResultBox<Value: Sendable>: Sendable {
    private let content = Mutex<Value?>(nil)

    var value: Value? { content.withLock { $0 } }

    func set(_ value: Value) { content.withLock { $0 = value } }
}
