import Driver
import Glibc

/// A few threads for work that blocks or computes: reading and hashing files, writing chunks, syncing.
///
/// `@unchecked Sendable`: `jobs` is only touched with `mutex` held; mutex and condition live at fixed addresses until `deinit`.
final class BlockingPool: @unchecked Sendable {
    static let shared = BlockingPool(threads: 4)

    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let condition: UnsafeMutablePointer<pthread_cond_t>
    private var jobs: [@Sendable () -> Void] = []
    private var next = 0

    init(threads: Int) {
        mutex = .allocate(capacity: 1)
        condition = .allocate(capacity: 1)
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(condition, nil)
        for index in 0..<threads {
            let this = self
            BlockingThread.start("ubi-pool-\(index)") { this.run() }
        }
    }

    deinit {
        pthread_mutex_destroy(mutex)
        pthread_cond_destroy(condition)
        mutex.deallocate()
        condition.deallocate()
    }

    /// Runs `body` on one of the threads and returns what it returns.
    func run<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withCheckedContinuation { (continuation: CheckedContinuation<Result<Value, any Error>, Never>) in
            submit { continuation.resume(returning: Result { try body() }) }
        }.get()
    }

    func submit(_ job: @escaping @Sendable () -> Void) {
        pthread_mutex_lock(mutex)
        jobs.append(job)
        pthread_cond_signal(condition)
        pthread_mutex_unlock(mutex)
    }

    private func run() {
        while true {
            pthread_mutex_lock(mutex)
            while next == jobs.count { pthread_cond_wait(condition, mutex) }
            let job = jobs[next]
            next += 1
            if next == jobs.count {
                jobs.removeAll(keepingCapacity: true)
                next = 0
            } else if next > 1024 {
                jobs.removeFirst(next)
                next = 0
            }
            pthread_mutex_unlock(mutex)
            Workload.begin()
            job()
            Workload.end()
        }
    }
}
