internal import CatalogModel
internal import ChunkStore
internal import CloudProtocol
internal import HTTPTypes
internal import Hummingbird
internal import HummingbirdCore
internal import Logging
internal import NIOCore
internal import NIOFoundationCompat
internal import SwiftProtobuf
internal import UbiquityModel

/// What all routes share. Without state of its own: several servers could serve one catalogue.
struct CloudService: Sendable {
    let catalog: any Catalog
    let chunks: any ChunkStore
    let hub: FeedHub
    let network: ServerNetwork
    let sentBuffers = SentBuffers()
    let now: @Sendable () -> Timestamp
    let logger: Logger

    func makeRouter() -> Router<CloudRequestContext> {
        let router = Router(context: CloudRequestContext.self)
        router.add(middleware: FailureMiddleware())
        router.get(.init(CloudRoute.health)) { _, _ in Response(status: .ok) }
        addAccountRoutes(router)
        addContainerRoutes(router)
        addItemRoutes(router)
        addCommitRoutes(router)
        addTransferRoutes(router)
        addFeedRoutes(router)
        return router
    }

    /// The device that asks, by the hash of its token. Whether it may is decided in the transaction of what it asks for.
    func token(of request: Request) throws -> TokenHash {
        guard let field = request.headers[.authorization], let token = CloudHeader.token(authorization: field) else {
            throw RequestFailure(.unauthorized, "the request names no device")
        }
        return TokenHash(token: token)
    }

    func scope(of request: Request, _ context: CloudRequestContext) throws -> Scope {
        let name = try context.parameters.require(CloudRoute.containerParameter)
        guard let container = ContainerID(name) else {
            throw RequestFailure(.noSuchContainer, "there is no container \"\(name)\"")
        }
        return Scope(token: try token(of: request), container: container)
    }

    /// The body of a request that is one message of so many bytes at most.
    func message<Body: Message>(_: Body.Type, of request: Request, upTo limit: Int) async throws -> Body {
        try Body(body: try await body(of: request, upTo: limit))
    }

    /// The body of a request, of so many bytes at most.
    func body(of request: Request, upTo limit: Int) async throws -> [UInt8] {
        Array(try await request.body.collect(upTo: limit).readableBytesView)
    }

    func check(format: UInt32) throws {
        guard format <= FormatVersion.cloudProtocol else {
            throw RequestFailure(.tooNew, "this device speaks a newer version of the protocol: update the server")
        }
    }

    func check(count: Int, of what: String, limit: Int = CloudLimits.idsPerRequest) throws {
        guard count <= limit else {
            throw RequestFailure(.tooLarge, "\(count) \(what) in one request, where \(limit) are allowed")
        }
    }
}

extension Response {
    static func message(_ message: some Message) throws(WireError) -> Response { encoded(try message.body) }

    /// The bytes of a message.
    static func encoded(_ body: [UInt8]) -> Response {
        Response(
            status: .ok,
            headers: [.contentType: CloudHeader.protobuf],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: body))
        )
    }
}
