import Chunking
import CloudProtocol
import FoundationEssentials
import NIOCore
import Synchronization
import Testing
import UbiquityModel

@testable import CloudClient

@Suite struct FetchTests {
    /// Fetches two chunks; what arrived, and the error.
    private func fetch(_ answer: StubServer.Answer) async throws -> (frames: [ChunkFrame], error: CloudError?) {
        let frames = Mutex<[ChunkFrame]>([])
        let chunks = [try frame(1).chunk, try frame(2).chunk]
        let error = try await withClient(answer: { _ in answer }) { client, _ in
            await cloudError {
                try await client.fetch(.documents, chunks: chunks, examine: false) { frame in
                    frames.withLock { $0.append(frame) }
                }
            }
        }
        return (frames.withLock { $0 }, error)
    }

    @Test(arguments: [1, 3, 50, 1000])
    func `frames arrive in order, however they are cut`(piece: Int) async throws {
        let body = encoded(try frame(1)) + encoded(try frame(2))
        let pieces = stride(from: 0, to: body.count, by: piece).map { Array(body[$0..<min($0 + piece, body.count)]) }
        let (frames, error) = try await fetch(.pieces(pieces, ends: true))
        #expect(error == nil)
        #expect(frames == [try frame(1), try frame(2)])
    }

    @Test func `a chunk that was not asked for makes no sense`() async throws {
        let (frames, error) = try await fetch(.pieces([encoded(try frame(2))], ends: true))
        #expect(error?.kind == "malformed")
        #expect(frames.isEmpty)
    }

    @Test func `more than was asked for makes no sense`() async throws {
        let body = encoded(try frame(1)) + encoded(try frame(2)) + encoded(try frame(3))
        #expect(try await fetch(.pieces([body], ends: true)).error?.kind == "malformed")
    }

    @Test func `fewer than were asked for are missing in the cloud`() async throws {
        let (frames, error) = try await fetch(.pieces([encoded(try frame(1))], ends: true))
        #expect(error == .notFound("the cloud gave only 1 of 2 chunks"))
        #expect(frames.count == 1)
    }

    @Test func `a frame that breaks off makes no sense, a connection that does is lost`() async throws {
        let half = Array(encoded(try frame(1)).prefix(50))
        #expect(try await fetch(.pieces([half], ends: true)).error?.kind == "malformed")
        #expect(try await fetch(.torn([half])).error?.kind == "offline")
    }

    @Test func `a frame that is too long is refused by its length`() async throws {
        #expect(try await fetch(.pieces([[0x7F, 0, 0, 0]], ends: false)).error?.kind == "malformed")
    }

    @Test func `a receiver that fails ends the fetch`() async throws {
        struct DiskFull: Error {}
        let frame = try frame(1)
        let body = encoded(frame)
        try await withClient(answer: { _ in .pieces([body], ends: false) }) { client, _ in
            let error = await cloudError {
                try await client.fetch(.documents, chunks: [frame.chunk], examine: false) { _ in throw DiskFull() }
            }
            #expect(error == .cancelled)
            let own = await cloudError {
                try await client.fetch(.documents, chunks: [frame.chunk], examine: false) { _ in
                    throw CloudError.malformed("corrupted")
                }
            }
            #expect(own == .malformed("corrupted"))
        }
    }

    @Test func `a receiver without room gets no more until it has some`() async throws {
        let (first, second) = (try frame(1), try frame(2))
        let pieces = [encoded(first), encoded(second)]
        try await withClient(answer: { _ in .pieces(pieces, ends: true) }) { client, _ in
            let received = Mutex<[ChunkFrame]>([])
            let (fulls, full) = AsyncStream.makeStream(of: (count: Int, resume: @Sendable () -> Void).self)
            async let fetched: Void = client.fetch(
                .documents,
                chunks: [first.chunk, second.chunk],
                examine: false,
                whenReady: { resume in full.yield((received.withLock { $0.count }, resume)) },
                receive: { frame in received.withLock { $0.append(frame) } }
            )
            var counts = Set<Int>()
            for await (count, resume) in fulls {
                #expect(received.withLock { $0.count } == count)
                counts.insert(count)
                resume()
                if count == 2 { break }
            }
            #expect(counts.contains(1))
            try await fetched
        }
    }

    @Test func `a receiver without room does not keep a fetch from being cancelled`() async throws {
        let frame = try frame(1)
        let body = encoded(frame)
        try await withClient(answer: { _ in .pieces([body], ends: false) }) { client, _ in
            let (fulls, full) = AsyncStream.makeStream(of: Void.self)
            let task = Task {
                await cloudError {
                    try await client.fetch(
                        .documents,
                        chunks: [frame.chunk],
                        examine: false,
                        whenReady: { _ in full.yield() },
                        receive: { _ in }
                    )
                }
            }
            for await _ in fulls { break }
            task.cancel()
            #expect(await task.value == .cancelled)
        }
    }

    @Test func `an answer that is no success says why`() async throws {
        #expect(try await fetch(failure(.revoked)).error == .revoked)
        #expect(try await fetch(.text("<html>", status: 502)).error?.kind == "offline")
    }

    @Test func `nothing is asked for nothing`() async throws {
        try await withClient(answer: { _ in .close }) { client, _ in
            try await client.fetch(.documents, chunks: [], examine: false) { _ in }
            try await client.upload(.documents, frames: [])
            #expect(try await client.missing(.documents, chunks: []).isEmpty)
        }
    }
}

@Suite struct FeedTests {
    private func page(_ counter: UInt64, _ names: String...) throws -> [UInt8] {
        var page = WireChanges()
        page.position = WirePosition(LogPosition(counter: counter, hash: [UInt8](repeating: 1, count: 32)))
        page.head = page.position
        page.items = try names.map { name in
            WireItem(
                RemoteItem(
                    id: .random(),
                    place: Place(parent: .root, name: try Name(name)),
                    content: .folder,
                    attributes: ItemAttributes(modified: Timestamp(nanoseconds: 0), mode: 0o755),
                    position: counter
                ),
                manifest: nil
            )
        }
        return LengthPrefix.encode(bytes(page))
    }

    /// The pages of a feed until it ends, and how it ended.
    private func follow(
        _ answer: StubServer.Answer,
        limits: Transport.TimeLimits = .init(),
        atMost count: Int = .max
    ) async throws -> (pages: [ChangesPage], error: CloudError?) {
        try await withClient(limits: limits, answer: { _ in answer }) { client, _ in
            var pages = [ChangesPage]()
            let since = LogPosition(counter: 1, hash: [UInt8](repeating: 1, count: 32))
            do {
                for try await page in client.feed(.documents, since: since) {
                    pages.append(page)
                    if pages.count == count { break }
                }
                return (pages, nil)
            } catch { return (pages, error as? CloudError) }
        }
    }

    @Test func `changes come as they are sent, signs of life do not`() async throws {
        let bytes = try page(1) + page(1) + page(2, "a") + page(2) + page(3, "b", "c")
        let pieces = stride(from: 0, to: bytes.count, by: 7).map { Array(bytes[$0..<min($0 + 7, bytes.count)]) }
        let (pages, _) = try await follow(.pieces(pieces, ends: false), atMost: 3)
        #expect(pages.map(\.items.count) == [0, 1, 2])
        #expect(pages.map(\.position.counter) == [1, 2, 3])
    }

    @Test func `a feed that the server ends is lost`() async throws {
        let (pages, error) = try await follow(.pieces([try page(2, "a")], ends: true))
        #expect(pages.count == 1)
        #expect(error?.kind == "offline")
    }

    @Test func `a feed without a sign of life is lost`() async throws {
        let limits = Transport.TimeLimits(feedLost: .milliseconds(100))
        let (_, error) = try await follow(.pieces([try page(1)], ends: false), limits: limits)
        #expect(error?.kind == "stalled")
        #expect(error?.description.hasSuffix("stopped answering") == true)
    }

    @Test func `a revoked device is told so`() async throws {
        #expect(try await follow(failure(.revoked)).error == .revoked)
    }

    @Test func `a page that cannot be decoded makes no sense`() async throws {
        #expect(try await follow(.pieces([[0, 0, 0, 1, 0xFF]], ends: false)).error?.kind == "malformed")
    }

    @Test func `a feed ends with its task`() async throws {
        let bytes = try page(1)
        try await withClient(answer: { _ in .pieces([bytes], ends: false) }) { client, _ in
            let (arrived, arrival) = AsyncStream.makeStream(of: Void.self)
            let task = Task {
                for try await _ in client.feed(.documents, since: nil) { arrival.yield() }
            }
            for await _ in arrived { break }
            task.cancel()
            try await task.value
        }
    }
}
