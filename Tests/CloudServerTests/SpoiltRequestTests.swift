import CloudClient
import CloudProtocol
import Foundation
import TestSupport
import Testing
import UbiquityModel

/// Requests that no client of ours sends: they are refused, each with its reason, and the server goes on.
///
/// `UBIQUITY_TEST_FUZZ=7:1000` sends those of the seeds from 7 on.
@Suite struct SpoiltRequestTests {
    private static let requests = 300

    @Test func `whatever is sent, the server answers the next one`() async throws {
        try await withServer(isPlain: true) { server, client, _ in
            let (first, count) = TestSettings.fuzz ?? (1, Self.requests)
            for seed in first..<first + UInt64(count) {
                var request = SpoiltRequest(seed: seed, token: client.credentials.token)
                let bytes = try request.make()
                // Nothing at all is an answer to what is no HTTP.
                let status = try await RawRequest.status(server.url, bytes)
                #expect(
                    status != 500,
                    "UBIQUITY_TEST_FUZZ=\(seed): \(String(decoding: bytes.prefix(2000), as: UTF8.self))"
                )
            }
            try await client.health()
            _ = try await client.changes(.documents, since: nil, limit: 10)
        }
    }

    @Test func `a commit of a million empty operations is refused before they are made`() async throws {
        try await withServer(isPlain: true) { server, client, _ in
            let body = [UInt8](repeatElement([0x22, 0x00], count: 1 << 20).joined())
            let headers = ["authorization": CloudHeader.bearer(client.credentials.token)]
            let path = CloudRoute.path(.documents, .commit)
            let answer = try await RawRequest.post(server.url, path, headers: headers, body: body)
            #expect(answer.status == 413)
            #expect(try WireFailure(body: answer.body).code == FailureCode.tooLarge.rawValue)
        }
    }
}

/// A request of some route, with something wrong with it.
private struct SpoiltRequest {
    private var generator: SeededGenerator
    private let token: [UInt8]

    init(seed: UInt64, token: [UInt8]) {
        generator = SeededGenerator(seed: seed)
        self.token = token
    }

    private mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &generator) }
    private mutating func pick<Element>(_ elements: [Element]) -> Element { elements[below(elements.count)] }

    mutating func make() throws -> [UInt8] {
        var body = try message()
        if below(3) > 0 { spoil(&body) }
        let method = pick(["GET", "POST", "POST", "POST", "PUT", "DELET", "\u{1}"])
        let length =
            below(8) == 0 ? pick(["-1", "99999999999999999999", "0", "1e9", "\(body.count + 5)"]) : "\(body.count)"
        let bearer = below(8) == 0 ? pick(["Bearer ", "Bearer zz", "Basic x", ""]) : CloudHeader.bearer(token)
        let lines = [
            "\(method) \(path())\(query()) HTTP/1.1", "host: h", "connection: close", "authorization: \(bearer)",
            "content-length: \(length)", "", "",
        ]
        var head = Array(lines.joined(separator: "\r\n").utf8)
        if below(10) == 0 { spoil(&head) }
        return head + body
    }

    private mutating func path() -> String {
        let container =
            below(6) == 0 ? pick(["..", "%2e%2e", "%", "%00", "ü", String(repeating: "a", count: 200)]) : "Documents"
        let verbs = CloudRoute.Verb.allCases.filter { $0 != .feed }.map {
            "\(CloudRoute.containers)/\(container)/\($0)"
        }
        return pick(
            verbs + [
                CloudRoute.join, CloudRoute.session, CloudRoute.containers, CloudRoute.devices, CloudRoute.invitations,
                "/v1/nothing", "//", "/",
            ]
        )
    }

    private mutating func query() -> String {
        guard below(2) == 0 else { return "" }
        let number = pick(["0", "1", "-1", "18446744073709551615", "9223372036854775808", "x", "", "%31"])
        let hash = pick(["", "00", "0", "zz", String(repeating: "ab", count: 32)])
        return "?"
            + pick([
                "counter=\(number)&hash=\(hash)", "limit=\(number)", "time=\(number)&counter=\(number)", "&&==%",
                "counter",
            ])
    }

    private mutating func message() throws -> [UInt8] {
        let item = ItemID(using: &generator)
        switch below(10) {
        case 0: return try WireHaveRequest(chunks: []).body
        case 1: return try WireChildrenRequest(folders: [.root, item], after: try Name("a")).body
        case 2: return try WireVersionsRequest(item: item).body
        case 3:
            var commit = WireCommitRequest()
            commit.deviceClock = pick([0, .min, .max, 1])
            let action = ItemOperation.Action.create(
                place: Place(parent: .root, name: try Name("f \(below(99))")),
                content: .folder,
                attributes: ItemAttributes(modified: Timestamp(nanoseconds: pick([.min, .max, 5])), mode: 0o755),
                manifest: Manifest(),
                edited: Timestamp(nanoseconds: pick([.min, .max, 5]))
            )
            let operation = ItemOperation(id: OperationID(using: &generator), item: item, action: action)
            commit.operations = [WireOperation(operation)]
            return try commit.body
        case 4:
            var session = WireSessionRequest()
            session.nonce = Data([1, 2, 3])
            return try session.body
        case 5:
            var join = WireJoinRequest()
            join.code = Data([1, 2, 3])
            join.deviceName = "x"
            return try join.body
        case 6:
            var confirm = WireConfirmRequest()
            confirm.items = [WireConfirmation(item: item, revision: RevisionID(using: &generator))]
            return try confirm.body
        case 7:
            var invite = WireInviteRequest()
            invite.containers = ["Documents", "a/b"]
            return try invite.body
        case 8:
            let words = ["foo", "", "a/b", ".x", "\u{0}", String(repeating: "x", count: 100)]
            var declared = WirePackageDeclaration()
            declared.added = (0..<pick([0, 1, 2, 2_000])).map { _ in pick(words) }
            declared.removed = [pick(words)]
            return try declared.body
        default: return LengthPrefix.encode(generator.bytes(below(60)))
        }
    }

    private mutating func spoil(_ bytes: inout [UInt8]) {
        for _ in 0...below(3) {
            let place = below(bytes.count + 1)
            switch below(4) {
            case 0 where place < bytes.count: bytes[place] ^= 1 << UInt8(below(8))
            case 1: bytes.removeSubrange(place...)
            case 2: bytes.insert(contentsOf: generator.bytes(1 + below(20)), at: place)
            default: bytes.insert(contentsOf: [0xFF, 0xFF, 0xFF, 0xFF, 0x0F], at: place)
            }
        }
    }
}
