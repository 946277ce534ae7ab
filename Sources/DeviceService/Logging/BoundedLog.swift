internal import CLinux
internal import Glibc
package import Logging
internal import Synchronization
internal import UbiquityControl
internal import UbiquityModel

/// A log file that stays small: when it is full it becomes `NAME.1`, whose predecessor goes.
///
/// Output and errors of the process (what the Swift runtime says of a crash) lead there too and follow to the new file.
package final class BoundedLog: Sendable {
    private struct State {
        var descriptor: Int32
        var size: Int64
    }

    package static let limitBytes: Int64 = 4 * 1024 * 1024

    private let path: String
    private let limit: Int64
    /// Guards the file. Held during one write to it: the lines of all threads stay whole.
    private let state: Mutex<State>

    /// `nil` if the file cannot be opened.
    package init?(path: String, limit: Int64 = BoundedLog.limitBytes) {
        let descriptor = Self.open(path)
        guard descriptor >= 0 else { return nil }
        self.path = path
        self.limit = limit
        state = Mutex(State(descriptor: descriptor, size: Self.size(descriptor)))
    }

    deinit { close(state.withLock { $0.descriptor }) }

    package func write(_ line: String) {
        let bytes = Array(line.utf8) + [UInt8(ascii: "\n")]
        state.withLock { state in
            if state.size + Int64(bytes.count) > limit { rotate(&state) }
            // A log that cannot be written (full disk) must not stop what it tells of.
            let written = bytes.withUnsafeBytes { clinux_write(state.descriptor, $0.baseAddress, $0.count) }
            state.size += max(0, written)
        }
    }

    /// Makes output and errors of this process lead here.
    package func adoptStandardOutput() {
        state.withLock { state in
            dup2(state.descriptor, STDOUT_FILENO)
            dup2(state.descriptor, STDERR_FILENO)
        }
        ownsOutput.store(true, ordering: .relaxed)
    }

    private let ownsOutput = Atomic(false)

    private func rotate(_ state: inout State) {
        guard rename(path, path + ".1") == 0 else { return }
        let descriptor = Self.open(path)
        guard descriptor >= 0 else { return }
        close(state.descriptor)
        state = State(descriptor: descriptor, size: 0)
        if ownsOutput.load(ordering: .relaxed) {
            dup2(descriptor, STDOUT_FILENO)
            dup2(descriptor, STDERR_FILENO)
        }
    }

    private static func open(_ path: String) -> Int32 {
        Glibc.open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    }

    private static func size(_ descriptor: Int32) -> Int64 {
        var status = stat()
        return fstat(descriptor, &status) == 0 ? Int64(status.st_size) : 0
    }
}

/// Writes log events as lines of text: `2026-11-21T10:15:02.123Z warning sync: MESSAGE key=value`.
package struct LineLogHandler: LogHandler {
    package enum Sink: Sendable {
        case log(BoundedLog)
        case standardError
    }

    package var metadata: Logger.Metadata = [:]
    package var metadataProvider: Logger.MetadataProvider?
    package var logLevel: Logger.Level
    private let label: String
    private let sink: Sink

    package init(label: String, sink: Sink, level: Logger.Level) {
        self.label = label
        self.sink = sink
        logLevel = level
    }

    package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    package func log(event: LogEvent) {
        let details = metadata.merging(event.metadata ?? [:]) { $1 }.sorted { $0.key < $1.key }.map {
            " \($0.key)=\($0.value)"
        }
        let text = "\(label): \(event.message)\(details.joined())".split(whereSeparator: \.isNewline).joined(
            separator: " "
        )
        let line = "\(Timestamp.now().text) \(event.level) \(text)"
        switch sink {
        case .log(let log): log.write(line)
        case .standardError:
            let bytes = Array(line.utf8) + [UInt8(ascii: "\n")]
            _ = bytes.withUnsafeBytes { clinux_write(STDERR_FILENO, $0.baseAddress, $0.count) }
        }
    }

    /// `UBIQUITY_LOG_LEVEL`: `trace` to `critical`.
    package static func requestedLevel() -> Logger.Level? {
        getenv("UBIQUITY_LOG_LEVEL").flatMap { Logger.Level(rawValue: String(cString: $0)) }
    }
}
