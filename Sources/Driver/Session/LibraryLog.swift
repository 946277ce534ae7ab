import CFuse3
import Glibc
import Logging
import Synchronization

/// What libfuse has to say goes to our log instead of standard error; its last words explain a mount that failed.
final class LibraryLog: Sendable {
    static let shared = LibraryLog()

    private struct State: Sendable {
        var loggers: [Logger] = []
        var last: String?
        /// Of a line that comes in pieces.
        var begun = ""
    }

    /// A leaf: memory work only.
    private let state = Mutex(State())

    var lastMessage: String? { state.withLock { $0.last } }

    func begin(_ logger: Logger) {
        state.withLock { state in
            state.loggers.append(logger)
            state.last = nil
            state.begun = ""
        }
        fuse_set_log_func { level, format, arguments in
            guard let format, let arguments else { return }
            let text = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 1024) { room in
                vsnprintf(room.baseAddress, room.count, format, arguments)
                return room.baseAddress.map { String(cString: $0) } ?? ""
            }
            LibraryLog.shared.note(text, isError: level.rawValue <= FUSE_LOG_ERR.rawValue)
        }
    }

    func end() {
        state.withLock { if !$0.loggers.isEmpty { $0.loggers.removeLast() } }
    }

    private func note(_ text: String, isError: Bool) {
        let (line, logger): (String, Logger?) = state.withLock { state in
            state.begun += text
            let line = state.begun.split(separator: "\n").joined(separator: " ")
            state.last = line
            guard text.hasSuffix("\n") else { return ("", nil) }
            state.begun = ""
            return (line, state.loggers.last)
        }
        logger?.log(level: isError ? .warning : .debug, "libfuse: \(line)")
    }
}
