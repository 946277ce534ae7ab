import Glibc

/// A passthrough helper of a test's own, on a socket that only the test knows. Only root can start one.
package final class Helper: Sendable {
    package let path: String
    package let command: Command

    /// Starts it, and waits until it listens.
    package init(_ site: Site) throws {
        let path = site.folder + "/helper.socket"
        // Of an earlier one: it would look as if this one listened.
        unlink(path)
        let command = try site.start([TestSettings.helper, "--listen", path])
        try eventually("the helper listens") {
            guard command.isRunning else { throw TestFailure("the helper ended: \(try command.wait())") }
            guard try Files.exists(path) && Files.status(path).st_mode & 0o777 == 0o666 else { return false }
            // It has its name and its mode a moment before it listens, which the kernel shows as a flag.
            return try Files.text("/proc/net/unix").split(separator: "\n").contains {
                $0.hasSuffix(" " + path) && $0.contains(" 00010000 ")
            }
        }
        self.path = path
        self.command = command
    }

    package func kill() throws {
        command.send(SIGKILL)
        try command.wait(.seconds(10))
    }
}
