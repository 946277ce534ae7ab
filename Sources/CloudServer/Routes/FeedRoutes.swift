internal import CatalogModel
internal import CloudProtocol
internal import Hummingbird
internal import HummingbirdCore
internal import UbiquityModel

/// The change feed: an answer that goes on as long as the connection.
extension CloudService {
    private static let itemsPerPage = 1024
    /// So few items are read by each device for itself, with the look whether it may.
    private static let itemsPerLook = 16

    private typealias Pages = SharedAnswer<FeedQuestion, FeedPage>

    func addFeedRoutes(_ router: Router<CloudRequestContext>) {
        let pages = Pages()
        router.get(.init(CloudRoute.template(.feed))) { request, context in try await feed(request, context, pages) }
    }

    private func feed(
        _ request: Request,
        _ context: CloudRequestContext,
        _ pages: Pages
    ) async throws -> Response {
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
                    try await push(since: since, to: &writer, scope, subscription, pages)
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
        _ subscription: FeedSubscription,
        _ pages: Pages
    ) async throws {
        var place = try await write(firstSince: since, to: &writer, scope)
        while !place.isUnknownPosition {
            var isSignOfLife = false
            if !place.hasMore {
                switch await subscription.next() {
                case nil: return
                case .news?: break
                // The look at the catalogue also tells whether another process has revoked the device.
                case .signOfLife?: isSignOfLife = true
                }
            }
            guard let next = try await next(after: place, scope, pages) else { return }
            let isNews = next.place.position != place.position || next.place.isUnknownPosition || next.tellsPackages
            place = next.place
            if isNews || isSignOfLife { try await writer.write(next.body) }
        }
    }

    /// Returns where the feed stands then. By itself, so that the first page is gone while the feed waits for news.
    private func write(
        firstSince since: LogPosition?,
        to writer: inout any ResponseBodyWriter,
        _ scope: Scope
    ) async throws -> FeedPlace {
        let page = try await catalog.changes(scope, since: since, limit: Self.itemsPerPage)
        let first = try FeedPage(page, after: nil)
        try await writer.write(first.body)
        return first.place
    }

    /// `nil` if the device or the container is no longer there.
    private func next(after place: FeedPlace, _ scope: Scope, _ pages: Pages) async throws -> FeedPage? {
        do {
            // Devices that are not at the end of the log are each somewhere else.
            if place.hasMore { return try await page(after: place, scope, limit: Self.itemsPerPage) }
            return try await news(after: place, scope, pages)
        } catch let error as CatalogError {
            switch error {
            case .unauthorized, .revoked, .noSuchContainer, .cancelled: return nil
            default: throw error
            }
        }
    }

    /// What a batch brings is read and encoded once for all devices that wait for it. Each of them looks for itself, in one transaction,
    /// whether it may see it and what there is to see; it gets what another one has read only if that is just this.
    private func news(after place: FeedPlace, _ scope: Scope, _ pages: Pages) async throws -> FeedPage {
        let look = try await catalog.changes(scope, since: place.position, limit: Self.itemsPerLook)
        guard look.hasMore else { return try FeedPage(look, after: place.packages) }
        let question = FeedQuestion(
            container: look.container,
            since: place.position,
            head: look.head,
            packages: look.packages,
            former: place.packages
        )
        return try await pages.answer(to: question) {
            try await page(after: place, scope, limit: Self.itemsPerPage)
        } fits: {
            // More may have been committed since the look.
            $0.head == question.head && $0.place.packages == question.packages
        }
    }

    private func page(after place: FeedPlace, _ scope: Scope, limit: Int) async throws -> FeedPage {
        try FeedPage(try await catalog.changes(scope, since: place.position, limit: limit), after: place.packages)
    }
}
