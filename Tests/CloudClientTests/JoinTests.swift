import CloudProtocol
import FoundationEssentials
import Testing
import UbiquityModel

@testable import CloudClient

@Suite struct JoinTests {
    private static let welcome: @Sendable (StubServer.Request) -> StubServer.Answer = { request in
        guard request.path == CloudRoute.join else { return .message([]) }
        var answer = WireJoinResponse()
        answer.account = "me"
        answer.device = Data(DeviceID(high: 5, low: 5).bytes)
        answer.token = Data([1, 2])
        answer.nonce = Data([3])
        answer.deviceName = "laptop 2"
        answer.containers = [
            WireContainerInfo(
                ContainerInfo(
                    id: .documents,
                    key: [UInt8](repeating: 1, count: 32),
                    layout: .drive,
                    isCaseInsensitive: false,
                    isReadOnly: false
                )
            )
        ]
        return StubServer.Answer(answer)
    }

    private func code(_ fingerprint: [UInt8]?) throws -> String {
        try #require(InvitationCode(fingerprint: fingerprint)).text
    }

    @Test func `without TLS a code is enough`() async throws {
        let server = try await StubServer.start(answer: Self.welcome)
        let url = "http://127.0.0.1:\(server.port)/"
        let (credentials, containers) = try await CloudClient.join(
            url: url,
            code: try code(nil),
            deviceName: "laptop",
            logger: quiet
        )
        #expect(credentials.url == "http://127.0.0.1:\(server.port)")
        #expect(credentials.token == [1, 2])
        #expect(credentials.certificate == nil)
        // What the account calls it, not what it wanted to be called.
        #expect(credentials.deviceName == "laptop 2")
        #expect(containers.map(\.id) == [.documents])
        try await server.stop()
    }

    @Test func `with TLS the certificate is pinned by the code`() async throws {
        let certificate = try TestCertificate()
        let server = try await StubServer.start(certificate: certificate, answer: Self.welcome)
        let (credentials, _) = try await CloudClient.join(
            url: "https://127.0.0.1:\(server.port)",
            code: try code(certificate.fingerprint),
            deviceName: "laptop",
            logger: quiet
        )
        #expect(credentials.fingerprint == certificate.fingerprint)
        let client = try CloudClient(credentials: credentials, logger: quiet)
        #expect(try await client.containers().isEmpty)
        await client.shutdown()
        try await server.stop()
    }

    @Test func `another certificate is another server, when joining and later`() async throws {
        let known = try TestCertificate()
        let server = try await StubServer.start(certificate: known, answer: Self.welcome)
        let url = "https://127.0.0.1:\(server.port)"
        let (credentials, _) = try await CloudClient.join(
            url: url,
            code: try code(known.fingerprint),
            deviceName: "laptop",
            logger: quiet
        )
        try await server.stop()
        let impostor = try await StubServer.start(
            port: server.port,
            certificate: try TestCertificate(),
            answer: Self.welcome
        )
        let text = try code(known.fingerprint)
        let joining = await cloudError {
            _ = try await CloudClient.join(url: url, code: text, deviceName: "laptop", logger: quiet)
        }
        #expect(joining?.kind == "wrongServer")
        let client = try CloudClient(credentials: credentials, logger: quiet)
        let later = await cloudError { _ = try await client.containers() }
        #expect(later?.kind == "wrongServer")
        await client.shutdown()
        try await impostor.stop()
    }

    @Test func `a certificate that nobody vouches for is not trusted without its fingerprint`() async throws {
        let server = try await StubServer.start(certificate: try TestCertificate(), answer: Self.welcome)
        let text = try code(nil)
        let error = await cloudError {
            _ = try await CloudClient.join(
                url: "https://127.0.0.1:\(server.port)",
                code: text,
                deviceName: "laptop",
                logger: quiet
            )
        }
        #expect(error?.kind == "wrongServer")
        try await server.stop()
    }

    @Test func `a server without TLS is not the one of a code with a fingerprint`() async throws {
        let server = try await StubServer.start(answer: Self.welcome)
        let text = try code([UInt8](repeating: 1, count: 32))
        for scheme in ["http", "https"] {
            let error = await cloudError {
                _ = try await CloudClient.join(
                    url: "\(scheme)://127.0.0.1:\(server.port)",
                    code: text,
                    deviceName: "laptop",
                    logger: quiet
                )
            }
            #expect(error?.kind == "wrongServer", "\(String(describing: error))")
        }
        try await server.stop()
    }

    @Test func `a mistyped code is said before anybody is asked`() async throws {
        let error = await cloudError {
            _ = try await CloudClient.join(
                url: "http://127.0.0.1:1",
                code: "12345",
                deviceName: "laptop",
                logger: quiet
            )
        }
        guard case .rejected(FailureCode.wrongCode.rawValue, let message) = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(message.contains("invitation code"))
    }

    @Test func `a used code is refused by the server`() async throws {
        let server = try await StubServer.start { _ in failure(.usedCode, "the code was used") }
        let text = try code(nil)
        let error = await cloudError {
            _ = try await CloudClient.join(
                url: "http://127.0.0.1:\(server.port)",
                code: text,
                deviceName: "laptop",
                logger: quiet
            )
        }
        #expect(error == .rejected(code: "used-code", message: "the code was used"))
        try await server.stop()
    }

    @Test func `nobody there is said`() async throws {
        let certificate = try TestCertificate()
        let nobody = try DeafPort()
        let text = try code(certificate.fingerprint)
        let error = await cloudError {
            _ = try await CloudClient.join(
                url: "https://127.0.0.1:\(nobody.port)",
                code: text,
                deviceName: "laptop",
                logger: quiet
            )
        }
        #expect(error == .offline("127.0.0.1:\(nobody.port) is not reached: connection refused"))
    }
}
