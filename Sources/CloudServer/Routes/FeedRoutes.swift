internal import CatalogModel
internal import CloudProtocol
internal import Hummingbird
internal import HummingbirdCore
internal import NIOCore
internal import UbiquityModel

/// The change feed: an answer that goes on as long as the connection.
extension CloudService {
    private static let itemsPerPage = 1024

    func addFeedRoutes(_ router: Router<CloudRequestContext>) {
        router.get(.init(CloudRoute.template(.feed))) { request, context in try await feed(request, context) }
    }

    private func feed(_ request: Request, _ context: CloudRequestContext) async throws -> Response {
        let scope = try scope(of: request, context)
        let since = try position(of: request)
        let access = try await catalog.access(scope.token)
        // Subscribed before the first look, so that nothing falls between.
        let first = try await catalog.changes(scope, since: since, limit: 1)
        let subscription = hub.subscribe(device: access.device, container: first.container)
        return Response(
            status: .ok,
            headers: [.contentType: CloudHeader.protobuf, .cacheControl: "no-store"],
            body: ResponseBody { writer in
                try await request.body.consumeWithInboundCloseHandler { _ in
                    try await push(since: since, to: &writer, scope, subscription)
                    try await writer.finish(nil)
                } onInboundClosed: {
                    subscription.end()
                }
            }
        )
    }

    /// Writes what there is, page by page, then each change as it comes, in the log as in what the container declares. Ends when the
    /// subscription does, when the device or the container is no longer there, or after a position that is not known.
    private func push(
        since: LogPosition?,
        to writer: inout any ResponseBodyWriter,
        _ scope: Scope,
        _ subscription: FeedSubscription
    ) async throws {
        var page = try await catalog.changes(scope, since: since, limit: Self.itemsPerPage)
        try await write(page, tellsPackages: true, to: &writer)
        while !page.isUnknownPosition {
            // What has been told is not kept as long as the feed waits for news.
            page.entries = []
            if !page.hasMore {
                switch await subscription.next() {
                case nil: return
                case .news?: break
                case .signOfLife?:
                    // The look at the catalogue also tells whether another process has revoked the device.
                    guard let next = try await next(after: page, scope) else { return }
                    let isDeclared = next.packages != page.packages
                    page = next
                    try await write(page, tellsPackages: isDeclared, to: &writer)
                    continue
                }
            }
            guard let next = try await next(after: page, scope) else { return }
            let isDeclared = next.packages != page.packages
            let isNews = next.position != page.position || next.isUnknownPosition || isDeclared
            page = next
            if isNews { try await write(page, tellsPackages: isDeclared, to: &writer) }
        }
    }

    private func next(after page: CatalogPage, _ scope: Scope) async throws -> CatalogPage? {
        do { return try await catalog.changes(scope, since: page.position, limit: Self.itemsPerPage) } catch {
            switch error {
            case .unauthorized, .revoked, .noSuchContainer, .cancelled: return nil
            default: throw error
            }
        }
    }

    private func write(
        _ page: CatalogPage,
        tellsPackages: Bool,
        to writer: inout any ResponseBodyWriter
    ) async throws {
        try await writer.write(ByteBuffer(bytes: LengthPrefix.encode(try page.body(tellsPackages: tellsPackages))))
    }
}
