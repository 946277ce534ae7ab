import CloudProtocol
import NIOCore
import NIOHTTP1
import Testing
import UbiquityModel

@testable import CloudClient

@Suite struct FailureTests {
    @Test func `a server that is not there is said at once`() async throws {
        let nobody = try DeafPort()
        let client = try CloudClient(credentials: .test(port: nobody.port), logger: quiet)
        let error = await cloudError { _ = try await client.devices() }
        #expect(error == .offline("127.0.0.1:\(nobody.port) is not reached: connection refused"))
        await client.shutdown()
    }

    @Test(arguments: [
        (FailureCode.revoked, CloudError.revoked), (.unauthorized, .unauthorized("no")),
        (.noSuchContainer, .notFound("no")),
        (.quota, .quotaExceeded), (.noSpace, .serverFull("no")), (.tooNew, .tooNew("no")),
        (.containerExists, .rejected(code: "container-exists", message: "no")),
        (.usedCode, .rejected(code: "used-code", message: "no")),
        (.readOnly, .rejected(code: "read-only", message: "no")),
        (.internalError, .offline("the server has trouble: no")),
    ])
    func `a refusal is told by its code`(code: FailureCode, expected: CloudError) async throws {
        let error = try await withClient(answer: { _ in failure(code) }) { client, _ in
            await cloudError { _ = try await client.containers() }
        }
        #expect(error == expected)
    }

    @Test(arguments: [
        (503, "offline"), (502, "offline"), (401, "wrongServer"), (407, "wrongServer"), (404, "notFound"),
        (507, "serverFull"), (418, "rejected"),
    ])
    func `so is one by something else on the way`(status: Int, kind: String) async throws {
        let error = try await withClient(answer: { _ in .text("<html>", status: status) }) { client, _ in
            await cloudError { _ = try await client.containers() }
        }
        #expect(error?.kind == kind)
    }

    @Test func `an answer that is no message makes no sense`() async throws {
        let error = try await withClient(answer: { _ in .message([0xFF, 0xFF]) }) { client, _ in
            await cloudError { _ = try await client.containers() }
        }
        #expect(error?.kind == "malformed")
    }

    @Test func `too few outcomes make no sense`() async throws {
        let operation = ItemOperation(id: .random(), item: .random(), action: .undelete)
        let error = try await withClient(answer: { _ in .message([]) }) { client, _ in
            await cloudError {
                _ = try await client.commit(
                    .documents,
                    operations: [operation],
                    frames: [],
                    clock: Timestamp(nanoseconds: 0)
                )
            }
        }
        #expect(error?.kind == "malformed")
    }

    @Test func `a server that says nothing is given up`() async throws {
        let limits = Transport.TimeLimits(idle: .milliseconds(100))
        let error = try await withClient(limits: limits, answer: { _ in .silence }) { client, _ in
            await cloudError { _ = try await client.containers() }
        }
        #expect(error?.kind == "stalled")
        #expect(error?.description.hasSuffix("stopped answering") == true)
    }

    @Test func `an answer that breaks off is an interrupted connection`() async throws {
        let error = try await withClient(answer: { _ in .torn([[1]]) }) { client, _ in
            await cloudError { _ = try await client.containers() }
        }
        #expect(error?.kind == "offline")
    }

    @Test func `a request met by a dead connection is sent again`() async throws {
        try await withClient(answer: { request in request.earlierOnConnection == 0 ? .message([]) : .close }) {
            client,
            _ in
            for _ in 0..<3 {
                let containers = try await client.containers()
                #expect(containers.isEmpty)
            }
        }
    }

    @Test func `but not for ever`() async throws {
        let error = try await withClient(answer: { _ in .close }) { client, _ in
            await cloudError { _ = try await client.containers() }
        }
        #expect(error?.kind == "offline")
    }

    @Test func `after a restart of the server the next request works`() async throws {
        try await withClient(answer: { _ in .message([]) }) { client, server in
            _ = try await client.containers()
            try await server.stop()
            let error = await cloudError { _ = try await client.containers() }
            #expect(error?.kind == "offline")
            let again = try await StubServer.start(port: server.port) { _ in .message([]) }
            _ = try await client.containers()
            try await again.stop()
        }
    }

    @Test func `shutting down ends what is under way`() async throws {
        let server = try await StubServer.start { _ in .silence }
        let client = try CloudClient(credentials: .test(port: server.port), logger: quiet)
        async let waiting = cloudError { _ = try await client.containers() }
        // Whether it comes before or after the request has begun, the request ends.
        await client.shutdown()
        #expect(await waiting == .cancelled)
        try await server.stop()
    }

    @Test func `a cancelled task gets its answer at once`() async throws {
        try await withClient(answer: { _ in .silence }) { client, _ in
            let task = Task { await cloudError { _ = try await client.containers() } }
            task.cancel()
            #expect(await task.value == .cancelled)
        }
    }

    @Test(arguments: ["", "ftp://x", "http://", "http://a b", "http://host/?x=1"])
    func `what is no address is said`(url: String) {
        var credentials = Credentials.test(port: 1)
        credentials.url = url
        #expect(throws: CloudError.self) { try CloudClient(credentials: credentials, logger: quiet) }
    }
}
