internal import NIOCore

/// A body that goes out piece by piece, each when the limit allows.
struct PacedBody<Pieces: Sequence<ByteBuffer> & Sendable>: AsyncSequence, Sendable {
    let pieces: Pieces
    let limiter: BandwidthLimiter

    struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate var pieces: Pieces.Iterator
        fileprivate let limiter: BandwidthLimiter

        mutating func next() async throws -> ByteBuffer? {
            guard let piece = pieces.next() else { return nil }
            // Others may have been sent meanwhile.
            while case let wait = limiter.wait(.up), wait > .zero { try await Task.sleep(for: wait) }
            limiter.note(piece.readableBytes, .up)
            return piece
        }
    }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(pieces: pieces.makeIterator(), limiter: limiter) }
}

/// Bytes in pieces, none of which is copied.
struct PiecesOfBytes: Sequence, IteratorProtocol, Sendable {
    static let pieceBytes = 64 * 1024

    private var rest: ByteBuffer

    init(_ bytes: ByteBuffer) { rest = bytes }

    mutating func next() -> ByteBuffer? {
        guard rest.readableBytes > 0 else { return nil }
        return rest.readSlice(length: Swift.min(Self.pieceBytes, rest.readableBytes))
    }
}
