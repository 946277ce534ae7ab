import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import Synchronization

/// A small HTTP server that answers as a test says, so that everything a server can do wrong can be tried.
final class StubServer: Sendable {
    struct Request: Sendable {
        var head: HTTPRequestHead
        var body: [UInt8]
        /// How many requests came on this connection before.
        var earlierOnConnection: Int
        var path: String { String(head.uri.prefix { $0 != "?" }) }
    }

    enum Answer: Sendable {
        case message([UInt8], status: Int = 200)
        /// A body that is no message.
        case text(String, status: Int)
        /// Pieces of a body, and whether the body ends properly after them: otherwise the connection stays open, saying nothing.
        case pieces([[UInt8]], ends: Bool)
        /// Pieces of a body, then the connection is gone.
        case torn([[UInt8]])
        /// Nothing at all.
        case silence
        /// The connection is closed without an answer.
        case close
    }

    let port: Int
    private let channel: any Channel
    private let connections: Connections

    private init(channel: any Channel, connections: Connections) {
        self.channel = channel
        self.connections = connections
        port = channel.localAddress?.port ?? 0
    }

    /// - Parameter port: `nil` for any, that can be had again: the system gives it to no connection.
    static func start(
        port: Int? = nil,
        certificate: TestCertificate? = nil,
        answer: @escaping @Sendable (Request) -> Answer
    ) async throws -> StubServer {
        let context = try certificate.map { try $0.serverContext() }
        let connections = Connections()
        let bootstrap = ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    connections.add(channel)
                    let pipeline = channel.pipeline.syncOperations
                    if let context { try pipeline.addHandler(NIOSSLServerHandler(context: context)) }
                    try pipeline.configureHTTPServerPipeline(withErrorHandling: false)
                    try pipeline.addHandler(StubHandler(answer: answer))
                }
            }
        for _ in 0..<20 where port == nil {
            let port = nextPort.withLock {
                $0 = $0 < 31_999 ? $0 + 1 : 20_000
                return $0
            }
            guard let channel = try? await bootstrap.bind(host: "127.0.0.1", port: port).get() else { continue }
            return StubServer(channel: channel, connections: connections)
        }
        let channel = try await bootstrap.bind(host: "127.0.0.1", port: port ?? 0).get()
        return StubServer(channel: channel, connections: connections)
    }

    /// In turn, so that what a test gave up does not come to another one beside it that still expects nobody there.
    private static let nextPort = Mutex(Int.random(in: 20_000..<32_000))

    /// As a process that dies: the port and all connections are gone.
    func stop() async throws {
        try await channel.close().get()
        for channel in connections.all { try? await channel.close().get() }
    }

    private final class Connections: Sendable {
        private let channels = Mutex<[any Channel]>([])
        func add(_ channel: any Channel) { channels.withLock { $0.append(channel) } }
        var all: [any Channel] { channels.withLock { $0 } }
    }
}

private final class StubHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let answer: @Sendable (StubServer.Request) -> StubServer.Answer
    private var head: HTTPRequestHead?
    private var body = [UInt8]()
    private var count = 0

    init(answer: @escaping @Sendable (StubServer.Request) -> StubServer.Answer) { self.answer = answer }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head):
            self.head = head
            body = []
        case .body(let buffer):
            body += buffer.readableBytesView
        case .end:
            guard let head else { return }
            respond(answer(StubServer.Request(head: head, body: body, earlierOnConnection: count)), context)
            count += 1
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    private func respond(_ answer: StubServer.Answer, _ context: ChannelHandlerContext) {
        switch answer {
        case .message(let bytes, let status):
            write(status, "application/protobuf", [bytes], context)
            context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        case .text(let text, let status):
            write(status, "text/html", [Array(text.utf8)], context)
            context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        case .pieces(let pieces, let ends):
            write(200, "application/protobuf", pieces, context)
            if ends { context.write(wrapOutboundOut(.end(nil)), promise: nil) }
            context.flush()
        case .torn(let pieces):
            write(200, "application/protobuf", pieces, context)
            context.flush()
            context.close(promise: nil)
        case .silence: break
        case .close: context.close(promise: nil)
        }
    }

    private func write(_ status: Int, _ type: String, _ pieces: [[UInt8]], _ context: ChannelHandlerContext) {
        let head = HTTPResponseHead(
            version: .http1_1,
            status: HTTPResponseStatus(statusCode: status),
            headers: ["content-type": type, "transfer-encoding": "chunked"]
        )
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        for piece in pieces {
            context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: piece)))), promise: nil)
        }
    }
}
