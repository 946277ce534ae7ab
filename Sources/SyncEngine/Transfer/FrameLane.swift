import Chunking
import Synchronization

/// Frames of one answer on their way through the blocking pool: verified some at a time, then stored one after the other, and nothing
/// more after a failure.
///
/// Storing goes into one file, which takes one writer at a time: whoever has verified a frame while another thread stores leaves it
/// to that thread, instead of waiting for it.
final class FrameLane<Verified: Sendable>: Sendable {
    private struct State: Sendable {
        /// Frames that were handed over and have not ended.
        var running = 0
        var failure: FillError?
        /// Verified, and waiting to be stored.
        var verified: [Verified] = []
        var isStoring = false
        /// Whoever waits for room; there is one at a time.
        var waitsForRoom: (@Sendable () -> Void)?
        var waitsForEnd: CheckedContinuation<Void, Never>?
    }

    /// Frames at a time: enough for the pool's threads, and little memory.
    private static var width: Int { 6 }

    private let state = Mutex(State())
    private let verify: @Sendable (ChunkFrame) throws(FillError) -> Verified
    private let store: @Sendable ([Verified]) throws(FillError) -> Void

    /// - Parameters:
    ///   - verify: of any number of frames at a time.
    ///   - store: in any order, but never two at a time.
    init(
        verify: @escaping @Sendable (ChunkFrame) throws(FillError) -> Verified,
        store: @escaping @Sendable ([Verified]) throws(FillError) -> Void
    ) {
        self.verify = verify
        self.store = store
    }

    /// Hands a frame over. Never blocks.
    /// - Throws: the failure of a frame before it.
    func add(_ frame: ChunkFrame) throws(FillError) {
        let failure: FillError? = state.withLock { state in
            if state.failure == nil { state.running += 1 }
            return state.failure
        }
        if let failure { throw failure }
        BlockingPool.shared.submit { [self] in run(frame) }
    }

    /// Calls `resume` once, when there is room for more frames, or after a failure.
    func whenReady(_ resume: @escaping @Sendable () -> Void) {
        let isReady = state.withLock { state in
            if state.running < Self.width || state.failure != nil { return true }
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

    private func run(_ frame: ChunkFrame) {
        let verified: Verified
        do throws(FillError) { verified = try verify(frame) } catch { return ended(1, error) }
        var batch = state.withLock { state in
            state.verified.append(verified)
            return takeBatch(&state)
        }
        while !batch.isEmpty {
            var failure: FillError?
            do throws(FillError) { try store(batch) } catch { failure = error }
            let count = batch.count
            batch = state.withLock { state in
                state.isStoring = false
                return takeBatch(&state)
            }
            ended(count, failure)
        }
    }

    /// What there is to be stored, if nobody is at it.
    private func takeBatch(_ state: inout State) -> [Verified] {
        guard !state.isStoring, !state.verified.isEmpty else { return [] }
        state.isStoring = true
        defer { state.verified = [] }
        return state.verified
    }

    private func ended(_ count: Int, _ failure: FillError?) {
        let (resume, end): ((@Sendable () -> Void)?, CheckedContinuation<Void, Never>?) = state.withLock { state in
            state.running -= count
            if state.failure == nil { state.failure = failure }
            var resume: (@Sendable () -> Void)?
            if state.running <= Self.width / 2 || state.failure != nil {
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
