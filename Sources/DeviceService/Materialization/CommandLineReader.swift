internal import SyncEngine
internal import Synchronization

/// Reads command lines of processes, on threads that may hang.
///
/// Reading one takes that process's memory lock, which a page fault may hold that waits for this very service. So no thread that
/// answers requests does it, and whoever asks waits for a limited time only. A thread that hangs is replaced by another one, up to
/// a limit; an idle service has none.
final class CommandLineReader: Sendable {
    private struct State {
        /// In the order of arrival; may be empty while all that was asked for is being read.
        var queue: [ProcessIdentity] = []
        var waiting: [ProcessIdentity: [@Sendable ([String]) -> Void]] = [:]
        var threads = 0
    }

    private static let threadLimit = 4
    /// What asks for more is told nothing.
    private static let queueLimit = 4096
    /// Of a command line; the script is at its beginning.
    private static let byteLimit = 16384

    /// Guards memory only; a leaf in the order of locks.
    private let state = Mutex(State())

    /// `completion` gets the words, none if the process is gone; on any thread, perhaps never.
    func read(_ process: ProcessIdentity, completion: @escaping @Sendable ([String]) -> Void) {
        let needsThread = state.withLock { state in
            if state.waiting[process] != nil {
                state.waiting[process]?.append(completion)
                return false
            }
            guard state.waiting.count < Self.queueLimit else { return false }
            state.waiting[process] = [completion]
            state.queue.append(process)
            guard state.threads < Self.threadLimit else { return false }
            state.threads += 1
            return true
        }
        if needsThread { BlockingThread.start("ubi-programs") { self.run() } }
    }

    private func run() {
        while let process = next() {
            let words = Self.words(of: process)
            let waiting = state.withLock { $0.waiting.removeValue(forKey: process) ?? [] }
            for completion in waiting { completion(words) }
        }
    }

    private func next() -> ProcessIdentity? {
        state.withLock { state in
            if state.queue.isEmpty {
                state.threads -= 1
                return nil
            }
            return state.queue.removeFirst()
        }
    }

    private static func words(of process: ProcessIdentity) -> [String] {
        guard let bytes = ProcessTable.read("/proc/\(process.pid)/cmdline", limit: byteLimit) else { return [] }
        // The number may be another process's by now.
        guard process.isAlive else { return [] }
        return bytes.split(separator: 0, omittingEmptySubsequences: false).map { String(decoding: $0, as: UTF8.self) }
    }
}
