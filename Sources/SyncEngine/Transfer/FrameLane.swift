import Chunking
import Synchronization

/// Frames of one answer on their way through the blocking pool: verified some at a time, then stored one after the other, and nothing
/// more after a failure.
///
/// Storing goes into one place, which takes one writer at a time: whoever has verified frames while another thread stores leaves them to
/// that thread, instead of waiting for it. Of small frames a thread takes many at a time, so that none is woken for each.
final class FrameLane<Verified: Sendable>: Sendable {
    private struct State: Sendable {
        /// Frames that were handed over and have not ended, and their bytes.
        var running = 0
        var runningBytes = 0
        /// Handed over, and not yet taken by a thread.
        var waiting: [ChunkFrame] = []
        var waitingBytes = 0
        /// Threads that take frames.
        var workers = 0
        var failure: FillError?
        /// Verified, and waiting to be stored.
        var verified: [(Verified, bytes: Int)] = []
        var isStoring = false
        /// Whoever waits for room; there is one at a time.
        var waitsForRoom: (@Sendable () -> Void)?
        var waitsForEnd: CheckedContinuation<Void, Never>?
    }

    /// Bytes at a time: enough for the pool's threads, and little memory.
    private static var width: Int { 1024 * 1024 }
    private static var workers: Int { 4 }
    /// A thread takes frames of so many plain bytes at a time, and one frame at least: of large chunks two, which are verified together
    /// in little more time than one.
    private static var share: Int { 256 * 1024 }

    private let state = Mutex(State())
    private let verify: @Sendable ([ChunkFrame]) -> [Result<Verified, FillError>]
    private let store: @Sendable ([Verified]) throws(FillError) -> Void

    /// - Parameters:
    ///   - verify: gives one result for each; on any number of threads at a time.
    ///   - store: in any order, but never two at a time.
    init(
        verify: @escaping @Sendable ([ChunkFrame]) -> [Result<Verified, FillError>],
        store: @escaping @Sendable ([Verified]) throws(FillError) -> Void
    ) {
        self.verify = verify
        self.store = store
    }

    /// Hands a frame over. Never blocks.
    /// - Throws: the failure of a frame before it.
    func add(_ frame: ChunkFrame) throws(FillError) {
        let (failure, isNeeded): (FillError?, Bool) = state.withLock { state in
            if let failure = state.failure { return (failure, false) }
            state.running += 1
            state.runningBytes += frame.data.count
            state.waiting.append(frame)
            state.waitingBytes += frame.data.count
            // Those at work come for what is little.
            let isNeeded =
                state.workers == 0 || state.workers < Self.workers && state.waitingBytes > Self.share * state.workers
            if isNeeded { state.workers += 1 }
            return (nil, isNeeded)
        }
        if let failure { throw failure }
        if isNeeded { BlockingPool.shared.submit { [self] in run() } }
    }

    /// Calls `resume` once, when there is room for more frames, or after a failure.
    func whenReady(_ resume: @escaping @Sendable () -> Void) {
        let isReady = state.withLock { state in
            if state.runningBytes < Self.width || state.failure != nil { return true }
            state.waitsForRoom = resume
            return false
        }
        if isReady { resume() }
    }

    /// Waits for all that were handed over; nothing more may be.
    /// - Returns: the first failure.
    func end() async -> FillError? {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if state.running == 0 { return true }
                state.waitsForEnd = continuation
                return false
            }
            if isOver { continuation.resume() }
        }
        return state.withLock { $0.failure }
    }

    // MARK: On the pool's threads

    private func run() {
        while let frames = takeShare() {
            var verified: [(Verified, bytes: Int)] = []
            for (frame, result) in zip(frames, verify(frames)) {
                switch result {
                case .success(let one): verified.append((one, frame.data.count))
                case .failure(let error): ended(1, frame.data.count, error)
                }
            }
            storeWhatIsVerified(with: verified)
        }
    }

    /// The next frames for a thread; `nil` when there are none, and the thread is not at work any more.
    private func takeShare() -> [ChunkFrame]? {
        state.withLock { state in
            guard !state.waiting.isEmpty else {
                state.workers -= 1
                return nil
            }
            var (count, bytes) = (0, 0)
            while count < state.waiting.count, bytes < Self.share {
                bytes += Int(state.waiting[count].length)
                count += 1
            }
            let share = Array(state.waiting[..<count])
            state.waiting.removeFirst(count)
            state.waitingBytes -= share.reduce(0) { $0 + $1.data.count }
            return share
        }
    }

    private func storeWhatIsVerified(with news: [(Verified, bytes: Int)]) {
        var batch = state.withLock { state in
            state.verified += news
            return takeBatch(&state)
        }
        while !batch.isEmpty {
            var failure: FillError?
            do throws(FillError) { try store(batch.map(\.0)) } catch { failure = error }
            let (count, bytes) = (batch.count, batch.reduce(0) { $0 + $1.bytes })
            batch = state.withLock { state in
                state.isStoring = false
                return takeBatch(&state)
            }
            ended(count, bytes, failure)
        }
    }

    /// What there is to be stored, if nobody is at it.
    private func takeBatch(_ state: inout State) -> [(Verified, bytes: Int)] {
        guard !state.isStoring, !state.verified.isEmpty else { return [] }
        state.isStoring = true
        defer { state.verified = [] }
        return state.verified
    }

    private func ended(_ count: Int, _ bytes: Int, _ failure: FillError?) {
        let (resume, end): ((@Sendable () -> Void)?, CheckedContinuation<Void, Never>?) = state.withLock { state in
            state.running -= count
            state.runningBytes -= bytes
            if state.failure == nil { state.failure = failure }
            var resume: (@Sendable () -> Void)?
            if state.runningBytes <= Self.width / 2 || state.failure != nil {
                resume = state.waitsForRoom
                state.waitsForRoom = nil
            }
            guard state.running == 0 else { return (resume, nil) }
            defer { state.waitsForEnd = nil }
            return (resume, state.waitsForEnd)
        }
        resume?()
        end?.resume()
    }
}
