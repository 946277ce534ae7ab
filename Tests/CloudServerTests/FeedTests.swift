import CatalogModel
import CatalogStore
import CloudClient
import CloudProtocol
import CloudServer
import TestSupport
import Testing
import UbiquityModel

@Suite struct FeedTests {
    @Test func `a commit reaches a waiting device`() async throws {
        try await withServer { server, client, _ in
            let phone = try await server.join("phone")
            var pages = phone.feed(.documents, since: nil).makeAsyncIterator()
            let first = try #require(try await pages.next())
            #expect(first.items.isEmpty)
            for number in 0..<50 {
                let operation = try folder("f\(number)")
                async let committed = client.commit(.documents, operations: [operation], frames: [], clock: noClock)
                let page = try #require(try await pages.next())
                #expect(page.items.map(\.id) == [operation.item])
                _ = try await committed
            }
            await phone.shutdown()
        }
    }

    @Test func `what the container declares reaches a waiting device, once`() async throws {
        try await withServer { server, client, _ in
            let phone = try await server.join("phone")
            var pages = phone.feed(.documents, since: nil).makeAsyncIterator()
            #expect(try await pages.next()?.packages == PackageDeclaration())
            let change = PackageDeclaration(added: ["foo"], removed: ["rtfd"])
            #expect(try await client.declarePackages(.documents, change).packages == change)
            let page = try #require(try await pages.next())
            #expect(page.packages == change && page.items.isEmpty)
            // What changes nothing is no news.
            _ = try await client.declarePackages(.documents, change)
            let operation = try folder("f")
            _ = try await client.commit(.documents, operations: [operation], frames: [], clock: noClock)
            let next = try #require(try await pages.next())
            #expect(next.items.map(\.id) == [operation.item] && next.packages == nil)
            let nonce = phone.credentials.nonce
            #expect(try await phone.session(nonce: nonce, clock: noClock).containers.map(\.packages) == [change])
            var again = phone.feed(.documents, since: next.position).makeAsyncIterator()
            #expect(try await again.next()?.packages == change)
            await phone.shutdown()
        }
    }

    @Test func `a feed begins with what was missed, in pages`() async throws {
        try await withServer { _, client, _ in
            let operations = try (0..<3_000).map { try folder("f\($0)") }
            _ = try await client.commit(.documents, operations: operations, frames: [], clock: noClock)
            var pages = client.feed(.documents, since: nil).makeAsyncIterator()
            var items = [RemoteItem]()
            var last: ChangesPage?
            while items.count < 3_000, let page = try await pages.next() {
                items += page.items
                last = page
            }
            #expect(items.map(\.position) == Array(1...3_000))
            let end = try #require(last)
            #expect(!end.more)
            #expect(end.position == end.head)
            let rest = try await client.changes(.documents, since: end.position, limit: 10)
            #expect(rest.items.isEmpty)
            #expect(!rest.unknownPosition)
        }
    }

    @Test func `a position of another history is said to be unknown`() async throws {
        try await withServer { _, client, _ in
            let operations = [try folder("f")]
            _ = try await client.commit(.documents, operations: operations, frames: [], clock: noClock)
            let foreign = LogPosition(counter: 1, hash: [UInt8](repeating: 1, count: 32))
            #expect(try await client.changes(.documents, since: foreign, limit: 10).unknownPosition)
            var pages = client.feed(.documents, since: foreign).makeAsyncIterator()
            #expect(try await pages.next()?.unknownPosition == true)
        }
    }

    @Test func `a revoked device's feed ends at once, and nothing else does`() async throws {
        try await withServer { server, client, _ in
            let phone = try await server.join("phone")
            let phoneFeed = Feed(phone)
            let ownFeed = Feed(client)
            _ = try await phoneFeed.next()
            _ = try await ownFeed.next()
            try await client.revoke(deviceNamed: "phone")
            let end = await refusal {
                _ = try await within(.seconds(20), "the feed ends") { try await phoneFeed.next() }
            }
            #expect(end != nil)
            #expect(await refusal { _ = try await phone.containers() } == "revoked")
            let operations = [try folder("x")]
            #expect(
                await refusal {
                    _ = try await phone.commit(.documents, operations: operations, frames: [], clock: noClock)
                } == "revoked"
            )
            let operation = try folder("f")
            _ = try await client.commit(.documents, operations: [operation], frames: [], clock: noClock)
            #expect(try await ownFeed.next()?.items.map(\.id) == [operation.item])
            await phone.shutdown()
        }
    }

    @Test func `devices that wait for the same are told the same, as long as they may see it`() async throws {
        try await withServer { server, client, _ in
            let (phone, tablet) = (try await server.join("phone"), try await server.join("tablet"))
            let (own, others) = (Feed(client), [Feed(phone), Feed(tablet)])
            for feed in [own] + others { _ = try await feed.next() }
            // More than a look takes, so that one device reads it for all.
            func commit(_ name: String) async throws -> [ItemID] {
                let operations = try (0..<100).map { try folder("\(name) \($0)") }
                _ = try await client.commit(.documents, operations: operations, frames: [], clock: noClock)
                return operations.map(\.item)
            }
            for number in 0..<5 {
                let items = try await commit("f\(number)")
                for feed in [own] + others { #expect(try await feed.next()?.items.map(\.id) == items) }
            }
            // By another process, so that only the catalogue knows.
            let catalog = try SQLiteCatalog(path: server.data + "/catalog.sqlite")
            let token = TokenHash(token: client.credentials.token)
            _ = try await catalog.revoke("phone", by: token, now: Timestamp(nanoseconds: 1))
            try catalog.close()
            let items = try await commit("g")
            for feed in [own, others[1]] { #expect(try await feed.next()?.items.map(\.id) == items) }
            let end = await refusal {
                _ = try await within(.seconds(20), "the feed ends") { try await others[0].next() }
            }
            #expect(end != nil)
            await phone.shutdown()
            await tablet.shutdown()
        }
    }

    @Test func `the feed of a removed container ends`() async throws {
        try await withServer { _, client, _ in
            let feed = Feed(client)
            _ = try await feed.next()
            try await client.removeContainer(.documents)
            let end = await refusal { _ = try await within(.seconds(20), "the feed ends") { try await feed.next() } }
            #expect(end != nil)
        }
    }

    @Test func `a feed that has nothing to say shows that it lives`() async throws {
        try await withServer(isPlain: true) {
            $0.signOfLife = .milliseconds(50)
        } _: { server, client, _ in
            let path = CloudRoute.path(.documents, .feed)
            let reader = try RawFeed(server.url, path, token: client.credentials.token)
            // An empty page has a few bytes. Five of them are more than the first answer.
            try await within(.seconds(10), "signs of life") { try await reader.messages(5) }
        }
    }

    @Test func `a stopping server ends its feeds and its connections`() async throws {
        let folder = try ServerFolder()
        let server = try await RunningServer(data: folder.path)
        let client = try await server.join("laptop")
        _ = try await client.createContainer(.documents, layout: .drive, isCaseInsensitive: false)
        let feed = Feed(client)
        _ = try await feed.next()
        try await within(.seconds(10), "the server stops") { try await server.stop() }
        #expect(await refusal { _ = try await feed.next() } != nil)
        await client.shutdown()
    }
}

/// A feed that several tasks may take pages from, one after the other.
private actor Feed {
    private var iterator: AsyncThrowingStream<ChangesPage, any Error>.Iterator

    init(_ client: CloudClient) { iterator = client.feed(.documents, since: nil).makeAsyncIterator() }

    func next() async throws -> ChangesPage? {
        var copy = iterator
        let page = try await copy.next(isolation: self)
        iterator = copy
        return page
    }
}
