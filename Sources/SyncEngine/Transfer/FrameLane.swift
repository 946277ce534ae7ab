import Chunking
import Synchronization

/// Frames of one answer on their way through the blocking pool: some at a time, and nothing more after a failure.
final class FrameLane: Sendable {
    private struct State: Sendable {
        var running = 0
        var failure: FillError?
        /// Whoever waits for room, or for the end; there is one at a time.
        var waiting: CheckedContinuation<Void, Never>?
        var wakesAt = 0
    }

    /// Frames at a time: enough for the pool's threads, and little memory.
    private static let width = 4

    private let state = Mutex(State())
    private let body: @Sendable (ChunkFrame) -> FillError?

    init(_ body: @escaping @Sendable (ChunkFrame) -> FillError?) { self.body = body }

    /// Hands a frame over, once there is room. Called by one task.
    /// - Throws: the failure of a frame before it.
    func add(_ frame: ChunkFrame) async throws(FillError) {
        await wait(until: Self.width - 1)
        let failure: FillError? = state.withLock { state in
            if state.failure == nil { state.running += 1 }
            return state.failure
        }
        if let failure { throw failure }
        BlockingPool.shared.submit { [self] in ended(body(frame)) }
    }

    /// Waits for all that were handed over.
    /// - Returns: the first failure.
    func end() async -> FillError? {
        await wait(until: 0)
        return state.withLock { $0.failure }
    }

    private func wait(until running: Int) async {
        guard state.withLock({ $0.running > running }) else { return }
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if state.running <= running { return true }
                state.waiting = continuation
                state.wakesAt = running
                return false
            }
            if isOver { continuation.resume() }
        }
    }

    private func ended(_ failure: FillError?) {
        let woken: CheckedContinuation<Void, Never>? = state.withLock { state in
            state.running -= 1
            if state.failure == nil { state.failure = failure }
            guard state.running <= state.wakesAt else { return nil }
            defer { state.waiting = nil }
            return state.waiting
        }
        woken?.resume()
    }
}
