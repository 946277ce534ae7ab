import Synchronization
import UbiquityModel

/// Chunks that a commit did not find in the cloud although it has a content with them, as after it was restored from a backup: they are
/// not taken for known again.
final class LostChunks: Sendable {
    private static let limit = 100_000

    private struct State: Sendable {
        var chunks: Set<ChunkID> = []
        /// Too many to be remembered: none is taken for known any more.
        var isFull = false
    }

    /// Guards memory only; a leaf in the order of locks.
    private let state = Mutex(State())

    func note(_ chunks: [ChunkID]) {
        state.withLock { state in
            state.chunks.formUnion(chunks)
            if state.chunks.count > Self.limit {
                state.chunks = []
                state.isFull = true
            }
        }
    }

    func without(_ chunks: Set<ChunkID>) -> Set<ChunkID> {
        state.withLock { state in state.isFull ? [] : chunks.subtracting(state.chunks) }
    }
}
