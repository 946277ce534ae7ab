package import UbiquityModel

/// Cuts a content into chunks as `Chunker` does, and names them on other threads while it looks for the next ends.
///
/// 1. `append` takes the content block by block, each read into memory of its own, and emits chunks, in their order, once they are named.
/// 2. `finish` emits what is left and returns the manifest; the chunker is then of no further use.
/// If `read` or `emit` throws, so it is as well.
package struct ParallelChunker: ~Copyable {
    /// New bytes of a block.
    package static let blockSize = 2 * 1024 * 1024
    /// Blocks that are being named, or wait to be emitted.
    package static let blocksAhead = 6

    private let key: ContainerKey
    private let blocksAhead: Int
    private let submit: (@escaping @Sendable () -> Void) -> Void
    private var scanner = BoundaryScanner()
    private var manifest = Manifest()
    /// The beginning of a chunk whose end has not come yet lies at the start of this block.
    private var current = ChunkBlock()
    private var ahead: [ChunkBlock] = []
    private var unused: [ChunkBlock] = []

    /// - Parameters:
    ///   - blocksAhead: that are read while others are named.
    ///   - submit: makes another thread do this, none that waits for a chunker: `append` and `finish` wait for it, and must not be called
    ///     on one of those threads.
    package init(
        key: ContainerKey,
        blocksAhead: Int = ParallelChunker.blocksAhead,
        submit: @escaping (@escaping @Sendable () -> Void) -> Void
    ) {
        self.key = key
        self.blocksAhead = blocksAhead
        self.submit = submit
    }

    /// - Parameters:
    ///   - read: puts the content's next bytes, not more than a block's, into the buffer; returns how many.
    ///   - emit: gets each chunk; the buffer is valid only during the call.
    /// - Returns: what `read` returned.
    package mutating func append(
        read: (UnsafeMutableRawBufferPointer) throws -> Int,
        emit: (ChunkID, UnsafeRawBufferPointer) throws -> Void
    ) throws -> Int {
        let room = UnsafeMutableRawBufferPointer(start: current.bytes + current.count, count: Self.blockSize)
        let count = try read(room)
        guard count > 0 else { return count }
        var start = current.count
        current.count += count
        var begin = 0
        while start < current.count {
            let next = (current.bytes + start).assumingMemoryBound(to: UInt8.self)
            guard let length = scanner.scan(next, count: current.count - start) else { break }
            start += length
            current.chunks.append(begin..<start)
            begin = start
        }
        try send(from: begin, emit)
        return count
    }

    /// Emits all that is left, and names the content.
    package mutating func finish(
        emit: (ChunkID, UnsafeRawBufferPointer) throws -> Void
    ) throws -> (manifest: Manifest, content: ContentID) {
        if current.count > 0 {
            current.chunks.append(0..<current.count)
            try send(from: current.count, emit)
        }
        while !ahead.isEmpty { try emitFirst(emit) }
        return (manifest, contentID(of: manifest, key: key))
    }

    /// Has the chunks of the current block named; what follows them begins the next one.
    private mutating func send(
        from begin: Int,
        _ emit: (ChunkID, UnsafeRawBufferPointer) throws -> Void
    ) throws {
        guard !current.chunks.isEmpty else { return }
        while ahead.count >= blocksAhead { try emitFirst(emit) }
        let block = current
        current = unused.popLast() ?? ChunkBlock()
        current.begin(with: UnsafeRawBufferPointer(start: block.bytes + begin, count: block.count - begin))
        ahead.append(block)
        let key = key
        submit { block.name(key) }
    }

    private mutating func emitFirst(_ emit: (ChunkID, UnsafeRawBufferPointer) throws -> Void) throws {
        let block = ahead.removeFirst()
        for (range, id) in zip(block.chunks, block.names()) {
            manifest.entries.append(Manifest.Entry(chunk: id, length: UInt32(range.count)))
            try emit(id, UnsafeRawBufferPointer(start: block.bytes + range.lowerBound, count: range.count))
        }
        unused.append(block)
    }
}
