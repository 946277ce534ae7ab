import CLinux
import Dispatch
import Synchronization
package import SystemPackage

/// A thread for system calls on the service's own mount, with a table of descriptors of its own.
///
/// A request that the driver has read cannot be killed: who waits for it waits until it is answered, or until the last descriptor of
/// the connection is closed. If a thread that shares the service's descriptors waits so while the service is killed, it keeps the
/// connection open for which it waits: the mount and all who wait on it would hang for ever (seen, by `kill -9`). This thread has
/// nothing but what it opened through the mount itself.
package final class MountDoor: Sendable {
    private let jobs = Mailbox<@Sendable () -> Void>()
    private let thread = Mutex<DriverThread?>(nil)

    package init() {}

    package func open() throws(Errno) { try open { _, _ in } }

    /// - Parameter announce: is told the thread's number, before its first system call and after its last.
    func open(_ announce: @escaping @Sendable (_ thread: Int32, _ isOpen: Bool) -> Void) throws(Errno) {
        let started = DispatchSemaphore(value: 0)
        let thread = try DriverThread("ubiq-mount") { [jobs] in
            // Where the kernel does not know how (before 5.9), the table stays the shared one.
            _ = clinux_fuse_leave_descriptors()
            let id = clinux_fuse_thread_id()
            announce(id, true)
            started.signal()
            while case .element(let job) = jobs.next() { job() }
            announce(id, false)
        }
        self.thread.withLock { $0 = thread }
        started.wait()
    }

    /// Blocks until `body` has run. What it opens is known in this thread only.
    package func run<Value: Sendable>(_ body: @escaping @Sendable () throws(Errno) -> Value) -> Result<Value, Errno> {
        let result = Mutex<Result<Value, Errno>>(.failure(.notConnected))
        let done = DispatchSemaphore(value: 0)
        let isTaken = jobs.push {
            let outcome: Result<Value, Errno>
            do throws(Errno) { outcome = .success(try body()) } catch { outcome = .failure(error) }
            result.withLock { $0 = outcome }
            done.signal()
        }
        if isTaken { done.wait() }
        return result.withLock { $0 }
    }

    /// Does not wait. What is given after the end is dropped.
    package func submit(_ body: @escaping @Sendable () -> Void) { _ = jobs.push(body) }

    /// Ends the thread, once it has done what it was given. The mount must still answer.
    package func close() {
        jobs.close()
        let ending = thread.withLock { thread in
            defer { thread = nil }
            return thread
        }
        ending?.join()
    }
}
