internal import Dispatch
internal import Synchronization

/// Finds out which programs stand behind a request: the thread's own, and those of its ancestors.
///
/// Request threads read /proc/PID/stat and the link /proc/PID/exe only, which takes no lock of that process. What an interpreter runs
/// comes from a `CommandLineReader`; whoever must know it waits at most `patience`. Reads of missing content wait anyway, so the first
/// one of a process waits for this too, and an open is never kept.
final class ProgramLookup: Sendable {
    /// A process of the line, for as long as it lives.
    struct Sighting: Sendable, Hashable {
        var process: ProcessIdentity
        var parent: Int32
        var program: Program
    }

    private struct Known: Sendable {
        var sighting: Sighting
        var seen: ContinuousClock.Instant
    }

    static let patience: DispatchTimeInterval = .milliseconds(100)
    /// So long an ancestor stays what it was, and an interpreter runs what it ran: either may execute another program.
    private static let validity = Duration.seconds(5)
    private static let cacheLimit = 4096
    private static let longestLine = 64

    private let reader = CommandLineReader()
    private let deadlines = DispatchQueue(label: "ubi-programs")
    /// Guards memory only; a leaf in the order of locks.
    private let cache = Mutex<[Int32: Known]>([:])

    /// The thread's process and its ancestors, as far as can be told at once.
    func line(of thread: Int32) -> [Sighting] {
        var result = [Sighting]()
        var next = thread
        while next > 0, result.count < Self.longestLine {
            guard let sighting = sighting(of: next, isCaller: result.isEmpty) else { break }
            result.append(sighting)
            next = sighting.parent
        }
        return result
    }

    /// Reads what the interpreters of a line run, and calls `completion` once when `line(of:)` knows it, or patience has ended.
    func readScripts(of line: [Sighting], completion: @escaping @Sendable () -> Void) {
        let unread = line.filter { $0.program.script == .unread }
        let once = Once(count: unread.count, completion)
        for sighting in unread {
            reader.read(sighting.process) { words in
                self.note(words, of: sighting)
                once.countDown()
            }
        }
        deadlines.asyncAfter(deadline: .now() + Self.patience) { once.end() }
    }

    /// The caller is looked at each time, so that a number that was given anew, or a program executed since, is never taken for what it
    /// was; ancestors only if that was a while ago.
    private func sighting(of pid: Int32, isCaller: Bool) -> Sighting? {
        let known = cache.withLock { $0[pid] }
        let isFresh = known.map { ContinuousClock.now - $0.seen < Self.validity } ?? false
        if !isCaller, isFresh, let known { return known.sighting }
        if isFresh, let known,
            ProcessTable.isStill(known.sighting.process, running: known.sighting.program.executable)
        {
            return known.sighting
        }
        guard let fields = ProcessTable.fields(of: pid) else { return nil }
        let process = ProcessIdentity(pid: pid, started: fields.started)
        let executable = ProcessTable.executable(of: pid)
        if isFresh, let known, known.sighting.process == process, known.sighting.program.executable == executable {
            return known.sighting
        }
        let isInterpreter = executable.map { Interpreter(executable: $0) != nil } ?? false
        let program = Program(
            executable: executable,
            commandName: fields.name,
            script: isInterpreter ? .unread : .none
        )
        let sighting = Sighting(process: process, parent: fields.parent, program: program)
        remember(sighting)
        return sighting
    }

    private func note(_ words: [String], of sighting: Sighting) {
        var sighting = sighting
        let interpreter = sighting.program.executable.flatMap { Interpreter(executable: $0) }
        sighting.program.script = interpreter?.script(in: words).map { .named($0) } ?? .none
        remember(sighting)
    }

    private func remember(_ sighting: Sighting) {
        cache.withLock { cache in
            if cache.count >= Self.cacheLimit { cache = [:] }
            cache[sighting.process.pid] = Known(sighting: sighting, seen: .now)
        }
    }
}

/// Calls something once: when all that it waits for has happened, or earlier.
private final class Once: Sendable {
    private let state: Mutex<(remaining: Int, body: (@Sendable () -> Void)?)>

    init(count: Int, _ body: @escaping @Sendable () -> Void) { state = Mutex((count, body)) }

    func countDown() {
        let isLast = state.withLock { state in
            state.remaining -= 1
            return state.remaining <= 0
        }
        if isLast { end() }
    }

    func end() {
        let body = state.withLock { state in
            defer { state.body = nil }
            return state.body
        }
        body?()
    }
}
