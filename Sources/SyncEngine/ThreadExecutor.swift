import CLinux
import Driver
import Glibc

/// A thread of its own for an actor whose methods block: on the database, or on the disk. Swift's cooperative pool never does.
///
/// `@unchecked Sendable`: `jobs`, `sleepers` and `whenIdle` are only touched with `mutex` held; the mutex and the condition are made in
/// `init` and live at a fixed address until `deinit`.
final class ThreadExecutor: SerialExecutor, @unchecked Sendable {
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let condition: UnsafeMutablePointer<pthread_cond_t>
    private var jobs: [UnownedJob] = []
    /// A few at most.
    private var sleepers: [Sleeper] = []
    private var whenIdle: (@Sendable () -> Void)?

    private struct Sleeper {
        /// Of the monotonic clock, in nanoseconds.
        let end: Int64
        let continuation: CheckedContinuation<Void, Never>
    }

    init(name: String) {
        mutex = .allocate(capacity: 1)
        condition = .allocate(capacity: 1)
        pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(condition, &attributes)
        pthread_condattr_destroy(&attributes)
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

    /// Runs this on the thread whenever it is about to wait for jobs.
    func whenIdle(_ body: @escaping @Sendable () -> Void) {
        pthread_mutex_lock(mutex)
        whenIdle = body
        pthread_mutex_unlock(mutex)
    }

    func enqueue(_ job: UnownedJob) {
        pthread_mutex_lock(mutex)
        jobs.append(job)
        pthread_cond_signal(condition)
        pthread_mutex_unlock(mutex)
    }

    /// For the actor whose thread this is: goes on after a while, and no other thread has to wake for it. (`Task.sleep` takes three that
    /// wake each other.) It is not cancelled.
    func sleep(for duration: Duration, isolation: isolated (any Actor)? = #isolation) async {
        let (seconds, attoseconds) = duration.components
        let end = Self.now + seconds * 1_000_000_000 + attoseconds / 1_000_000_000
        await withCheckedContinuation { continuation in
            pthread_mutex_lock(mutex)
            sleepers.append(Sleeper(end: end, continuation: continuation))
            pthread_cond_signal(condition)
            pthread_mutex_unlock(mutex)
        }
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
            let jobs = takeJobs()
            Workload.begin()
            for job in jobs { job.runSynchronously(on: asUnownedSerialExecutor()) }
            Workload.end()
            // Their jobs come to this same thread.
            for continuation in takeRested() { continuation.resume() }
        }
    }

    /// Waits for jobs; none if somebody has slept enough before.
    private func takeJobs() -> [UnownedJob] {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        if jobs.isEmpty, let whenIdle {
            pthread_mutex_unlock(mutex)
            whenIdle()
            pthread_mutex_lock(mutex)
        }
        while jobs.isEmpty {
            guard let end = sleepers.lazy.map(\.end).min() else {
                pthread_cond_wait(condition, mutex)
                continue
            }
            var time = timespec(tv_sec: Int(end / 1_000_000_000), tv_nsec: Int(end % 1_000_000_000))
            if pthread_cond_timedwait(condition, mutex, &time) == ETIMEDOUT { break }
        }
        defer { jobs = [] }
        return jobs
    }

    private func takeRested() -> [CheckedContinuation<Void, Never>] {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        guard !sleepers.isEmpty else { return [] }
        let now = Self.now
        defer { sleepers.removeAll { $0.end <= now } }
        return sleepers.filter { $0.end <= now }.map(\.continuation)
    }

    private static var now: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}
