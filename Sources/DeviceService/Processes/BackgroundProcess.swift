internal import CLinux
internal import Glibc
package import UbiquityControl

/// This program, started once more in the background: in a session of its own, with a log file for its output.
///
/// The child tells over a pipe that it is ready, or what kept it from that, and the command that started it reports the error as
/// its own.
package enum BackgroundProcess {
    /// The descriptor on which the child finds the pipe.
    package static let readyDescriptor: Int32 = 3

    /// What the child tells, as one JSON object.
    package struct Report: Codable, Sendable {
        /// A server's address.
        package var url: String?
        package var error: ControlError?

        package init(url: String? = nil, error: ControlError? = nil) {
            self.url = url
            self.error = error
        }
    }

    /// Starts `ubiquity` with these words and waits until it is ready.
    package static func start(
        _ words: [String],
        what: String,
        log: String
    ) throws(ControlError) -> (process: ProcessIdentity, report: Report) {
        let program = try ownPath()
        let logDescriptor = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard logDescriptor >= 0 else { throw ControlError(log, "cannot be opened: \(systemMessage(errno))") }
        defer { close(logDescriptor) }
        var pipe: [Int32] = [-1, -1]
        let status = clinux_pipe(&pipe)
        guard status == 0 else { throw ControlError(what, "cannot be started: \(systemMessage(status))") }
        defer { close(pipe[0]) }
        let pid = withArguments([program] + words) {
            clinux_spawn_background(program, $0, environ, logDescriptor, pipe[1])
        }
        close(pipe[1])
        guard pid > 0 else { throw ControlError(what, "cannot be started: \(systemMessage(pid))") }
        let identity = ProcessIdentity(pid: pid)
        let bytes = try readReport(pipe[0], what: what, log: log)
        guard let identity, !bytes.isEmpty else {
            throw ControlError(what, "it ended during its start", remedy: "the reason is at the end of \(log)")
        }
        let report = try ControlCoding.decode(Report.self, from: bytes)
        if let error = report.error { throw error }
        return (identity, report)
    }

    /// Called by the child, once.
    package static func tell(_ report: Report, on descriptor: Int32) {
        guard let bytes = try? ControlCoding.encode(report) else { return }
        _ = bytes.withUnsafeBytes { clinux_write(descriptor, $0.baseAddress, $0.count) }
        close(descriptor)
    }

    /// The pipe closes when the child has told or died; what hangs longer than this will not become ready any more.
    private static func readReport(_ descriptor: Int32, what: String, log: String) throws(ControlError) -> [UInt8] {
        let limitMilliseconds: Int32 = 120_000
        var result = [UInt8]()
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            guard clinux_wait_readable(descriptor, limitMilliseconds) > 0 else {
                throw ControlError(.tryAgain, what, "it gives no sign of readiness", remedy: "\(log) may tell why")
            }
            let count = read(descriptor, &buffer, buffer.count)
            if count <= 0 { return result }
            result += buffer[..<count]
        }
    }

    private static func ownPath() throws(ControlError) -> String {
        var buffer = [CChar](repeating: 0, count: 4096)
        let count = clinux_readlink_at(AT_FDCWD, "/proc/self/exe", &buffer, buffer.count)
        guard count > 0 else {
            throw ControlError("ubiquity", "its own program is not to be found: \(systemMessage(Int32(count)))")
        }
        return String(decoding: buffer.prefix(Int(count)).map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}

/// Calls `body` with a NULL-terminated array of C strings.
func withArguments<Value>(_ words: [String], _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> Value) -> Value {
    var pointers: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) }
    pointers.append(nil)
    defer { for pointer in pointers { free(pointer) } }
    return pointers.withUnsafeBufferPointer { buffer in
        // The array holds at least the terminating NULL, so it has an address.
        guard let base = buffer.baseAddress else { preconditionFailure("an array with an element has no address") }
        return body(base)
    }
}
