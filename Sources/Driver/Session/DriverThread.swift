import CLinux
import Glibc
import SystemPackage

/// A thread of the driver's own: it may block, where the cooperative pool's may not.
struct DriverThread: Sendable {
    let handle: pthread_t

    /// - Parameters:
    ///   - name: at most 15 bytes are shown.
    ///   - isWoken: whether `wake` ends its blocking system calls.
    init(_ name: String, isWoken: Bool = false, _ body: @escaping @Sendable () -> Void) throws(Errno) {
        let start = Unmanaged.passRetained(
            Start {
                _ = clinux_fuse_prepare_thread(name, isWoken ? 1 : 0)
                body()
            }
        )
        var handle = pthread_t()
        let error = pthread_create(
            &handle,
            nil,
            { argument in
                // The argument is the object that was passed, retained, below.
                if let argument { Unmanaged<Start>.fromOpaque(argument).takeRetainedValue().body() }
                return nil
            },
            start.toOpaque()
        )
        guard error == 0 else {
            start.release()
            throw Errno(rawValue: error)
        }
        self.handle = handle
    }

    /// Waits for its end. Once only.
    func join() { pthread_join(handle, nil) }

    func wake() { _ = clinux_fuse_wake(UInt64(handle)) }

    private final class Start: Sendable {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }
}
