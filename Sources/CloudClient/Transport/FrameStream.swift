internal import AsyncHTTPClient
internal import Chunking
internal import CloudProtocol
internal import NIOCore
internal import NIOHTTP1
internal import Synchronization
internal import UbiquityModel

/// The answer to one question for chunks: takes the frames out of it on the connection's own thread, and hands them on from there.
///
/// So a gigabyte costs no changes of threads but those of its receiver. And the buffer in which bytes were decrypted is free when this
/// returns: kept for longer, NIOSSL copies it whole, used or not, before it decrypts what follows.
final class FrameStream: HTTPClientResponseDelegate {
    private struct State {
        var decoder = LengthPrefixedDecoder(limit: LengthPrefix.longestFrame)
        var awaited: ArraySlice<ChunkID>
        /// The server's answer is no success: what it says instead.
        var refusal: (head: HTTPResponseHead, body: ByteBuffer)?
        var hasBegun = false
    }

    /// Guards memory only; only the connection's thread uses it while the answer comes.
    private let state: Mutex<State>
    private let count: Int
    private let server: String
    private let whenReady: @Sendable (@escaping @Sendable () -> Void) -> Void
    private let receive: @Sendable (ChunkFrame) throws -> Void

    /// - Parameter server: for people.
    init(
        chunks: [ChunkID],
        server: String,
        whenReady: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void,
        receive: @escaping @Sendable (ChunkFrame) throws -> Void
    ) {
        state = Mutex(State(awaited: chunks[...]))
        count = chunks.count
        self.server = server
        self.whenReady = whenReady
        self.receive = receive
    }

    /// Whether anything of an answer has come.
    var hasBegun: Bool { state.withLock { $0.hasBegun } }

    func didReceiveHead(task: HTTPClient.Task<Void>, _ head: HTTPResponseHead) -> EventLoopFuture<Void> {
        state.withLock { state in
            state.hasBegun = true
            if !(200..<300).contains(head.status.code) { state.refusal = (head, ByteBuffer()) }
        }
        return task.eventLoop.makeSucceededVoidFuture()
    }

    func didReceiveBodyPart(task: HTTPClient.Task<Void>, _ buffer: ByteBuffer) -> EventLoopFuture<Void> {
        do {
            for frame in try frames(in: buffer) {
                // The receiver's own failure ends the fetch; what it was the receiver knows.
                do { try receive(frame) } catch { throw error as? CloudError ?? .cancelled }
            }
        } catch { return task.eventLoop.makeFailedFuture(error) }
        let isReady = task.eventLoop.makePromise(of: Void.self)
        whenReady { isReady.succeed() }
        return isReady.futureResult
    }

    /// The frames that are whole now.
    private func frames(in buffer: ByteBuffer) throws -> [ChunkFrame] {
        try state.withLock { state in
            guard state.refusal == nil else {
                state.refusal?.body.writeImmutableBuffer(buffer)
                guard state.refusal?.body.readableBytes ?? 0 <= Transport.longestFailure else {
                    throw NIOTooManyBytesError(maxBytes: Transport.longestFailure)
                }
                return []
            }
            buffer.withUnsafeReadableBytes { state.decoder.append($0) }
            var frames = [ChunkFrame]()
            while let message = try state.decoder.next() {
                let frame = try ChunkFrame(body: message)
                guard frame.chunk == state.awaited.popFirst() else {
                    throw CloudError.malformed("a chunk that was not asked for")
                }
                frames.append(frame)
            }
            return frames
        }
    }

    func didFinishRequest(task: HTTPClient.Task<Void>) throws {
        try state.withLock { state in
            if var refusal = state.refusal { throw CloudError(refusal.head, &refusal.body, server: server) }
            try state.decoder.finish()
            guard state.awaited.isEmpty else {
                throw CloudError.notFound("the cloud gave only \(count - state.awaited.count) of \(count) chunks")
            }
        }
    }
}

extension CloudError {
    /// What an answer says that is no success.
    init(_ head: HTTPResponseHead, _ body: inout ByteBuffer, server: String) {
        let isOurs = head.headers.first(name: CloudHeader.contentType) == CloudHeader.protobuf
        let bytes = body.readBytes(length: body.readableBytes) ?? []
        let failure = isOurs ? try? WireFailure(body: bytes) : nil
        self.init(status: Int(head.status.code), failure: failure, server: server)
    }
}
