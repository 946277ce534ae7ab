import Chunking
import CloudClient
import CloudProtocol
import CloudServer
import Foundation
import Glibc
import TestSupport
import Testing
import UbiquityModel

@Suite struct NetworkTests {
    @Test func `an embedded server opens to the network with TLS when it is asked to, and stays open`() async throws {
        let folder = try ServerFolder()
        var server = try await RunningServer(data: folder.path)
        let client = try await server.join("laptop")
        let container = try await client.createContainer(.documents, layout: .drive, isCaseInsensitive: false)
        // On loopback too: while the server does not run, its port is anybody's on this machine.
        #expect(server.url.hasPrefix("https://127.0.0.1:"))
        let local = try await client.invite(InvitationRequest())
        #expect(local.url == server.url)
        #expect(try InvitationCode(parsing: local.code).fingerprint == client.credentials.fingerprint)

        let invitation = try await client.invite(InvitationRequest(opensNetwork: true, address: "127.0.0.1"))
        #expect(invitation.url.hasPrefix("https://127.0.0.1:"))
        let (credentials, containers) = try await CloudClient.join(
            url: invitation.url,
            code: invitation.code,
            deviceName: "phone",
            logger: RunningServer.logger
        )
        #expect(containers == [container])
        let phone = try CloudClient(credentials: credentials, logger: RunningServer.logger)
        let file = try PreparedFile(randomBytes(400_000), container)
        let operations = [try file.create("a")]
        _ = try await phone.commit(.documents, operations: operations, frames: file.frames, clock: noClock)
        #expect(try await client.changes(.documents, since: nil, limit: 10).items.count == 1)
        // From another device, over TLS: the same door.
        let further = try await phone.invite(InvitationRequest(address: "127.0.0.1"))
        #expect(further.url == invitation.url)
        // Asking again changes nothing.
        #expect(
            try await client.invite(InvitationRequest(opensNetwork: true, address: "127.0.0.1")).url == invitation.url
        )

        // After a restart both addresses are what they were, and so is the certificate.
        await client.shutdown()
        let url = server.url
        try await server.stop()
        server = try await RunningServer(data: folder.path)
        #expect(server.url == url)
        let reached = try await reachable(phone)
        #expect(reached == [container])
        await phone.shutdown()
        try await server.stop()
    }

    /// The door opens beside the main address, which says when it is ready: a moment may lie between.
    private func reachable(_ client: CloudClient) async throws -> [ContainerInfo] {
        for _ in 0..<100 {
            do { return try await client.containers() } catch CloudError.offline {
                try await Task.sleep(for: .milliseconds(50))
            }
        }
        return try await client.containers()
    }

    @Test func `a code with another fingerprint goes to no server`() async throws {
        let folder = try ServerFolder()
        let server = try await RunningServer(data: folder.path)
        let client = try await server.join("laptop")
        let invitation = try await client.invite(InvitationRequest(opensNetwork: true, address: "127.0.0.1"))
        let good = try InvitationCode(parsing: invitation.code)
        let other = try #require(InvitationCode(secret: good.secret, fingerprint: [UInt8](repeating: 1, count: 32)))
        let code = await refusal {
            _ = try await CloudClient.join(
                url: invitation.url,
                code: other.text,
                deviceName: "phone",
                logger: RunningServer.logger
            )
        }
        #expect(code == "wrong-server")
        // The secret was not sent anywhere: it still works.
        _ = try await CloudClient.join(
            url: invitation.url,
            code: invitation.code,
            deviceName: "phone",
            logger: RunningServer.logger
        )
        await client.shutdown()
        try await server.stop()
    }

    @Test func `a server that listens on other addresses has TLS there`() async throws {
        let folder = try ServerFolder()
        let server = try await RunningServer(data: folder.path) {
            $0.isEmbedded = false
            $0.listen = ListenAddress(host: "0.0.0.0", port: 0)
        }
        #expect(server.url.hasPrefix("https://"))
        let administration = try ServerAdministration(dataDirectory: folder.path)
        let invitation = try await administration.addAccount(name: "anna", quota: nil)
        #expect(try InvitationCode(parsing: invitation.code).fingerprint != nil)
        let port = try #require(server.url.split(separator: ":").last)
        let (credentials, _) = try await CloudClient.join(
            url: "https://127.0.0.1:\(port)",
            code: invitation.code,
            deviceName: "phone",
            logger: RunningServer.logger
        )
        #expect(credentials.account == "anna")
        try await server.stop()
    }

    @Test func `the key of the certificate is for its owner only`() async throws {
        let folder = try ServerFolder()
        let server = try await RunningServer(data: folder.path) { $0.listen = ListenAddress(host: "0.0.0.0", port: 0) }
        #expect(try Files.status(folder.path + "/tls.pem").st_mode & 0o777 == 0o600)
        try await server.stop()
    }

    @Test func `whoever takes an embedded server's port gets no token`() async throws {
        let folder = try ServerFolder()
        let server = try await RunningServer(data: folder.path)
        let client = try await server.join("laptop")
        try await server.stop()
        let port = try #require(server.url.split(separator: ":").last.flatMap { Int($0) })
        let impostors = try ServerFolder()
        for isEmbedded in [true, false] {
            let impostor = try await RunningServer(data: impostors.path) {
                $0.isEmbedded = isEmbedded
                $0.listen = ListenAddress(host: "127.0.0.1", port: port)
            }
            // Neither another certificate nor none will do.
            #expect(await refusal { _ = try await client.containers() } == "wrong-server")
            try await impostor.stop()
        }
        await client.shutdown()
    }

    @Test func `only embedded servers open to the network`() async throws {
        let folder = try ServerFolder()
        let server = try await RunningServer(data: folder.path) { $0.isEmbedded = false }
        let administration = try ServerAdministration(dataDirectory: folder.path)
        let code = try await administration.addAccount(name: "anna", quota: nil).code
        let client = try await server.join("laptop", code: code)
        #expect(await refusal { _ = try await client.invite(InvitationRequest(opensNetwork: true)) } == "not-embedded")
        await client.shutdown()
        try await server.stop()
    }

    @Test func `an embedded server waits for its port while a connection has it`() async throws {
        let folder = try ServerFolder()
        let server = try await RunningServer(data: folder.path)
        try await server.stop()
        let port = try #require(server.url.split(separator: ":").last.flatMap { UInt16($0) })
        #expect(port < 32_768, "not one that the system takes for outgoing connections")
        let taker = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let isBound = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(taker, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        try #require(isBound == 0 && listen(taker, 1) == 0)
        startThread {
            poll(nil, 0, 700)
            close(taker)
        }
        let again = try await RunningServer(data: folder.path)
        #expect(again.url == server.url)
        try await again.stop()
    }

    @Test func `two servers on one data folder, or on one port, say what is wrong`() async throws {
        let folder = try ServerFolder()
        let server = try await RunningServer(data: folder.path)
        #expect(throws: ServerError.self) {
            try UbiquityServer(
                configuration: ServerConfiguration(dataDirectory: folder.path, logger: RunningServer.logger)
            )
        }
        let port = try #require(server.url.split(separator: ":").last.flatMap { Int($0) })
        let other = try ServerFolder()
        let second = try UbiquityServer(
            configuration: ServerConfiguration(
                dataDirectory: other.path,
                listen: ListenAddress(host: "127.0.0.1", port: port),
                logger: RunningServer.logger
            )
        )
        await #expect(throws: ServerError.self) { try await second.run(handlesSignals: false) }
        try await server.stop()
    }

    @Test func `everything that was answered is there after a restart`() async throws {
        let folder = try ServerFolder()
        var server = try await RunningServer(data: folder.path)
        let client = try await server.join("laptop")
        let container = try await client.createContainer(.documents, layout: .drive, isCaseInsensitive: false)
        let file = try PreparedFile(randomBytes(300_000), container)
        let operations = [try file.create("a"), try folderOperation("f")]
        let answer = try await client.commit(.documents, operations: operations, frames: file.frames, clock: noClock)
        let before = try await client.changes(.documents, since: nil, limit: 10)
        try await server.stop()
        server = try await RunningServer(data: folder.path)
        #expect(try await client.changes(.documents, since: nil, limit: 10) == before)
        let received = Received()
        try await client.fetch(.documents, chunks: file.frames.map(\.chunk), examine: false) { received.add($0) }
        #expect(received.frames == file.frames)
        // The request is repeated, its answer having been lost.
        let again = try await client.commit(.documents, operations: operations, frames: file.frames, clock: noClock)
        #expect(again == answer)
        await client.shutdown()
        try await server.stop()
    }

    private func folderOperation(_ name: String) throws -> ItemOperation { try CloudServerTests.folder(name) }

    struct Address: Sendable {
        var text: String
        var expected: ListenAddress?
    }

    @Test(arguments: [
        Address(text: "127.0.0.1:80", expected: ListenAddress(host: "127.0.0.1", port: 80)),
        Address(text: "example.org:0", expected: ListenAddress(host: "example.org", port: 0)),
        Address(text: ":8080", expected: ListenAddress(host: "0.0.0.0", port: 8080)),
        Address(text: "[::1]:443", expected: ListenAddress(host: "::1", port: 443)),
        Address(text: "::1:443", expected: nil),
        Address(text: "127.0.0.1", expected: nil),
        Address(text: "127.0.0.1:99999", expected: nil),
        Address(text: "127.0.0.1:", expected: nil),
    ])
    func `addresses to listen on`(address: Address) { #expect(ListenAddress(address.text) == address.expected) }
}
