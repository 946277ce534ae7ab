import CLinux
import Glibc

/// A thread of its own for an actor whose methods block: on the database, or on the disk. Swift's cooperative pool never does.
///
/// `@unchecked Sendable`: `jobs` is only touched with `mutex` held; the mutex and the condition are made in
/// `init` and live at a fixed address until `deinit`.
final class ThreadExecutor: SerialExecutor, @unchecked Sendable {
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let condition: UnsafeMutablePointer<pthread_cond_t>
    private var jobs: [UnownedJob] = []

    init(name: String) {
        mutex = .allocate(capacity: 1)
        condition = .allocate(capacity: 1)
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(condition, nil)
        // The thread keeps the executor alive for good: one a container that was ever mounted by this process.
        let this = self
        BlockingThread.start(name) { this.run() }
    }

    deinit {
        pthread_mutex_destroy(mutex)
        pthread_cond_destroy(condition)
        mutex.deallocate()
        condition.deallocate()
    }

    func enqueue(_ job: UnownedJob) {
        pthread_mutex_lock(mutex)
        jobs.append(job)
        pthread_cond_signal(condition)
        pthread_mutex_unlock(mutex)
    }

    func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

    /// The engine keeps books of what programs do while they do it: where processors are scarce, theirs is the first turn. (Two
    /// processors, files made as fast as one program can: 70 to 100 us each instead of 140 to 180.) What programs wait for is done by
    /// other threads.
    private static let niceness: Int32 = 10

    private func run() {
        // For this thread alone, as Linux has it. Refused, it is as it was.
        _ = setpriority(__priority_which_t(bitPattern: PRIO_PROCESS.rawValue), 0, Self.niceness)
        while true {
            pthread_mutex_lock(mutex)
            while jobs.isEmpty { pthread_cond_wait(condition, mutex) }
            let batch = jobs
            jobs.removeAll(keepingCapacity: true)
            pthread_mutex_unlock(mutex)
            for job in batch { job.runSynchronously(on: asUnownedSerialExecutor()) }
        }
    }
}
