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

    func takeKept() -> [Handle] {
        kept.withLock { kept in
            defer { kept = [] }
            return kept
        }
    }

    func close() { wakeups.close() }

    /// Runs until it is closed.
    func run(_ filesystem: Filesystem) {
        var hasWriters = false
        var pause = Self.milliseconds
        while true {
            switch wakeups.next(milliseconds: hasWriters ? pause : nil) {
            case .closed: return
            // The first one: it is looked at a second from now.
            case .element(.writer): hasWriters = true
            case .element(.kept):
                hasWriters = true
                pause = Self.firstMilliseconds
            case .timedOut:
                pause = min(pause * 2, Self.milliseconds)
                isAwake.store(false, ordering: .relaxed)
                hasWriters = look(filesystem)
                if hasWriters { isAwake.store(true, ordering: .relaxed) }
            }
        }
    }

    private func look(_ filesystem: Filesystem) -> Bool {
        let writers = filesystem.open.directWriters
        for handle in writers { filesystem.noteDirectWriting(handle) }
        let closed = takeKept()
        for handle in closed {
            if filesystem.outlives(handle) {
                filesystem.noteDirectWriting(handle)
                kept.withLock { $0.append(handle) }
            } else {
                filesystem.released(handle)
            }
        }
        return !writers.isEmpty || kept.withLock { !$0.isEmpty }
    }
}
