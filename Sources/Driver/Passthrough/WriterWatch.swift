import CFuse3
import Glibc
import Synchronization

/// Looks at files that programs keep open for writing with passthrough: their writes, and stores to their mappings, reach the disk without
/// any request. Those that are closed soon are looked at then; the others once a second, which costs one fstat each.
///
/// (inotify on the backing files would tell of writes, at the price of two calls for each open, and nothing tells of mapped stores.)
final class WriterWatch: Sendable {
    private static let milliseconds = 1000
    /// A program that closes a file, or ends, gives the backing file up a moment after its handle.
    private static let firstMilliseconds = 2
    private let wakeups = Mailbox<Reason>()
    private let isAwake = Atomic(false)
    /// Handles that were closed while mappings of theirs live on: writers, until those are gone. A leaf: memory work only.
    private let kept = Mutex<[Handle]>([])

    private enum Reason { case writer, kept }

    /// A file was opened for writing. Wakes the thread at most once a second.
    func noteWriter() {
        if !isAwake.exchange(true, ordering: .relaxed) { wakeups.push(.writer) }
    }

    func keep(_ handle: Handle) {
        kept.withLock { $0.append(handle) }
        isAwake.store(true, ordering: .relaxed)
        wakeups.push(.kept)
    }

    /// Writers that no handle tells of any more.
    var keptHandles: [Handle] { kept.withLock { $0 } }

    func takeKept() -> [Handle] {
        kept.withLock { kept in
            defer { kept = [] }
            return kept
        }
    }

    func close() { wakeups.close() }

    /// Runs until it is closed.
    func run(_ filesystem: Filesystem) {
        var pause = Self.milliseconds
        var first = Self.firstMilliseconds
        // Of the next look, by `now`; nil while there is nothing to look at.
        var due: Int?
        while true {
            if let moment = due, moment <= Self.now {
                pause = min(pause * 2, Self.milliseconds)
                isAwake.store(false, ordering: .relaxed)
                let hasWriters = look(filesystem)
                if hasWriters { isAwake.store(true, ordering: .relaxed) }
                // Where very many are kept, and more come all the time, looking takes no more than half of the time.
                first = max(Self.firstMilliseconds, Self.now - moment)
                due = hasWriters ? Self.now + pause : nil
            }
            switch wakeups.next(milliseconds: due.map { max(0, $0 - Self.now) }) {
            case .closed: return
            // The first one: it is looked at a second from now.
            case .element(.writer): due = due ?? Self.now + Self.milliseconds
            // Others that come may bring the look forward, never put it off.
            case .element(.kept):
                pause = first
                due = min(due ?? .max, Self.now + first)
            case .timedOut: break
            }
        }
    }

    /// Milliseconds of a clock that only goes forward.
    private static var now: Int {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int(time.tv_sec) * 1000 + Int(time.tv_nsec) / 1_000_000
    }

    private func look(_ filesystem: Filesystem) -> Bool {
        let writers = filesystem.open.directWriters
        for handle in writers { filesystem.noteDirectWriting(handle) }
        var ended: [Handle] = []
        for handle in keptHandles {
            if filesystem.outlives(handle) {
                filesystem.noteDirectWriting(handle)
            } else {
                ended.append(handle)
            }
        }
        if !ended.isEmpty {
            // First: who hears that it is closed asks who is left.
            let gone = Set(ended.map { ObjectIdentifier($0) })
            kept.withLock { $0.removeAll { gone.contains(ObjectIdentifier($0)) } }
            for handle in ended { filesystem.releasedLate(handle) }
        }
        return !writers.isEmpty || kept.withLock { !$0.isEmpty }
    }
}
