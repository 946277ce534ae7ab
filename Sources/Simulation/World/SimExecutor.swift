/// Runs all tasks of a simulated world on the thread that calls `runAll`, one job after the other, in an order that the seed decides.
///
/// `@unchecked Sendable`: a world is made, run and dropped on one thread, and all its tasks run there, since this executes them.
final class SimExecutor: SerialExecutor, TaskExecutor, @unchecked Sendable {
    private var jobs: [UnownedJob] = []
    private var random: SimRandom

    init(random: SimRandom) { self.random = random }

    func enqueue(_ job: consuming ExecutorJob) { jobs.append(UnownedJob(job)) }

    /// Until everything waits for an event.
    func runAll() {
        while !jobs.isEmpty {
            let job = jobs.remove(at: jobs.count == 1 ? 0 : random.below(jobs.count))
            job.runSynchronously(
                isolatedTo: asUnownedSerialExecutor(),
                taskExecutor: asUnownedTaskExecutor()
            )
        }
    }

    func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }
    func asUnownedTaskExecutor() -> UnownedTaskExecutor { UnownedTaskExecutor(ordinary: self) }
    /// There is one thread.
    func checkIsolated() {}
}

/// Where the passes of all devices run.
actor SimIsolation {
    private let executor: SimExecutor
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    init(executor: SimExecutor) { self.executor = executor }

    func run(_ body: SimBody) async { await body.run() }
}

/// What a task of the world does.
///
/// `@unchecked Sendable`: see `SimExecutor`.
struct SimBody: @unchecked Sendable {
    let run: () async -> Void
}
