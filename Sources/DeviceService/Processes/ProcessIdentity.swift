internal import CLinux
internal import Glibc

/// A process for as long as it lives: its number alone may belong to another one tomorrow.
package struct ProcessIdentity: Codable, Sendable, Hashable {
    package var pid: Int32
    /// Clock ticks since the machine started, as /proc tells.
    package var started: UInt64

    /// `nil` if there is no such process.
    package init?(pid: Int32) {
        guard let fields = ProcessTable.fields(of: pid) else { return nil }
        self.pid = pid
        started = fields.started
    }

    init(pid: Int32, started: UInt64) {
        self.pid = pid
        self.started = started
    }

    package static func own() -> ProcessIdentity? { ProcessIdentity(pid: getpid()) }

    /// Whether its first thread is there; the others may outlive it by what their end takes.
    package var isAlive: Bool {
        guard let fields = ProcessTable.fields(of: pid) else { return false }
        return fields.started == started && !fields.hasEnded
    }

    /// Sends a signal to this very process, and waits for its end. `false` if it is still there at the time limit.
    package func end(with signal: Int32, within limit: Duration) -> Bool {
        withDescriptor { descriptor in
            if isAlive { _ = clinux_process_signal(descriptor, signal) }
            return clinux_wait_readable(descriptor, Int32(clamping: limit.components.seconds * 1000)) > 0
        }
    }

    /// Waits for its end: that of its last thread, for until then it has its sockets, locks and mounts, although its first one may already be
    /// what the table calls a zombie. `false` if it is still there at the time limit.
    package func waitForEnd(within limit: Duration) -> Bool {
        withDescriptor { clinux_wait_readable($0, Int32(clamping: limit.components.seconds * 1000)) > 0 }
    }

    /// - Returns: whether the process has ended: what `body` says, unless it was gone before.
    private func withDescriptor(_ body: (Int32) -> Bool) -> Bool {
        let descriptor = clinux_process_open(pid)
        // No other failure says that it has ended: this process may have no descriptor left.
        guard descriptor >= 0 else { return descriptor == -ESRCH }
        defer { close(descriptor) }
        // The number may have become another one's before it was opened, but not since. Where the table cannot be read the descriptor
        // tells.
        if let fields = ProcessTable.fields(of: pid), fields.started != started { return true }
        return body(descriptor)
    }
}

/// What /proc/PID/stat says. Reading it takes no lock of that process.
enum ProcessTable {
    struct Fields {
        /// The executable's, the script's, or what the thread calls itself; at most 15 bytes.
        var name: String
        var state: UInt8
        var parent: Int32
        var started: UInt64

        /// Waits for its parent (Z), or is being taken out of the table at this moment (X).
        var hasEnded: Bool { state == UInt8(ascii: "Z") || state == UInt8(ascii: "X") }
    }

    static func fields(of pid: Int32) -> Fields? {
        guard let bytes = read("/proc/\(pid)/stat", limit: 4096) else { return nil }
        return parse(bytes)
    }

    /// `PID (NAME) STATE PARENT …`: the name may contain anything, also parentheses and blanks.
    static func parse(_ bytes: [UInt8]) -> Fields? {
        guard let begin = bytes.firstIndex(of: UInt8(ascii: "(")), let end = bytes.lastIndex(of: UInt8(ascii: ")")),
            begin < end
        else { return nil }
        let name = String(decoding: bytes[(begin + 1)..<end], as: UTF8.self)
        let fields = bytes[(end + 1)...].split(separator: UInt8(ascii: " "))
        // Field 22 of the line is the time of the start; the first here is field 3.
        guard fields.count > 19, let state = fields[0].first,
            let parent = Int32(String(decoding: fields[1], as: UTF8.self)),
            let started = UInt64(String(decoding: fields[19], as: UTF8.self))
        else { return nil }
        return Fields(name: name, state: state, parent: parent, started: started)
    }

    /// Whether this process is still there, and runs the same program: far cheaper than to look at it anew. May say no of what is so,
    /// never yes of what is not.
    static func isStill(_ process: ProcessIdentity, running executable: String?) -> Bool {
        guard let executable, started(of: process.pid) == process.started else { return false }
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 4096) { buffer in
            let count = clinux_readlink_at(AT_FDCWD, "/proc/\(process.pid)/exe", buffer.baseAddress, buffer.count)
            guard count > 0 else { return false }
            return UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[..<Int(count)])
                .elementsEqual(executable.utf8)
        }
    }

    /// Field 22 of /proc/PID/stat.
    private static func started(of pid: Int32) -> UInt64? {
        let descriptor = open("/proc/\(pid)/stat", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        return withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { buffer in
            let count = clinux_pread(descriptor, buffer.baseAddress, buffer.count, 0)
            guard count > 0 else { return nil }
            let line = buffer[..<Int(count)]
            guard var next = line.lastIndex(of: UInt8(ascii: ")")) else { return nil }
            // A blank is before field 3, and one before each that follows.
            for _ in 3...22 {
                guard let blank = line[(next + 1)...].firstIndex(of: UInt8(ascii: " ")) else { return nil }
                next = blank
            }
            var value: UInt64 = 0
            for digit in line[(next + 1)...] {
                guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit) else { break }
                value = value &* 10 &+ UInt64(digit - UInt8(ascii: "0"))
            }
            return value
        }
    }

    /// The name of the program that a process or thread runs.
    static func program(of pid: Int32) -> String? {
        executable(of: pid)?.split(separator: "/").last.map(String.init)
    }

    /// The path of the executable that a process or thread runs; `nil` where there is none, or the system does not show it.
    static func executable(of pid: Int32) -> String? {
        var buffer = [CChar](repeating: 0, count: 4096)
        let count = clinux_readlink_at(AT_FDCWD, "/proc/\(pid)/exe", &buffer, buffer.count)
        guard count > 0 else { return nil }
        let path = String(decoding: buffer.prefix(Int(count)).map(UInt8.init(bitPattern:)), as: UTF8.self)
        // Replaced by an update while it runs: it is what it was.
        let mark = " (deleted)"
        return path.hasSuffix(mark) ? String(path.dropLast(mark.count)) : path
    }

    /// Reads a file of /proc, whose size is not known beforehand.
    static func read(_ path: String, limit: Int) -> [UInt8]? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var result = [UInt8](repeating: 0, count: limit)
        var length = 0
        while length < limit {
            let count = result[length...].withUnsafeMutableBytes {
                clinux_pread(descriptor, $0.baseAddress, $0.count, Int64(length))
            }
            if count < 0 { return nil }
            if count == 0 { break }
            length += Int(count)
        }
        return Array(result[..<length])
    }
}
