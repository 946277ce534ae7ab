internal import Dispatch
internal import UbiquityModel

/// Some chunks, one after the other.
///
/// `@unchecked Sendable`: whoever cuts prepares it before it is submitted, and looks at it again only after `named` was signalled; the
/// memory is freed with the last reference.
final class ChunkBlock: @unchecked Sendable {
    // One chunk at most is carried over from the block before.
    let bytes = UnsafeMutableRawPointer.allocate(
        byteCount: Manifest.maximumChunkSize + ParallelChunker.blockSize,
        alignment: 4096
    )
    var count = 0
    var chunks: [Range<Int>] = []
    private var ids: [ChunkID] = []
    /// Why it has no names.
    private(set) var failure: GuidedChunker.Failure?
    private let named = DispatchSemaphore(value: 0)

    deinit { bytes.deallocate() }

    func begin(with rest: UnsafeRawBufferPointer) {
        chunks.removeAll(keepingCapacity: true)
        count = rest.count
        if let start = rest.baseAddress { bytes.copyMemory(from: start, byteCount: rest.count) }
    }

    func name(_ key: ContainerKey) {
        let plains = chunks.map { range in
            UnsafeRawBufferPointer(start: bytes + range.lowerBound, count: range.count)
        }
        ids = chunkIDs(of: plains, key: key)
        named.signal()
    }

    func fail(_ failure: GuidedChunker.Failure) {
        self.failure = failure
        named.signal()
    }

    /// Waits for them. To be asked once.
    func names() -> [ChunkID] {
        named.wait()
        return ids
    }
}
