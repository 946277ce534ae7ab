import Glibc
import Synchronization

/// Decides which of a session's threads reads the next request.
///
/// Only one at a time sleeps in the kernel for a request, and answers it itself before it reads again. The kernel wakes its sleepers in
/// turn: with ten of them every request would go to the thread that has slept longest, on whatever processor, and cost half as much again
/// (create 200 to 250 us against 110 to 130, unlink 85 to 125 against 55 to 65, measured on a virtual machine of two processors).
///
/// Another thread begins to read
/// 1. before a request is answered that surely takes longer: `Work.isLong`;
/// 2. when requests have been waiting in the kernel for a while, on machines that could answer them side by side;
/// 3. when nobody has read for a whole tick of `watch`, because the disk is slow.
///
/// What does not belong here: what a request means. The session says of each whether it is long.
///
/// Unchecked: the mutex and the condition live at fixed addresses as long as the object; `parked`, `permits` and `isEnded` are touched only
/// with the mutex held. Nothing is locked under it, and no system call made but the condition's own.
final class ReaderPool: @unchecked Sendable {
    /// What a thread has read.
    struct Work {
        /// It goes to the disk, or moves many bytes.
        var isLong: Bool
        /// More requests were waiting when it had been read.
        var isFollowed: Bool
    }

    /// A thread that answers for longer than this, at most twice this, is replaced as reader.
    private static let milliseconds = 2
    /// Without a request for so many ticks, the watch sleeps.
    private static let restlessTicks = 25
    /// So many requests in a row had others behind them.
    private static let backlogLimit = 8

    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let unparked = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var parked = 0
    private var permits = 0
    private var isEnded = false

    /// Threads that are in `read`, or on their way there.
    private let reading = Atomic(0)
    private let requests = Atomic<UInt64>(0)
    private let backlog = Atomic(0)
    private let watchSleeps = Atomic(false)
    private let wakeups = Mailbox<Void>()

    init() {
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(unparked, nil)
    }

    deinit {
        pthread_cond_destroy(unparked)
        pthread_mutex_destroy(mutex)
        unparked.deallocate()
        mutex.deallocate()
    }

    /// Waits until this thread shall read. `gotWork`, or `gotNothing`, must follow. False: it is over.
    /// - Parameter leave: what this thread had put off until it reads, done when another one does: that one may sleep for long.
    func waitForTurn(leaving leave: () -> Void) -> Bool {
        if takeTurn() { return true }
        leave()
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        // Once more under the mutex: whoever gave the turn up since then has looked for somebody to unpark, or will see us parked.
        while !isEnded, !takeTurn() {
            parked += 1
            while permits == 0, !isEnded { pthread_cond_wait(unparked, mutex) }
            parked -= 1
            if permits > 0 { permits -= 1 }
        }
        return !isEnded
    }

    private func takeTurn() -> Bool {
        reading.compareExchange(expected: 0, desired: 1, ordering: .acquiringAndReleasing).exchanged
    }

    /// The thread was woken for nothing, and asks for its turn again.
    func gotNothing() { reading.store(0, ordering: .releasing) }

    /// The thread goes on to answer, and then asks for its turn again.
    func gotWork(_ work: Work) {
        reading.store(0, ordering: .sequentiallyConsistent)
        requests.add(1, ordering: .relaxed)
        if work.isFollowed {
            let count = backlog.add(1, ordering: .relaxed).newValue
            if count >= Self.backlogLimit {
                backlog.store(0, ordering: .relaxed)
                unparkOne()
            }
        } else if backlog.load(ordering: .relaxed) != 0 {
            backlog.store(0, ordering: .relaxed)
        }
        if work.isLong { unparkOne() }
        if watchSleeps.load(ordering: .sequentiallyConsistent), watchSleeps.exchange(false, ordering: .relaxed) {
            wakeups.push(())
        }
    }

    private func unparkOne() {
        pthread_mutex_lock(mutex)
        if permits < parked {
            permits += 1
            pthread_cond_signal(unparked)
        }
        pthread_mutex_unlock(mutex)
    }

    /// Everybody's wait ends, now and later.
    func end() {
        pthread_mutex_lock(mutex)
        isEnded = true
        pthread_cond_broadcast(unparked)
        pthread_mutex_unlock(mutex)
        wakeups.close()
    }

    // MARK: The watch

    /// On a thread of its own until `end`: sees to it that somebody reads.
    func watch() {
        var known = requests.load(ordering: .relaxed)
        var quiet = 0
        while true {
            let isQuiet = quiet >= Self.restlessTicks && mayRest()
            if case .closed = wakeups.next(milliseconds: isQuiet ? nil : Self.milliseconds) { return }
            let count = requests.load(ordering: .relaxed)
            if count != known {
                quiet = 0
            } else if reading.load(ordering: .acquiring) == 0 {
                // The same request as a tick ago.
                unparkOne()
                quiet = 0
            } else {
                quiet += 1
            }
            known = count
        }
    }

    /// Whether somebody is in `read`, who will see that the watch sleeps and wake it.
    private func mayRest() -> Bool {
        watchSleeps.store(true, ordering: .sequentiallyConsistent)
        if reading.load(ordering: .sequentiallyConsistent) != 0 { return true }
        watchSleeps.store(false, ordering: .relaxed)
        return false
    }
}
