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
            return .message(page.body)
        }) { client, _ in
            let since = LogPosition(counter: 7, hash: [UInt8](repeating: 0xAB, count: 32))
            let page = try await client.changes(.documents, since: since, limit: 10)
            #expect(page.position.counter == 8)
            _ = try await client.changes(.documents, since: nil, limit: 5)
        }
        let heads = seen.withLock { $0 }
        let hash = String(repeating: "ab", count: 32)
        #expect(heads.map(\.uri) == [
            "/v1/containers/Documents/changes?counter=7&hash=\(hash)&limit=10", "/v1/containers/Documents/changes?limit=5",
        ])
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
        let body = page.body
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
            return .message(answer.body)
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
            return .message(answer.body)
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
                WireManifestAnswer(content: known, manifest: Manifest()), WireManifestAnswer(content: unknown, manifest: nil),
            ]
            return .message(answer.body)
        }) { client, _ in try await client.manifests(.documents, contents: [known, unknown]) }
        #expect(manifests == [known: Manifest()])
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
