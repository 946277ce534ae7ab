import Chunking
import CloudProtocol
import FoundationEssentials
import NIOHTTP1
import Synchronization
import Testing
import UbiquityModel

@testable import CloudClient

@Suite struct RequestTests {
    @Test func `requests carry the token and the position`() async throws {
        let seen = Mutex<[HTTPRequestHead]>([])
        try await withClient(answer: { request in
            seen.withLock { $0.append(request.head) }
            var page = WireChanges()
            page.position = WirePosition(LogPosition(counter: 8, hash: [UInt8](repeating: 1, count: 32)))
            return StubServer.Answer(page)
        }) { client, _ in
            let since = LogPosition(counter: 7, hash: [UInt8](repeating: 0xAB, count: 32))
            let page = try await client.changes(.documents, since: since, limit: 10)
            #expect(page.position.counter == 8)
            _ = try await client.changes(.documents, since: nil, limit: 5)
        }
        let heads = seen.withLock { $0 }
        let hash = String(repeating: "ab", count: 32)
        #expect(
            heads.map(\.uri) == [
                "/v1/containers/Documents/changes?counter=7&hash=\(hash)&limit=10",
                "/v1/containers/Documents/changes?limit=5",
            ]
        )
        #expect(heads.allSatisfy { $0.headers.first(name: "authorization") == "Bearer 010203" })
    }

    @Test func `one bad item does not lose a page`() async throws {
        var page = WireChanges()
        let good = RemoteItem(
            id: ItemID(high: 1, low: 2),
            place: Place(parent: .root, name: try Name("good")),
            content: .folder,
            attributes: ItemAttributes(modified: Timestamp(nanoseconds: 0), mode: 0o755),
            position: 1
        )
        var bad = WireItem(good, manifest: nil)
        bad.place.name = Data("../evil".utf8)
        page.items = [bad, WireItem(good, manifest: nil)]
        let body = try page.body
        try await withClient(answer: { _ in .message(body) }) { client, _ in
            let page = try await client.changes(.documents, since: nil, limit: 10)
            #expect(page.items == [good])
            #expect(page.refused == ["item \(good.id): a name contains \"/\""])
        }
    }

    @Test func `a session renews the nonce, and a restored device becomes another`() async throws {
        let restored = Mutex(false)
        try await withClient(answer: { request in
            var answer = WireSessionResponse()
            answer.nonce = Data([9])
            answer.serverClock = 5
            answer.restored = restored.withLock { $0 }
            if answer.restored {
                answer.device = Data(DeviceID(high: 7, low: 7).bytes)
                answer.token = Data([8, 8])
            }
            return StubServer.Answer(answer)
        }) { client, _ in
            let session = try await client.session(nonce: [4], clock: Timestamp(nanoseconds: 1))
            #expect(session.nonce == [9])
            #expect(session.device == DeviceID(high: 1, low: 1))
            #expect(client.credentials.nonce == [9])
            #expect(client.credentials.token == [1, 2, 3])
            restored.withLock { $0 = true }
            #expect(try await client.session(nonce: [4], clock: Timestamp(nanoseconds: 1)).isRestored)
            #expect(client.credentials.token == [8, 8])
            #expect(client.credentials.device == DeviceID(high: 7, low: 7))
        }
    }

    @Test func `an upload arrives whole`() async throws {
        let received = Mutex<[UInt8]>([])
        let frames = try (0..<40).map { try frame(UInt8($0), bytes: 20_000) }
        try await withClient(answer: { request in
            received.withLock { $0 = request.body }
            return .message([])
        }) { client, _ in try await client.upload(.documents, frames: frames) }
        #expect(received.withLock { $0 } == frames.flatMap { encoded($0) })
    }

    @Test func `missing chunks are asked for in portions`() async throws {
        let sizes = Mutex<[Int]>([])
        let chunks = try (0..<CloudLimits.idsPerRequest + 5).map { number in
            try #require(ChunkID(bytes: [UInt8](repeating: 0, count: 30) + [UInt8(number / 256), UInt8(number % 256)]))
        }
        let missing = try await withClient(answer: { request in
            let asked = (try? WireHaveRequest(body: request.body))?.chunks.count ?? 0
            sizes.withLock { $0.append(asked) }
            var answer = WireHaveResponse()
            answer.missing = [0]
            return StubServer.Answer(answer)
        }) { client, _ in try await client.missing(.documents, chunks: chunks) }
        #expect(sizes.withLock { $0 } == [CloudLimits.idsPerRequest, 5])
        #expect(missing == [chunks[0], chunks[CloudLimits.idsPerRequest]])
    }

    @Test func `manifests that are not known are left out`() async throws {
        let known = try #require(ContentID(bytes: [UInt8](repeating: 1, count: 32)))
        let unknown = try #require(ContentID(bytes: [UInt8](repeating: 2, count: 32)))
        let manifests = try await withClient(answer: { _ in
            var answer = WireManifestResponse()
            answer.answers = [
                WireManifestAnswer(content: known, manifest: Manifest()),
                WireManifestAnswer(content: unknown, manifest: nil),
            ]
            return StubServer.Answer(answer)
        }) { client, _ in try await client.manifests(.documents, contents: [known, unknown]) }
        #expect(manifests == [known: Manifest()])
    }

    @Test func `manifests that are too many for one answer are asked for in halves`() async throws {
        let sizes = Mutex<[Int]>([])
        let contents = try (0..<7).map { try #require(ContentID(bytes: [UInt8](repeating: $0, count: 32))) }
        let manifests = try await withClient(answer: { request in
            let asked = (try? WireManifestRequest(body: request.body))?.contents ?? []
            sizes.withLock { $0.append(asked.count) }
            if asked.count > 2 { return failure(.tooLarge) }
            var answer = WireManifestResponse()
            answer.answers = asked.compactMap { ContentID(bytes: $0) }.map { .init(content: $0, manifest: Manifest()) }
            return StubServer.Answer(answer)
        }) { client, _ in try await client.manifests(.documents, contents: contents + contents) }
        #expect(Set(manifests.keys) == Set(contents))
        #expect(sizes.withLock { $0 } == [7, 3, 1, 2, 4, 2, 2])
    }

    @Test func `the first of everything that is deleted is listed page by page`() async throws {
        let queries = Mutex<[String]>([])
        let items = try (0..<3).map { number in
            DeletedItem(
                item: RemoteItem(
                    id: ItemID(high: 1, low: UInt64(number)),
                    place: Place(parent: .root, name: try Name("f")),
                    content: .folder,
                    attributes: ItemAttributes(modified: Timestamp(nanoseconds: 0), mode: 0o755),
                    position: UInt64(10 - number),
                    isDeleted: true
                ),
                path: "f",
                deleted: Timestamp(nanoseconds: 5),
                device: "laptop"
            )
        }
        let listed = try await withClient(answer: { request in
            let page = queries.withLock { queries in
                queries.append(String(request.head.uri.drop { $0 != "?" }))
                return queries.count - 1
            }
            var answer = WireDeletedList()
            answer.items = [WireDeletedItem(items[page])]
            answer.more = page < 2
            return StubServer.Answer(answer)
        }) { client, _ in try await client.deleted(.documents) }
        #expect(listed == items)
        #expect(queries.withLock { $0 } == ["", "?time=5&counter=10", "?time=5&counter=9"])
    }

    @Test func `an answer to a commit whose hash is none makes no sense`() async throws {
        let operation = ItemOperation(id: .random(), item: .random(), action: .delete(base: nil))
        await #expect(throws: CloudError.self) {
            try await withClient(answer: { _ in
                var answer = WireCommitResponse()
                answer.outcomes = [WireOutcome(.notEmpty)]
                answer.position = 7
                answer.hash = Data([1, 2, 3])
                return StubServer.Answer(answer)
            }) { client, _ in
                try await client.commit(
                    .documents,
                    [operation],
                    [],
                    CommitHead(clock: Timestamp(nanoseconds: 1)),
                    limit: 8_192
                )
            }
        }
    }

    @Test func `a batch that is too long goes in parts, and what is too long by itself is refused alone`() async throws
    {
        let received = Mutex<[[WireOperation]]>([])
        func create(_ chunks: Int, in parent: ItemID = .root, item: ItemID = .random()) throws -> ItemOperation {
            let chunk = try #require(ChunkID(bytes: [UInt8](repeating: 1, count: 32)))
            let manifest = Manifest(entries: .init(repeating: .init(chunk: chunk, length: 1), count: chunks))
            let file = FileContent(
                revision: .random(),
                content: ContentID(bytes: [UInt8](repeating: 2, count: 32)),
                size: manifest.size
            )
            return ItemOperation(
                id: .random(),
                item: item,
                action: .create(
                    place: Place(parent: parent, name: try Name("f")),
                    content: .file(file),
                    attributes: ItemAttributes(modified: Timestamp(nanoseconds: 0), mode: 0o644),
                    manifest: manifest,
                    edited: Timestamp(nanoseconds: 0)
                )
            )
        }
        let huge = try create(1_000)
        let operations = [
            try create(100), try create(100), huge,
            ItemOperation(id: .random(), item: huge.item, action: .delete(base: nil)), try create(100),
        ]
        let clock = Timestamp(nanoseconds: 1)
        let answer = try await withClient(answer: { request in
            guard let message = try? WireCommitRequest(body: request.body) else { return .close }
            var answer = WireCommitResponse()
            answer.outcomes = message.operations.map { _ in WireOutcome(.notEmpty) }
            answer.position = received.withLock { received in
                received.append(message.operations)
                return UInt64(received.count)
            }
            return StubServer.Answer(answer)
        }) { client, _ in try await client.commit(.documents, operations, [], CommitHead(clock: clock), limit: 8_192) }
        #expect(answer.outcomes.map { "\($0)".prefix(7) } == ["notEmpt", "notEmpt", "invalid", "skipped", "notEmpt"])
        #expect(answer.position.counter == 2)
        #expect(received.withLock { $0.map(\.count) } == [2, 1])
    }

    @Test(arguments: [(0, [CloudRoute.Verb.commit]), (1, [.upload, .commit])])
    func `chunks that are more than a commit may have go before it`(more: Int, verbs: [CloudRoute.Verb]) async throws {
        let received = Mutex<[StubServer.Request]>([])
        let frames = [ChunkFrame](repeating: try frame(1, bytes: 1), count: CloudLimits.chunksPerCommit + more)
        let operation = ItemOperation(id: .random(), item: .random(), action: .delete(base: nil))
        let answer = try await withClient(answer: { request in
            received.withLock { $0.append(request) }
            guard request.path == CloudRoute.path(.documents, .commit) else { return .message([]) }
            var answer = WireCommitResponse()
            answer.outcomes = [WireOutcome(.notEmpty)]
            return StubServer.Answer(answer)
        }) { client, _ in
            try await client.commit(
                .documents,
                operations: [operation],
                frames: frames,
                clock: Timestamp(nanoseconds: 1)
            )
        }
        #expect(answer.outcomes == [.notEmpty])
        let requests = received.withLock { $0 }
        #expect(requests.map(\.path) == verbs.map { CloudRoute.path(.documents, $0) })
        let commit = try WireCommitRequest(body: try #require(requests.last).body)
        #expect(commit.chunks.count == (more > 0 ? 0 : frames.count))
        #expect(commit.operations.count == 1)
    }

    @Test func `signing out twice is as good as once`() async throws {
        let paths = Mutex<[String]>([])
        try await withClient(answer: { request in
            let isFirst = paths.withLock { paths in
                paths.append(request.path)
                return paths.count == 1
            }
            return isFirst ? .message([]) : failure(.revoked)
        }) { client, _ in
            try await client.signOut()
            try await client.signOut()
        }
        #expect(paths.withLock { $0 } == [CloudRoute.signOut, CloudRoute.signOut])
    }

    @Test func `credentials are stored without loss, and never printed`() throws {
        var credentials = Credentials.test(port: 1, certificate: "PEM")
        credentials.fingerprint = [1, 2]
        let data = try JSONEncoder().encode(credentials)
        #expect(try JSONDecoder().decode(Credentials.self, from: data) == credentials)
        credentials.fingerprint = nil
        credentials.certificate = nil
        #expect(try JSONDecoder().decode(Credentials.self, from: JSONEncoder().encode(credentials)) == credentials)
        var dumped = ""
        dump(credentials, to: &dumped)
        for text in ["\(credentials)", String(reflecting: credentials), dumped] { #expect(!text.contains("010203")) }
    }

    @Test func `credentials of a newer version are refused`() throws {
        var text = String(decoding: try JSONEncoder().encode(Credentials.test(port: 1)), as: UTF8.self)
        text = text.replacing("\"version\":1", with: "\"version\":2")
        #expect(throws: DecodingError.self) { try JSONDecoder().decode(Credentials.self, from: Data(text.utf8)) }
    }
}
