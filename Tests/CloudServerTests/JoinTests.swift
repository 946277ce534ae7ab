import CatalogModel
import CloudClient
import CloudProtocol
import CloudServer
import Foundation
import Synchronization
import TestSupport
import Testing
import UbiquityModel

@Suite struct JoinTests {
    @Test func `a code lets one device in`() async throws {
        try await withServer { server, client, container in
            let code = try await server.code()
            let phone = try await server.join("phone", code: code)
            #expect(try await phone.containers() == [container])
            #expect(await refusal { _ = try await server.join("other", code: code) } == "used-code")
            let fingerprint = try InvitationCode(parsing: code).fingerprint
            let wrong = try #require(InvitationCode(fingerprint: fingerprint)).text
            #expect(await refusal { _ = try await server.join("other", code: wrong) } == "wrong-code")
            #expect(try await client.devices().map(\.name) == ["laptop", "phone"])
            #expect(try await client.devices().map(\.isCurrent) == [true, false])
            await phone.shutdown()
        }
    }

    @Test func `a code expires`() async throws {
        let hours = Mutex<Int64>(0)
        try await withServer {
            let now = $0.now
            $0.now = { Timestamp(nanoseconds: now().nanoseconds + hours.withLock { $0 } * 3_600_000_000_000) }
        } _: { server, _, _ in
            let code = try await server.code()
            hours.withLock { $0 = 1 }
            #expect(await refusal { _ = try await server.join("late", code: code) } == "expired-code")
        }
    }

    @Test func `a session renews the nonce, and a clone becomes another device`() async throws {
        try await withServer { _, client, container in
            let stale = client.credentials
            let session = try await client.session(nonce: stale.nonce, clock: noClock)
            #expect(!session.isRestored)
            #expect(session.containers == [container])
            #expect(session.account == "me")
            #expect(session.deviceName == "laptop")
            _ = try await client.session(nonce: session.nonce, clock: noClock)
            let clone = try CloudClient(credentials: stale, logger: RunningServer.logger)
            let restored = try await clone.session(nonce: stale.nonce, clock: noClock)
            #expect(restored.isRestored)
            #expect(restored.device != stale.device)
            #expect(clone.credentials.token != stale.token)
            #expect(try await clone.containers() == [container])
            await clone.shutdown()
        }
    }

    @Test func `a restored device whose answer was lost does not become two`() async throws {
        try await withServer { _, client, _ in
            var stale = client.credentials
            stale.nonce = [99]
            let asking = try CloudClient(credentials: stale, logger: RunningServer.logger)
            await #expect(throws: CloudError.offline("a full disk")) {
                try await asking.prepareSession { _ throws(CloudError) in throw .offline("a full disk") }
            }
            #expect(asking.credentials.proposedToken == nil)
            var written: Credentials?
            try await asking.prepareSession { written = $0 }
            try await asking.prepareSession { _ in Issue.record("it was written down already") }
            stale = try #require(written)
            #expect(stale.proposedToken?.count == 32)
            #expect(try await asking.session(nonce: stale.nonce, clock: noClock).isRestored)
            #expect(asking.credentials.token == stale.proposedToken)
            #expect(asking.credentials.proposedToken == nil)
            // As if it had never heard that.
            let again = try CloudClient(credentials: stale, logger: RunningServer.logger)
            #expect(try await again.session(nonce: stale.nonce, clock: noClock).isRestored)
            #expect(again.credentials.device == asking.credentials.device)
            #expect(try await again.devices().count == 2)
            stale.proposedToken = [1]
            let odd = try CloudClient(credentials: stale, logger: RunningServer.logger)
            #expect(await refusal { _ = try await odd.session(nonce: stale.nonce, clock: noClock) } == "bad-request")
            for client in [asking, again, odd] { await client.shutdown() }
        }
    }

    @Test func `names of devices are made fit to be shown and to stand in names of files`() async throws {
        try await withServer { server, client, _ in
            for name in ["a/b\u{0}\u{7}c", "  ", "..", String(repeating: "x", count: 500)] {
                await (try await server.join(name)).shutdown()
            }
            let names = try await client.devices().map(\.name)
            #expect(names == ["laptop", "a-bc", "device", "device 2", String(repeating: "x", count: 64)])
        }
    }

    @Test func `a device that may only read is told so`() async throws {
        try await withServer { server, client, container in
            let file = try PreparedFile(randomBytes(1_000), container)
            let create = try file.create("a")
            let item = create.item
            _ = try await client.commit(.documents, operations: [create], frames: file.frames, clock: noClock)
            let reader = try await server.join("reader", code: try await server.code(readOnly: true))
            #expect(try await reader.containers().map(\.isReadOnly) == [true])
            #expect(try await reader.changes(.documents, since: nil, limit: 10).items.map(\.id) == [item])
            let operations = [try folder("x")]
            let code = await refusal {
                _ = try await reader.commit(.documents, operations: operations, frames: [], clock: noClock)
            }
            #expect(code == "read-only")
            #expect(await refusal { try await reader.upload(.documents, frames: file.frames) } == "read-only")
            #expect(await refusal { try await reader.removeContainer(.documents) } == "read-only")
            let change = PackageDeclaration(added: ["foo"])
            #expect(await refusal { _ = try await reader.declarePackages(.documents, change) } == "read-only")
            #expect(await refusal { try await reader.revoke(deviceNamed: "laptop") } == "read-only")
            await reader.shutdown()
        }
    }

    @Test func `containers are created once, and removed`() async throws {
        try await withServer { _, client, container in
            let notes = try #require(ContainerID("org.example.notes"))
            let made = try await client.createContainer(notes, layout: .app, isCaseInsensitive: true)
            #expect(made.layout == .app)
            #expect(made.isCaseInsensitive)
            #expect(made.key.count == 32)
            #expect(made.key != container.key)
            let again = await refusal {
                _ = try await client.createContainer(notes, layout: .app, isCaseInsensitive: true)
            }
            #expect(again == "container-exists")
            try await client.removeContainer(notes)
            #expect(try await client.containers() == [container])
            #expect(
                await refusal { _ = try await client.changes(notes, since: nil, limit: 1) }.map {
                    $0 == "no-such-container" || $0 == "not-found"
                } == true
            )
        }
    }

    @Test func `a device is told its name when it joins, and signs itself out, not its namesake`() async throws {
        try await withServer { server, client, _ in
            let second = try await server.join("laptop")
            #expect(second.credentials.deviceName == "laptop 2")
            try await second.signOut()
            #expect(await refusal { _ = try await second.containers() } == "revoked")
            try await second.signOut()
            #expect(try await client.devices().map(\.isRevoked) == [false, true])
            await second.shutdown()
        }
    }

    @Test func `strangers cannot make the server hold long bodies`() async throws {
        try await withServer(isPlain: true) { server, client, _ in
            let long = [UInt8](repeating: 0, count: CloudLimits.accountBytes + 1)
            #expect(try await RawRequest.post(server.url, CloudRoute.join, body: long).status == 413)
            let headers = [CloudHeader.authorization: CloudHeader.bearer([1])]
            #expect(
                try await RawRequest.post(server.url, CloudRoute.session, headers: headers, body: long).status == 413
            )
            // Nor with a commit, which may be long: who they are is asked first.
            let commit = CloudRoute.path(.documents, .commit)
            #expect(try await RawRequest.post(server.url, commit, headers: headers, body: long).status == 401)
            _ = try await client.containers()
        }
    }

    @Test func `strangers are refused`() async throws {
        try await withServer(isPlain: true) { server, client, _ in
            var credentials = client.credentials
            credentials.token = [UInt8](repeating: 9, count: 32)
            let stranger = try CloudClient(credentials: credentials, logger: RunningServer.logger)
            #expect(await refusal { _ = try await stranger.containers() } == "unauthorized")
            await stranger.shutdown()
            for path in [CloudRoute.containers, CloudRoute.path(.documents, .changes), CloudRoute.devices] {
                #expect(try await RawRequest.post(server.url, path, body: [], method: "GET").status == 401)
            }
            #expect(try await RawRequest.post(server.url, CloudRoute.health, body: [], method: "GET").status == 200)
            let lost = try await RawRequest.post(server.url, "/v1/nothing", body: [], method: "GET")
            #expect(lost.status == 404)
            #expect(try WireFailure(body: lost.body).code == "not-found")
        }
    }

    @Test func `accounts are administered beside the running server`() async throws {
        try await withServer { server, _, _ in
            let administration = try ServerAdministration(dataDirectory: server.data)
            let invitation = try await administration.addAccount(name: "bert", quota: 1_000)
            #expect(invitation.url == server.url)
            let bert = try await server.join("desk", code: invitation.code)
            #expect(bert.credentials.account == "bert")
            #expect(try await bert.containers().isEmpty)
            #expect(try await administration.accounts().map(\.name) == ["bert", "me"])
            try await administration.removeAccount(name: "bert")
            #expect(await refusal { _ = try await bert.containers() } == "revoked")
            await bert.shutdown()
        }
    }
}
