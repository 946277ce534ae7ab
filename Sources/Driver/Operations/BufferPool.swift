import Glibc
import Synchronization

/// Page-aligned buffers of 1 MiB, the largest request: allocating them anew for each read costs more than the read.
///
/// Unchecked: a buffer is either in the pool or with the one request that took it.
final class BufferPool: @unchecked Sendable {
    static let size = 1 << 20
    private static let most = 32

    private struct Free: @unchecked Sendable { var buffers: [UnsafeMutableRawBufferPointer] = [] }
    /// A leaf: memory work only.
    private let free = Mutex(Free())

    /// - Parameter count: larger ones get a buffer of their own.
    func withBuffer<Result>(_ count: Int, _ body: (UnsafeMutableRawBufferPointer) -> Result) -> Result {
        guard count <= Self.size else {
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 4096)
            defer { buffer.deallocate() }
            return body(buffer)
        }
        let buffer = free.withLock { $0.buffers.popLast() } ?? .allocate(byteCount: Self.size, alignment: 4096)
        defer {
            let isKept = free.withLock { free in
                guard free.buffers.count < Self.most else { return false }
                free.buffers.append(buffer)
                return true
            }
            if !isKept { buffer.deallocate() }
        }
        return body(UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]))
    }

    deinit {
        for buffer in free.withLock({ $0.buffers }) { buffer.deallocate() }
    }
}
