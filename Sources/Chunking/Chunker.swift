internal import Crypto
package import UbiquityModel

/// Cuts a content into chunks and names them and the whole, in one pass.
///
/// 1. `append` takes the content in pieces of any length and emits each chunk as soon as its end is found; a chunk that
/// lies in one
///    piece is emitted from there without being copied.
/// 2. `finish` emits what is left and returns the manifest; the chunker is then as new.
/// If `emit` throws, the chunker is of no further use.
package struct Chunker: ~Copyable {
    private let authentication: HMAC<SHA256>
    /// The beginning of a chunk whose end has not come yet.
    private let pending = UnsafeMutableRawPointer.allocate(byteCount: Manifest.maximumChunkSize, alignment: 64)
    private var pendingCount = 0
    private var scanner = BoundaryScanner()
    private var manifest = Manifest()
    private let key: ContainerKey

    package init(key: ContainerKey) {
        self.key = key
        authentication = key.authentication
    }

    deinit { pending.deallocate() }

    /// Emits whole chunks; the buffer is valid only during the call.
    package mutating func append(
        _ bytes: UnsafeRawBufferPointer,
        emit: (ChunkID, UnsafeRawBufferPointer) throws -> Void
    ) rethrows {
        guard var next = bytes.baseAddress else { return }
        var rest = bytes.count
        while rest > 0 {
            // Never more than the pending chunk can still hold: the scanner ends a chunk at that length.
            let piece = pendingCount == 0 ? rest : min(rest, Manifest.maximumChunkSize - pendingCount)
            let end = scanner.scan(next.assumingMemoryBound(to: UInt8.self), count: piece)
            let used = end ?? piece
            if end != nil, pendingCount == 0 {
                try self.emit(UnsafeRawBufferPointer(start: next, count: used), emit)
            } else {
                (pending + pendingCount).copyMemory(from: next, byteCount: used)
                pendingCount += used
                if end != nil { try emitPending(emit) }
            }
            next += used
            rest -= used
        }
    }

    /// Emits the last chunk, if any is left, and names the content.
    package mutating func finish(
        emit: (ChunkID, UnsafeRawBufferPointer) throws -> Void
    ) rethrows -> (manifest: Manifest, content: ContentID) {
        if pendingCount > 0 { try emitPending(emit) }
        let finished = manifest
        manifest = Manifest()
        scanner = BoundaryScanner()
        return (finished, contentID(of: finished, key: key))
    }

    private mutating func emitPending(_ emit: (ChunkID, UnsafeRawBufferPointer) throws -> Void) rethrows {
        let count = pendingCount
        pendingCount = 0
        try self.emit(UnsafeRawBufferPointer(start: pending, count: count), emit)
    }

    private mutating func emit(
        _ chunk: UnsafeRawBufferPointer,
        _ emit: (ChunkID, UnsafeRawBufferPointer) throws -> Void
    ) rethrows {
        let id = chunkID(of: chunk, authentication: authentication)
        manifest.entries.append(Manifest.Entry(chunk: id, length: UInt32(chunk.count)))
        try emit(id, chunk)
    }
}
