internal import NIOCore

/// A body that goes out piece by piece, each when the limit allows; below a limit, in small ones.
///
/// The pauses count as time in which nothing was sent, after which a request is given up: so those that share a limit take turns.
struct PacedBody<Pieces: Sequence<ByteBuffer> & Sendable>: AsyncSequence, Sendable {
    let pieces: Pieces
    let limiter: BandwidthLimiter

    struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate var pieces: Pieces.Iterator
        fileprivate let limiter: BandwidthLimiter
        /// Of the last piece, what has not gone out.
        fileprivate var rest = ByteBuffer()

        mutating func next() async throws -> ByteBuffer? {
            while rest.readableBytes == 0 {
                guard let piece = pieces.next() else { return nil }
                rest = piece
            }
            let most = limiter.isLimited ? BandwidthLimiter.smallPiece : rest.readableBytes
            guard let piece = rest.readSlice(length: Swift.min(most, rest.readableBytes)) else { return nil }
            let wait = limiter.reserve(piece.readableBytes, .up)
            if wait > .zero { try await Task.sleep(for: wait) }
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
