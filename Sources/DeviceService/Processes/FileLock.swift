internal import CLinux
internal import Glibc
package import UbiquityControl

/// A lock file: held until this goes away or its process ends, however it ends.
package final class FileLock: Sendable {
    private let descriptor: Int32

    /// Waits for the lock.
    package init(waitingFor path: String) throws(ControlError) {
        let descriptor = try Self.open(path)
        let status = clinux_lock_waiting(descriptor)
        guard status >= 0 else {
            close(descriptor)
            throw ControlError(path, "cannot be locked: \(systemMessage(status))")
        }
        self.descriptor = descriptor
    }

    /// Takes the lock, and writes this process's number into the file. If its holder is about to end, waits for that.
    package init(owning path: String, patience: Duration) throws(ControlError) {
        let descriptor = try Self.open(path)
        var status = clinux_try_lock(descriptor)
        if status == -EWOULDBLOCK, let holder = Self.holder(descriptor), holder.waitForEnd(within: patience) {
            // It is closed a moment after its holder is gone from the list of processes.
            status = clinux_try_lock_for(descriptor, 2000)
        }
        guard status >= 0 else {
            let holder = Self.holder(descriptor).map { "process \($0.pid)" } ?? "another process"
            close(descriptor)
            if status == -EWOULDBLOCK {
                throw ControlError(
                    .tryAgain,
                    "device service",
                    "it runs already (\(holder))",
                    remedy: "`ubiquity down` ends it"
                )
            }
            throw ControlError(path, "cannot be locked: \(systemMessage(status))")
        }
        let text = Array("\(getpid())\n".utf8)
        _ = clinux_truncate(descriptor, 0)
        _ = text.withUnsafeBytes { clinux_pwrite_all(descriptor, $0.baseAddress, $0.count, 0) }
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }

    private static func open(_ path: String) throws(ControlError) -> Int32 {
        let descriptor = Glibc.open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw ControlError(path, "cannot be opened: \(systemMessage(errno))") }
        return descriptor
    }

    private static func holder(_ descriptor: Int32) -> ProcessIdentity? {
        var buffer = [UInt8](repeating: 0, count: 32)
        let count = clinux_pread(descriptor, &buffer, buffer.count, 0)
        guard count > 0 else { return nil }
        let text = String(decoding: buffer.prefix(Int(count)).prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
        return Int32(text).flatMap { ProcessIdentity(pid: $0) }
    }
}
