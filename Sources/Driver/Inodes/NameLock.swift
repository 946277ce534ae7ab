import Glibc

/// Orders changes of names with the rare search for an inode that was not where its node said.
///
/// Changes hold it shared, across one system call on the backing disk and the note of its effect in the nodes; the search holds it
/// exclusively, so that what the nodes say and what the disk has agree. Nothing on the mount is ever called under it, and no other lock
/// that waits for it; the tables' mutexes are taken under it.
///
/// Unchecked: the lock lives as long as the object, and is all its state.
final class NameLock: @unchecked Sendable {
    private let lock = UnsafeMutablePointer<pthread_rwlock_t>.allocate(capacity: 1)

    init() { pthread_rwlock_init(lock, nil) }

    deinit {
        pthread_rwlock_destroy(lock)
        lock.deallocate()
    }

    func shared<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
        pthread_rwlock_rdlock(lock)
        defer { pthread_rwlock_unlock(lock) }
        return try body()
    }

    func exclusive<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
        pthread_rwlock_wrlock(lock)
        defer { pthread_rwlock_unlock(lock) }
        return try body()
    }
}
