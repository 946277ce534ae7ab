import CLinux
import Glibc
import Synchronization

/// A thread of its own for an actor whose methods block: on the database, or on the disk. Swift's cooperative pool never does.
///
/// `@unchecked Sendable`: `jobs` and `isStopping` are only touched with `mutex` held; the mutex and the condition are made in
/// `init` and live at a fixed address until `deinit`.
final class ThreadExecutor: SerialExecutor, @unchecked Sendable {
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let condition: UnsafeMutablePointer<pthread_cond_t>
    private var jobs: [UnownedJob] = []
    private var isStopping = false

    init(name: String) {
        mutex = .allocate(capacity: 1)
        condition = .allocate(capacity: 1)
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(condition, nil)
        // The thread keeps the executor alive until `stop`.
        let this = self
        startThread(name: name) { this.run() }
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

    private func run() {
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

/// Starts a detached thread that runs `body` to its end.
func startThread(name: String, _ body: @escaping @Sendable () -> Void) {
    final class Box: Sendable {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }
    var thread = pthread_t()
    let short = String(name.prefix(15))
    let box = Unmanaged.passRetained(
        Box {
            clinux_name_thread(short)
            body()
        }
    )
    let status = pthread_create(
        &thread,
        nil,
        { argument in
            // The argument is the box retained below, handed over exactly once.
            guard let argument else { return nil }
            Unmanaged<Box>.fromOpaque(argument).takeRetainedValue().body()
            return nil
        },
        box.toOpaque()
    )
    precondition(status == 0, "the system refuses a thread (\(status))")
    pthread_detach(thread)
}
