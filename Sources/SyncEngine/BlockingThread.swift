internal import CLinux
internal import Glibc

/// Work that blocks runs on a thread of its own, never on Swift's cooperative pool.
package enum BlockingThread {
    private final class Box: Sendable {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }

    /// Starts a detached thread that runs `body` to its end.
    /// - Parameter name: As `ps -T` shows it; its first 15 bytes count.
    package static func start(_ name: String, _ body: @escaping @Sendable () -> Void) {
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
                // The argument is the box that was retained above, handed over exactly once.
                guard let argument else { return nil }
                Unmanaged<Box>.fromOpaque(argument).takeRetainedValue().body()
                return nil
            },
            box.toOpaque()
        )
        precondition(status == 0, "the system refuses a thread (\(status))")
        pthread_detach(thread)
    }

    /// Runs `body` on a thread of its own and returns what it returns.
    package static func run<Value: Sendable>(_ name: String, _ body: @escaping @Sendable () -> Value) async -> Value {
        await withCheckedContinuation { continuation in
            start(name) { continuation.resume(returning: body()) }
        }
    }
}
