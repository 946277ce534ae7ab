internal import Crypto
package import UbiquityModel

/// Cuts a content into chunks as `Chunker` does, along those that a former content had.
///
/// Where a chunk of the former content is, at the length that it had, the end of that chunk is the end that would be found: it depends on
/// the chunk's own bytes only. So nothing is searched there, and several threads read and name at the same time. Where it is not, ends are
/// searched until a chunk turns up that the former content had, and from there on the next ones are guessed again.
package struct GuidedChunker {
    /// Puts bytes of the content into the buffer, from a place on. Called by several threads at a time.
    /// - Returns: how many; fewer only if the content has ended; below zero: the negated error number.
    package typealias Read = @Sendable (UnsafeMutableRawBufferPointer, _ at: Int64) -> Int

    package enum Failure: Error {
        /// There is less than the size that was told.
        case ended
        case system(Int32)
    }

    /// Whatever has so little in common with what it was is not guessed at any more.
    private static let mostMisses = 32

    private let key: ContainerKey
    private let former: [Manifest.Entry]
    private let size: Int64
    private let blocksAhead: Int
    private let submit: (@escaping @Sendable () -> Void) -> Void
    private let read: Read
    /// Where a chunk first was in the former content. Made when it is first asked for.
    private lazy var places: [ChunkID: Int] = Dictionary(
        former.indices.map { (former[$0].chunk, $0) },
        uniquingKeysWith: { first, _ in first }
    )
    private var manifest = Manifest()
    private var offset: Int64 = 0
    /// The former chunk that is guessed to come next; none at the end.
    private var guess = 0
    private var misses = 0
    /// Bytes in which ends were searched.
    private(set) var searched: Int64 = 0

    /// - Parameters:
    ///   - size: of the content, in bytes.
    ///   - blocksAhead: as `ParallelChunker` has it.
    ///   - submit: as `ParallelChunker` has it.
    package init(
        key: ContainerKey,
        former: Manifest,
        size: Int64,
        blocksAhead: Int = ParallelChunker.blocksAhead,
        submit: @escaping (@escaping @Sendable () -> Void) -> Void,
        read: @escaping Read
    ) {
        self.key = key
        self.former = former.entries
        self.size = size
        self.blocksAhead = blocksAhead
        self.submit = submit
        self.read = read
    }

    /// Reads and cuts all of it. To be called once.
    /// - Parameter emit: gets each chunk, in their order; the buffer is valid only during the call.
    /// - Throws: `Failure`, or what `emit` throws.
    package mutating func cut(
        emit: (ChunkID, UnsafeRawBufferPointer) throws -> Void
    ) throws -> (manifest: Manifest, content: ContentID) {
        while offset < size {
            let isGuess = !guessed(from: guess, at: offset).isEmpty
            if isGuess { try follow(emit) } else { try search(emit) }
        }
        return (manifest, contentID(of: manifest, key: key))
    }

    private mutating func take(
        _ id: ChunkID,
        _ bytes: UnsafeRawBufferPointer,
        _ emit: (ChunkID, UnsafeRawBufferPointer) throws -> Void
    ) throws {
        manifest.entries.append(Manifest.Entry(chunk: id, length: UInt32(bytes.count)))
        offset += Int64(bytes.count)
        try emit(id, bytes)
    }

    // MARK: Guessing

    /// The former chunks from one on that may lie there and fit into a block.
    private func guessed(from first: Int, at start: Int64) -> Range<Int> {
        var end = first
        var length: Int64 = 0
        while end < former.count {
            let next = length + Int64(former[end].length)
            guard next <= ParallelChunker.blockSize, start + next <= size else { break }
            // The last one ended with its content, wherever that was.
            if end == former.count - 1, start + next != size { break }
            length = next
            end += 1
        }
        return first..<end
    }

    /// Goes on as long as it is what it was.
    private mutating func follow(_ emit: (ChunkID, UnsafeRawBufferPointer) throws -> Void) throws {
        var ahead: [(block: ChunkBlock, entries: Range<Int>)] = []
        // They read what may be closed after this.
        defer { for (block, _) in ahead { _ = block.names() } }
        var (next, start) = (guess, offset)
        while true {
            while ahead.count < blocksAhead {
                let entries = guessed(from: next, at: start)
                guard !entries.isEmpty else { break }
                ahead.append((begin(entries, at: start), entries))
                next = entries.upperBound
                start += entries.reduce(0) { $0 + Int64(former[$1].length) }
            }
            guard !ahead.isEmpty else { return }
            let (block, entries) = ahead.removeFirst()
            let names = block.names()
            if let failure = block.failure { throw failure }
            for (number, (range, id)) in zip(entries, zip(block.chunks, names)) {
                guard id == former[number].chunk else {
                    misses += 1
                    guess = former.count
                    return
                }
                guess = number + 1
                try take(id, UnsafeRawBufferPointer(start: block.bytes + range.lowerBound, count: range.count), emit)
            }
        }
    }

    private func begin(_ entries: Range<Int>, at start: Int64) -> ChunkBlock {
        let block = ChunkBlock()
        for entry in former[entries] {
            block.chunks.append(block.count..<block.count + Int(entry.length))
            block.count += Int(entry.length)
        }
        let (key, read) = (key, read)
        submit {
            var done = 0
            while done < block.count {
                let rest = UnsafeMutableRawBufferPointer(start: block.bytes + done, count: block.count - done)
                let count = read(rest, start + Int64(done))
                guard count > 0 else {
                    block.fail(count == 0 ? .ended : .system(Int32(-count)))
                    return
                }
                done += count
            }
            block.name(key)
        }
        return block
    }

    // MARK: Searching

    /// Goes on until something is there that was there before.
    private mutating func search(_ emit: (ChunkID, UnsafeRawBufferPointer) throws -> Void) throws {
        var chunker = ParallelChunker(key: key, blocksAhead: blocksAhead, submit: submit)
        var start = offset
        var known: Int?
        func emitOne(_ id: ChunkID, _ bytes: UnsafeRawBufferPointer) throws {
            // What was cut ahead is cut again, from here.
            guard known == nil else { return }
            try take(id, bytes, emit)
            guard misses < Self.mostMisses, let place = places[id] else { return }
            if !guessed(from: place + 1, at: offset).isEmpty { known = place + 1 }
        }
        while start < size, known == nil {
            let count = try chunker.append(
                read: { room in
                    let count = read(room, start)
                    if count < 0 { throw Failure.system(Int32(-count)) }
                    if count == 0 || start + Int64(count) > size { throw Failure.ended }
                    return count
                },
                emit: emitOne
            )
            start += Int64(count)
            searched += Int64(count)
        }
        if known == nil { _ = try chunker.finish(emit: emitOne) }
        guess = known ?? former.count
    }
}
