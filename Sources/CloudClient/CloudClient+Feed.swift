internal import AsyncHTTPClient
internal import CloudProtocol
internal import NIOCore
package import UbiquityModel

extension CloudClient {
    package func feed(
        _ container: ContainerID,
        since position: LogPosition?
    ) -> AsyncThrowingStream<ChangesPage, any Error> {
        let reader = FeedReader(client: self, container: container, position: position)
        // The stream asks for a page only when its reader does: what is not taken stays in the connection.
        return AsyncThrowingStream { try await reader.next() }
    }
}

/// One connection of a feed: opened by the first `next`, of no use after the first error.
private actor FeedReader {
    private let client: CloudClient
    private let request: CloudRequest
    private var position: LogPosition?
    private var isFirst = true
    private var decoder = LengthPrefixedDecoder(limit: LengthPrefix.longestPage)
    /// `nil` before the first request, and while a buffer is awaited.
    private var body: HTTPClientResponse.Body.AsyncIterator?
    private var isOpened = false

    init(client: CloudClient, container: ContainerID, position: LogPosition?) {
        self.client = client
        self.position = position
        request = CloudRequest(
            path: CloudRoute.path(container, .feed),
            query: client.query(position),
            pool: .feeds
        )
    }

    /// The next page that says something; `nil` when the task was cancelled.
    func next() async throws -> ChangesPage? {
        do {
            while true {
                if let page = try decodedPage() { return page }
                try await openIfNeeded()
                guard let buffer = try await nextBuffer() else {
                    try decoder.finish()
                    throw CloudError.offline("\(client.transport.endpoint.name) ended the change feed")
                }
                buffer.withUnsafeReadableBytes { decoder.append($0) }
            }
        } catch {
            if Task.isCancelled { return nil }
            throw client.transport.mapped(error, request)
        }
    }

    private func openIfNeeded() async throws {
        guard !isOpened else { return }
        isOpened = true
        body = try await client.transport.open(request, token: client.credentials.token).body.makeAsyncIterator()
    }

    /// Nothing once the feed has failed, or for a second reader while one waits: a feed has one.
    private func nextBuffer() async throws -> ByteBuffer? {
        guard var iterator = body else { return nil }
        body = nil
        let buffer = try await iterator.next(isolation: self)
        body = iterator
        return buffer
    }

    /// Signs of life are left out, except the first: it says that the connection is there.
    private func decodedPage() throws(WireError) -> ChangesPage? {
        while let message = try decoder.next() {
            let page = try ChangesPage(body: message)
            let isNews =
                isFirst || page.position != position || !page.items.isEmpty || !page.refused.isEmpty
                || page.packages != nil
            isFirst = false
            position = page.position
            if isNews || page.unknownPosition { return page }
        }
        return nil
    }
}
