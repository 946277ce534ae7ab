internal import AsyncHTTPClient
internal import CloudProtocol
internal import Glibc
internal import Logging
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import NIOSSL
internal import SwiftProtobuf
internal import Synchronization

/// One HTTP request, before it is sent.
struct CloudRequest: Sendable {
    enum Body: Sendable {
        case none
        case message([UInt8])
        case frames(FrameBody)
    }

    var method: HTTPMethod = .GET
    var path: String
    var query: [(name: String, value: String)] = []
    var body: Body = .none
    var pool: Transport.Pool = .requests
    /// Whether doing it twice is as good as once: then a request that met a dead connection is sent again on a fresh one.
    var isRepeatable = true

    static func post(_ path: String, _ message: some Message) throws(CloudError) -> CloudRequest {
        do throws(WireError) { return CloudRequest(method: .POST, path: path, body: .message(try message.body)) } catch
        {
            throw .rejected(code: FailureCode.tooLarge.rawValue, message: error.description)
        }
    }
}

/// Kept connections to one server, and requests over them.
///
/// Three pools, so that a question never queues behind an upload, and each has the times that suit it:
/// - `requests`: 30 s without a byte of the answer, and 10 s without an acknowledgement of what was sent, end a request.
/// - `uploads`: large bodies. 30 s without progress, in either direction, end a request. While a connection takes no more bytes, only the
///   kernel has a clock: it ends one of which nothing is acknowledged, or whose other end has no room, for as long.
/// - `feeds`: one connection for each container, lost after `CloudLimits.feedLost` without a byte.
final class Transport: Sendable {
    enum Pool: Sendable, CaseIterable { case requests, uploads, feeds }

    struct TimeLimits: Sendable {
        var connect = TimeAmount.seconds(5)
        /// Without progress.
        var idle = TimeAmount.seconds(30)
        var feedLost = TimeAmount(CloudLimits.feedLost)
        /// TCP_USER_TIMEOUT: a machine that is gone without a word is noticed although its connections were kept.
        var acknowledgement = TimeAmount.seconds(10)
    }

    /// The engine bounds what it has under way; a request that waited here for a connection would time out.
    private static let connectionsPerPool = 256
    /// Large ones for content: each call of the system, and each walk through the handlers, then is for more of it.
    private static let receiveBuffers = AdaptiveRecvByteBufferAllocator(
        minimum: 2048,
        initial: 16384,
        maximum: 256 * 1024
    )
    /// Of an answer that is one message.
    private static let longestAnswer = 128 * 1024 * 1024
    static let longestFailure = 64 * 1024

    let endpoint: Endpoint
    private let requests: HTTPClient
    private let uploads: HTTPClient
    private let feeds: HTTPClient
    private let bandwidth: BandwidthLimiter
    private let logger: Logger
    private let loops = Array(MultiThreadedEventLoopGroup.singleton.makeIterator())
    /// Streams under way, by the thread that has them. A leaf: memory work only.
    private let loopsInUse: Mutex<[Int]>

    /// - Parameters:
    ///   - certificate: PEM: exactly this certificate is trusted, whatever host it names; `nil`: the system's roots.
    ///   - bandwidth: of requests and uploads together. A feed is not slowed down: it tells what there is.
    init(
        endpoint: Endpoint,
        certificate: String?,
        limits: TimeLimits = TimeLimits(),
        bandwidth: BandwidthLimiter = BandwidthLimiter(),
        logger: Logger
    ) throws(CloudError) {
        let tls: TLSConfiguration
        do { tls = try Self.tlsConfiguration(certificate: certificate) } catch {
            throw CloudError(error, server: endpoint.name)
        }
        self.endpoint = endpoint
        self.bandwidth = bandwidth
        self.logger = logger
        loopsInUse = Mutex([Int](repeating: 0, count: loops.count))
        requests = Self.makeClient(tls, read: limits.idle, limits, bandwidth)
        uploads = Self.makeClient(tls, read: limits.idle, limits, isForUploads: true, bandwidth)
        feeds = Self.makeClient(tls, read: limits.feedLost, limits, nil)
    }

    /// Ends all requests with `.cancelled` and closes the connections. The transport is of no use afterwards.
    func shutdown() async {
        for client in [requests, uploads, feeds] {
            // The only failure is that it was shut down already.
            try? await client.shutdown()
        }
    }

    deinit {
        // For owners that are dropped without `shutdown`: a client must not be freed while it runs.
        let clients = [requests, uploads, feeds]
        Task { for client in clients { try? await client.shutdown() } }
    }

    /// The whole body of a successful answer.
    func send(_ request: CloudRequest, token: [UInt8]?) async throws(CloudError) -> [UInt8] {
        let response = try await open(request, token: token)
        do {
            var body = try await response.body.collect(upTo: Self.longestAnswer)
            return body.readBytes(length: body.readableBytes) ?? []
        } catch { throw mapped(error, request) }
    }

    /// A successful answer, whose body is still to come.
    func open(_ request: CloudRequest, token: [UInt8]?) async throws(CloudError) -> HTTPClientResponse {
        do {
            let response = try await execute(request, token: token)
            guard !(200..<300).contains(response.status.code) else { return response }
            throw try await failure(response)
        } catch { throw mapped(error, request) }
    }

    /// Sends a request, and lets its answer go where `makeStream` says; that is asked again if the request is sent again.
    func stream(
        _ request: CloudRequest,
        token: [UInt8]?,
        _ makeStream: () -> FrameStream
    ) async throws(CloudError) {
        let (index, loop) = takeLoop()
        defer { loopsInUse.withLock { $0[index] -= 1 } }
        do {
            let first = makeStream()
            do { try await run(request, token: token, first, on: loop) } catch
                where
                request.isRepeatable && wasStaleConnection(error) && !first.hasBegun && !Task.isCancelled
            {
                try await run(request, token: token, makeStream(), on: loop)
            }
        } catch { throw mapped(error, request) }
    }

    private func run(
        _ request: CloudRequest,
        token: [UInt8]?,
        _ stream: FrameStream,
        on loop: any EventLoop
    ) async throws {
        let prepared = prepare(request, token: token)
        var body: HTTPClient.Body?
        if case .message(let bytes) = request.body { body = .byteBuffer(ByteBuffer(bytes: bytes)) }
        let task = client(request.pool).execute(
            request: try HTTPClient.Request(
                url: prepared.url,
                method: prepared.method,
                headers: prepared.headers,
                body: body
            ),
            delegate: stream,
            // On one and the same thread nothing has to be handed over.
            eventLoop: .delegateAndChannel(on: loop)
        )
        try await withTaskCancellationHandler {
            try await task.futureResult.get()
        } onCancel: {
            task.cancel()
        }
    }

    /// The thread with the fewest streams, the first one of these: so that those which follow each other have one connection.
    private func takeLoop() -> (index: Int, loop: any EventLoop) {
        let index = loopsInUse.withLock { counts in
            let index = counts.indices.min { (counts[$0], $0) < (counts[$1], $1) } ?? 0
            counts[index] += 1
            return index
        }
        return (index, loops[index])
    }

    /// Errors of anything that has to do with a request, also with the body of its answer.
    func mapped(_ error: any Error, _ request: CloudRequest) -> CloudError {
        let mapped = Task.isCancelled ? .cancelled : CloudError(error, server: endpoint.name)
        logger.debug("\(request.method) \(request.path): \(mapped)")
        return mapped
    }

    private func execute(_ request: CloudRequest, token: [UInt8]?) async throws -> HTTPClientResponse {
        let client = client(request.pool)
        do {
            return try await client.execute(prepare(request, token: token), deadline: .distantFuture)
        } catch  where request.isRepeatable && wasStaleConnection(error) && !Task.isCancelled {
            // Once: the pool has dropped that connection, and the next is a new one or has just been in use.
            return try await client.execute(prepare(request, token: token), deadline: .distantFuture)
        }
    }

    private func failure(_ response: HTTPClientResponse) async throws -> CloudError {
        var body = try await response.body.collect(upTo: Self.longestFailure)
        let head = HTTPResponseHead(version: .http1_1, status: response.status, headers: response.headers)
        return CloudError(head, &body, server: endpoint.name)
    }

    private func client(_ pool: Pool) -> HTTPClient {
        switch pool {
        case .requests: requests
        case .uploads: uploads
        case .feeds: feeds
        }
    }

    private func prepare(_ request: CloudRequest, token: [UInt8]?) -> HTTPClientRequest {
        // Values are numbers and hexadecimal digits: nothing needs escaping.
        let query = request.query.map { "\($0.name)=\($0.value)" }.joined(separator: "&")
        var prepared = HTTPClientRequest(url: endpoint.url + request.path + (query.isEmpty ? "" : "?\(query)"))
        prepared.method = request.method
        if let token { prepared.headers.add(name: CloudHeader.authorization, value: CloudHeader.bearer(token)) }
        switch request.body {
        case .none:
            break
        case .message(let bytes):
            prepared.headers.add(name: CloudHeader.contentType, value: CloudHeader.protobuf)
            prepared.body = body(ByteBuffer(bytes: bytes))
        case .frames(let frames):
            prepared.headers.add(name: CloudHeader.contentType, value: CloudHeader.protobuf)
            // With its length before it, the body goes out without lines of their own between its pieces.
            prepared.body = .stream(PacedBody(pieces: frames, limiter: bandwidth), length: .known(frames.bytes))
        }
        return prepared
    }

    private func body(_ bytes: ByteBuffer) -> HTTPClientRequest.Body {
        // In pieces: its end, from which on an answer is waited for, then goes out after the rest, however long that takes.
        guard bytes.readableBytes > PiecesOfBytes.pieceBytes else {
            bandwidth.note(bytes.readableBytes, .up)
            return .bytes(bytes)
        }
        let length = Int64(bytes.readableBytes)
        return .stream(PacedBody(pieces: PiecesOfBytes(bytes), limiter: bandwidth), length: .known(length))
    }
}

extension Transport.TimeLimits {
    /// With another one on requests without progress.
    init(patience: Duration) { self.init(idle: TimeAmount(patience)) }
}

extension Transport {
    fileprivate static func tlsConfiguration(certificate: String?) throws -> TLSConfiguration {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.minimumTLSVersion = .tlsv12
        if let certificate {
            tls.trustRoots = .certificates(try NIOSSLCertificate.fromPEMBytes(Array(certificate.utf8)))
            // The certificate itself is what is trusted: it names no host in particular.
            tls.certificateVerification = .noHostnameVerification
        }
        return tls
    }

    fileprivate static func makeClient(
        _ tls: TLSConfiguration,
        read: TimeAmount,
        _ limits: TimeLimits,
        isForUploads: Bool = false,
        _ bandwidth: BandwidthLimiter?
    ) -> HTTPClient {
        var configuration = HTTPClient.Configuration(
            tlsConfiguration: tls,
            redirectConfiguration: .disallow,
            timeout: .init(connect: limits.connect, read: read, write: limits.idle)
        )
        configuration.httpVersion = .http1Only
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = connectionsPerPool
        // What cannot be reached is said at once; the engine tries again.
        configuration.connectionPool.retryConnectionEstablishment = false
        let option = ChannelOptions.Types.SocketOption(level: .tcp, name: .init(rawValue: TCP_USER_TIMEOUT))
        let patience = isForUploads ? limits.idle : limits.acknowledgement
        let milliseconds = SocketOptionValue(patience.nanoseconds / 1_000_000)
        configuration.http1_1ConnectionDebugInitializer = { channel in
            channel.eventLoop.submit {
                guard let bandwidth else { return }
                let handler = BandwidthHandler(
                    limiter: bandwidth,
                    usualReads: isForUploads ? AdaptiveRecvByteBufferAllocator() : Self.receiveBuffers
                )
                try channel.pipeline.syncOperations.addHandler(handler, position: .first)
            }.flatMap {
                channel.setOption(option, value: milliseconds)
            }.flatMap {
                guard !isForUploads else { return channel.eventLoop.makeSucceededVoidFuture() }
                return channel.setOption(.recvAllocator, value: Self.receiveBuffers).flatMap {
                    // What one call gives is decrypted and handed on while it is in the processor's cache.
                    channel.setOption(.maxMessagesPerRead, value: 1)
                }
            }
        }
        return HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }
}
