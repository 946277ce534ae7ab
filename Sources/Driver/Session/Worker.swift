import SystemPackage

/// A few threads that finish what had to wait: replies that read, opens that go on. Nothing that runs here waits for the network; what waits
/// for the disk to take all of a file has threads of its own.
final class Worker: Sendable {
    private let jobs = Mailbox<@Sendable () -> Void>()
    private let threads: [DriverThread]

    init(_ name: String, count: Int) throws(Errno) {
        var threads = [DriverThread]()
        let jobs = jobs
        do throws(Errno) {
            for _ in 0..<count {
                threads.append(
                    try DriverThread(name) {
                        while case .element(let job) = jobs.next() { job() }
                    }
                )
            }
        } catch {
            jobs.close()
            for thread in threads { thread.join() }
            throw error
        }
        self.threads = threads
    }

    /// Runs it later on one of the threads; at once, here, if they have ended.
    func run(_ job: @escaping @Sendable () -> Void) {
        if !jobs.push(job) { job() }
    }

    /// Finishes what is there and ends the threads. Never called from one of them.
    func stop() {
        jobs.close()
        for thread in threads { thread.join() }
    }
}
