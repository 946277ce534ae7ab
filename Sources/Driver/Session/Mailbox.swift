import CFuse3
import Glibc

/// A queue that threads wait on.
///
/// Unchecked: `elements` and `isClosed` are touched only while `mutex` is held; the mutex and the condition live as long as the object.
/// The mutex is a leaf: memory work only.
final class Mailbox<Element: Sendable>: @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var incoming: [Element] = []
    /// In reverse order: taken from the end.
    private var outgoing: [Element] = []
    private var isClosed = false

    init() {
        pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(condition, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(mutex)
        condition.deallocate()
        mutex.deallocate()
    }

    private func withLock<Result>(_ body: () -> Result) -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return body()
    }

    /// False once the mailbox is closed: the element was not taken.
    @discardableResult
    func push(_ element: Element) -> Bool {
        withLock {
            guard !isClosed else { return false }
            incoming.append(element)
            pthread_cond_signal(condition)
            return true
        }
    }

    enum Received {
        case element(Element)
        case timedOut, closed
    }

    /// Waits for the next element; what was pushed before the closing still comes.
    /// - Parameter milliseconds: how long at most; nil for ever.
    func next(milliseconds: Int? = nil) -> Received {
        var deadline = timespec()
        if let milliseconds {
            clock_gettime(CLOCK_MONOTONIC, &deadline)
            let nanoseconds = deadline.tv_nsec + milliseconds % 1000 * 1_000_000
            deadline.tv_sec += milliseconds / 1000 + nanoseconds / 1_000_000_000
            deadline.tv_nsec = nanoseconds % 1_000_000_000
        }
        return withLock {
            while true {
                if let element = take() { return .element(element) }
                if isClosed { return .closed }
                if milliseconds == nil {
                    pthread_cond_wait(condition, mutex)
                } else if pthread_cond_timedwait(condition, mutex, &deadline) == ETIMEDOUT {
                    return take().map { .element($0) } ?? .timedOut
                }
            }
        }
    }

    /// The next element, if one is there.
    func poll() -> Element? { withLock { take() } }

    func close() {
        withLock {
            isClosed = true
            pthread_cond_broadcast(condition)
        }
    }

    private func take() -> Element? {
        if outgoing.isEmpty {
            outgoing = incoming.reversed()
            incoming.removeAll()
        }
        return outgoing.popLast()
    }
}
