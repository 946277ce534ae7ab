import CatalogModel
import Reconciliation
import Testing
import UbiquityModel

@Suite struct AccessTests {
    @Test(arguments: Backend.allCases)
    func `a code lets one device in, for a quarter of an hour`(backend: Backend) async throws {
        let test = try await TestCatalog(backend)
        let secret = SecretHash(secret: [9])
        let invitation = Invitation(secret: secret, grant: .everything, expires: time(100))
        try await test.catalog.addInvitation(invitation, by: test.scope.token)
        let catalog = test.catalog
        await #expect(throws: CatalogError.wrongCode) {
            try await catalog.join(SecretHash(secret: [8]), as: device("phone", token: [2]), now: time(99))
        }
        await #expect(throws: CatalogError.expiredCode) {
            try await catalog.join(secret, as: device("phone", token: [2]), now: time(100))
        }
        let access = try await catalog.join(secret, as: device("phone", token: [2]), now: time(99))
        #expect(access.accountName == "anna")
        await #expect(throws: CatalogError.usedCode) {
            try await catalog.join(secret, as: device("other", token: [3]), now: time(99))
        }
    }

    @Test(arguments: Backend.allCases)
    func `devices of one name are told apart`(backend: Backend) async throws {
        let test = try await TestCatalog(backend)
        let second = try await test.catalog.join("anna", token: [2], name: "laptop")
        let third = try await test.catalog.join("anna", token: [3], name: "laptop")
        #expect([second.deviceName, third.deviceName] == ["laptop 2", "laptop 3"])
    }

    @Test(arguments: Backend.allCases)
    func `a revoked device is refused from then on, also within a commit`(backend: Backend) async throws {
        let test = try await TestCatalog(backend)
        let catalog = test.catalog
        let phone = try await catalog.join("anna", token: [2], name: "phone")
        let scope = Scope(token: TokenHash(token: [2]), container: TestCatalog.container)
        _ = try await test.commit([try folder("f")], scope: scope)
        #expect(try await catalog.revoke("phone", by: test.scope.token, now: time(5)) == phone.device)
        let operation = try folder("g")
        let request = CommitRequest(entries: [.operation(operation)], deviceClock: time(1), now: time(1))
        await #expect(throws: CatalogError.revoked) { try await catalog.commit(request, scope) }
        await #expect(throws: CatalogError.revoked) { try await catalog.changes(scope, since: nil, limit: 1) }
        await #expect(throws: CatalogError.revoked) { try await catalog.access(scope.token) }
        await #expect(throws: CatalogError.unauthorized) { try await catalog.access(TokenHash(token: [77])) }
        await #expect(throws: CatalogError.noSuchDevice("phone")) {
            try await catalog.revoke("phone", by: TokenHash(token: [1]), now: time(6))
        }
        #expect(try await catalog.devices(for: test.scope.token).map(\.isRevoked) == [false, true])
    }

    @Test(arguments: Backend.allCases)
    func `a code that a revoked device has made lets nobody in`(backend: Backend) async throws {
        let test = try await TestCatalog(backend)
        let catalog = test.catalog
        _ = try await catalog.join("anna", token: [2], name: "phone")
        let secrets = [SecretHash(secret: [20]), SecretHash(secret: [21])]
        for (secret, inviter) in zip(secrets, [TokenHash(token: [2]), test.scope.token]) {
            let invitation = Invitation(secret: secret, grant: .everything, expires: time(100))
            try await catalog.addInvitation(invitation, by: inviter)
        }
        _ = try await catalog.revoke("phone", by: test.scope.token, now: time(5))
        await #expect(throws: CatalogError.wrongCode) {
            try await catalog.join(secrets[0], as: device("thief", token: [3]), now: time(6))
        }
        _ = try await catalog.join(secrets[1], as: device("tablet", token: [4]), now: time(6))
    }

    @Test(arguments: Backend.allCases)
    func `a commit that knows nothing of a new nonce does not say that it has arrived`(backend: Backend) async throws {
        let test = try await TestCatalog(backend)
        let catalog = test.catalog
        let phone = try await catalog.join("anna", token: [2], name: "phone")
        let scope = Scope(token: TokenHash(token: [2]), container: TestCatalog.container)
        func open(_ nonce: [UInt8], fresh: [UInt8]) async throws -> CatalogSession {
            let other = DeviceID(high: 9, low: UInt64(fresh[0]))
            let credentials = FreshCredentials(nonce: fresh, device: other, token: TokenHash(token: fresh))
            return try await catalog.openSession(scope.token, nonce: nonce, fresh: credentials, now: time(2))
        }
        func commit(_ name: String, knowing nonce: [UInt8]) async throws {
            let operation = try folder(name)
            let entries = [CommitRequest.Entry.operation(operation)]
            let request = CommitRequest(entries: entries, deviceClock: time(1), nonce: nonce, now: time(2))
            _ = try await catalog.commit(request, scope)
        }
        // The answer is lost, and the connection of another container goes on.
        _ = try await open([1], fresh: [21])
        try await commit("a", knowing: [1])
        #expect(try await !open([1], fresh: [22]).isRestored)
        #expect(try await catalog.access(scope.token).device == phone.device)
        try await commit("b", knowing: [22])
        #expect(try await open([1], fresh: [23]).isRestored)
    }

    @Test(arguments: Backend.allCases)
    func `an old nonce voids the codes of the identity that it was, and revoked ones get no other`(
        backend: Backend
    ) async throws {
        let test = try await TestCatalog(backend)
        let catalog = test.catalog
        let token = test.scope.token
        let secret = SecretHash(secret: [20])
        try await catalog.addInvitation(Invitation(secret: secret, grant: .everything, expires: time(100)), by: token)
        func fresh(_ byte: UInt8) -> FreshCredentials {
            FreshCredentials(nonce: [byte], device: .random(), token: TokenHash(token: [byte]))
        }
        #expect(try await catalog.openSession(token, nonce: [99], fresh: fresh(50), now: time(5)).isRestored)
        await #expect(throws: CatalogError.wrongCode) {
            try await catalog.join(secret, as: device("thief", token: [3]), now: time(6))
        }
        _ = try await catalog.revokeSelf(token, now: time(7))
        let again = fresh(51)
        await #expect(throws: CatalogError.revoked) {
            try await catalog.openSession(token, nonce: [99], fresh: again, now: time(8))
        }
    }

    @Test(arguments: Backend.allCases)
    func `a device signs itself out, whatever it is called`(backend: Backend) async throws {
        let test = try await TestCatalog(backend)
        let catalog = test.catalog
        let second = try await catalog.join("anna", token: [2], name: "laptop")
        #expect(try await catalog.revokeSelf(TokenHash(token: [2]), now: time(5)).device == second.device)
        await #expect(throws: CatalogError.revoked) { try await catalog.access(TokenHash(token: [2])) }
        #expect(try await catalog.access(test.scope.token).deviceName == "laptop")
    }

    @Test(arguments: Backend.allCases)
    func `a device that may only read writes nothing and invites no writer`(backend: Backend) async throws {
        let test = try await TestCatalog(backend)
        let catalog = test.catalog
        _ = try await catalog.join("anna", token: [2], name: "reader", grant: Grant(isReadOnly: true))
        let reader = TokenHash(token: [2])
        let scope = Scope(token: reader, container: TestCatalog.container)
        let request = CommitRequest(entries: [], deviceClock: time(1), now: time(1))
        await #expect(throws: CatalogError.readOnly) { try await catalog.commit(request, scope) }
        await #expect(throws: CatalogError.readOnly) {
            try await catalog.addChunks([], renewed: [], scope, now: time(1))
        }
        await #expect(throws: CatalogError.readOnly) { try await catalog.intake([], scope) }
        await #expect(throws: CatalogError.readOnly) { try await catalog.removeContainer(scope, now: time(1)) }
        await #expect(throws: CatalogError.readOnly) { try await catalog.revoke("laptop", by: reader, now: time(1)) }
        #expect(try await catalog.containers(for: reader).map(\.info.isReadOnly) == [true])
        #expect(try await catalog.changes(scope, since: nil, limit: 1).entries.isEmpty)
        let secret = SecretHash(secret: [5])
        try await catalog.addInvitation(Invitation(secret: secret, grant: .everything, expires: time(9)), by: reader)
        let guest = try await catalog.join(secret, as: device("guest", token: [3]), now: time(1))
        #expect(guest.grant.isReadOnly)
    }

    @Test(arguments: Backend.allCases)
    func `what a container declares to be packages is told to all devices, and changed by those that write`(
        backend: Backend
    ) async throws {
        let test = try await TestCatalog(backend)
        let catalog = test.catalog
        let scope = test.scope
        _ = try await catalog.join("anna", token: [2], name: "reader", grant: Grant(isReadOnly: true))
        let reader = Scope(token: TokenHash(token: [2]), container: TestCatalog.container)
        let position = try await test.commit([try folder("f")]).position
        let added = PackageDeclaration(added: ["foo", "bar"])
        #expect(try await catalog.declarePackages(added, scope).info.packages == added)
        let told = try await catalog.declarePackages(PackageDeclaration(removed: ["foo", "rtfd"]), scope)
        let expected = PackageDeclaration(added: ["bar"], removed: ["foo", "rtfd"])
        #expect(told.info.packages == expected)
        #expect(try await catalog.containers(for: reader.token).map(\.info.packages) == [expected])
        // The log has nothing of it, but pages do, as do those of a position that is not known.
        for since in [position, nil, LogPosition(counter: 99, hash: [UInt8](repeating: 1, count: 32))] {
            #expect(try await catalog.changes(reader, since: since, limit: 10).packages == expected)
        }
        #expect(try await catalog.changes(scope, since: nil, limit: 10).head == position)
        await #expect(throws: CatalogError.readOnly) { try await catalog.declarePackages(added, reader) }
        let foreign = Scope(token: scope.token, container: try #require(ContainerID("other")))
        await #expect(throws: CatalogError.noSuchContainer(foreign.container)) {
            try await catalog.declarePackages(added, foreign)
        }
        // With it from the beginning.
        let info = ContainerInfo(
            id: foreign.container,
            key: test.key,
            layout: .app,
            isCaseInsensitive: false,
            isReadOnly: false,
            packages: added
        )
        #expect(try await catalog.createContainer(info, by: scope.token, now: time(3)).info == info)
    }

    @Test(arguments: Backend.allCases)
    func `a container declares so many extensions, and no more`(backend: Backend) async throws {
        let test = try await TestCatalog(backend)
        let catalog = test.catalog
        let scope = test.scope
        let many = PackageDeclaration(added: Set((1..<PackageDeclaration.limit).map { "e\($0)" }))
        let full = try await catalog.declarePackages(many, scope)
            .info.packages.applying(PackageDeclaration(removed: ["rtfd"]))
        #expect(try await catalog.declarePackages(PackageDeclaration(removed: ["rtfd"]), scope).info.packages == full)
        await #expect(throws: CatalogError.tooManyExtensions(limit: PackageDeclaration.limit)) {
            try await catalog.declarePackages(PackageDeclaration(added: ["one-more"]), scope)
        }
        #expect(try await catalog.containers(for: scope.token).map(\.info.packages) == [full])
        let other = try await catalog.declarePackages(PackageDeclaration(added: ["rtfd"], removed: ["e1"]), scope)
        #expect(other.info.packages.count == PackageDeclaration.limit)
    }

    @Test(arguments: Backend.allCases)
    func `a device sees only the containers that it was invited to`(backend: Backend) async throws {
        let test = try await TestCatalog(backend)
        let catalog = test.catalog
        let notes = try #require(ContainerID("notes"))
        let info = ContainerInfo(id: notes, key: test.key, layout: .app, isCaseInsensitive: true, isReadOnly: false)
        let made = try await catalog.createContainer(info, by: test.scope.token, now: time(1))
        #expect(made.info == info)
        await #expect(throws: CatalogError.containerExists(notes)) {
            try await catalog.createContainer(info, by: TokenHash(token: [1]), now: time(1))
        }
        _ = try await catalog.join("anna", token: [2], name: "guest", grant: Grant(containers: [notes]))
        let guest = TokenHash(token: [2])
        #expect(try await catalog.containers(for: guest).map(\.info.id) == [notes])
        await #expect(throws: CatalogError.noSuchContainer(.documents)) {
            try await catalog.changes(Scope(token: guest, container: .documents), since: nil, limit: 1)
        }
        await #expect(throws: CatalogError.readOnly) {
            try await catalog.createContainer(info, by: guest, now: time(1))
        }
        // It cannot invite to more than it has.
        let more = Invitation(secret: SecretHash(secret: [5]), grant: Grant(containers: [.documents]), expires: time(9))
        await #expect(throws: CatalogError.noSuchContainer(.documents)) {
            try await catalog.addInvitation(more, by: guest)
        }
    }

    @Test(arguments: Backend.allCases)
    func `accounts do not see each other`(backend: Backend) async throws {
        let test = try await TestCatalog(backend)
        let catalog = test.catalog
        try await catalog.addAccount("bert", quota: nil, now: time(1))
        _ = try await catalog.join("bert", token: [2], name: "laptop")
        #expect(try await catalog.containers(for: TokenHash(token: [2])).isEmpty)
        await #expect(throws: CatalogError.noSuchContainer(.documents)) {
            try await catalog.changes(Scope(token: TokenHash(token: [2]), container: .documents), since: nil, limit: 1)
        }
        await #expect(throws: CatalogError.noSuchDevice("phone")) {
            try await catalog.revoke("phone", by: TokenHash(token: [2]), now: time(1))
        }
        await #expect(throws: CatalogError.accountExists("bert")) {
            try await catalog.addAccount("bert", quota: nil, now: time(1))
        }
        try await catalog.removeAccount("bert", now: time(5))
        await #expect(throws: CatalogError.revoked) { try await catalog.access(TokenHash(token: [2])) }
        #expect(try await catalog.accounts().map(\.name) == ["anna"])
        await #expect(throws: CatalogError.noSuchAccount("bert")) {
            try await catalog.removeAccount("bert", now: time(6))
        }
        try await catalog.addAccount("bert", quota: nil, now: time(7))
    }

    @Test(arguments: Backend.allCases)
    func `a restored device that asks again because no answer came is the same other device`(
        backend: Backend
    ) async throws {
        let test = try await TestCatalog(backend)
        let catalog = test.catalog
        let token = test.scope.token
        let proposed = TokenHash(token: [77])
        func session(_ fresh: UInt8) async throws -> CatalogSession {
            let credentials = FreshCredentials(
                nonce: [fresh],
                device: .random(),
                token: TokenHash(token: [100, fresh]),
                proposed: proposed
            )
            return try await catalog.openSession(token, nonce: [99], fresh: credentials, now: time(5))
        }
        let first = try await session(2)
        #expect(first.isRestored && first.hasProposedToken && first.access.deviceName == "laptop")
        let second = try await session(3)
        #expect(second.isRestored && second.hasProposedToken)
        #expect(second.access == first.access)
        #expect(try await catalog.devices(for: token).map(\.name).sorted() == ["laptop", "laptop 2"])
        // The second answer came, and with the next session nobody else can be that device.
        let next = FreshCredentials(nonce: [4], device: .random(), token: TokenHash(token: [104]))
        #expect(try await catalog.openSession(proposed, nonce: [3], fresh: next, now: time(6)).isRestored == false)
        let clone = try await session(5)
        #expect(clone.isRestored && !clone.hasProposedToken)
        #expect(clone.access.device != first.access.device)
        #expect(try await catalog.access(TokenHash(token: [100, 5])).device == clone.access.device)
    }

    @Test(arguments: Backend.allCases)
    func `a session renews the nonce, and an old nonce makes another device`(backend: Backend) async throws {
        let test = try await TestCatalog(backend)
        let token = test.scope.token
        func session(_ nonce: UInt8, fresh: UInt8) async throws -> CatalogSession {
            let credentials = FreshCredentials(
                nonce: [fresh],
                device: .random(),
                token: TokenHash(token: [100, fresh])
            )
            return try await test.catalog.openSession(token, nonce: [nonce], fresh: credentials, now: time(5))
        }
        #expect(try await session(1, fresh: 2).isRestored == false)
        // The answer was lost: the former nonce still counts, until the device has committed something.
        #expect(try await session(1, fresh: 3).isRestored == false)
        #expect(try await session(3, fresh: 4).isRestored == false)
        _ = try await test.commit([try folder("f")])
        let clone = try await session(3, fresh: 5)
        #expect(clone.isRestored)
        #expect(clone.access.deviceName == "laptop")
        #expect(try await test.catalog.access(TokenHash(token: [100, 5])).device == clone.access.device)
        // The original goes on as before, under a name that tells it from the clone.
        let original = try await session(4, fresh: 6)
        #expect(original.isRestored == false)
        #expect(original.access.deviceName == "laptop 2")
    }

    @Test(arguments: Backend.allCases)
    func `removed containers are gone, and their name is free`(backend: Backend) async throws {
        let test = try await TestCatalog(backend)
        let catalog = test.catalog
        let scope = test.scope
        _ = try await test.commit([try folder("f")])
        try await catalog.removeContainer(scope, now: time(2))
        await #expect(throws: CatalogError.noSuchContainer(.documents)) {
            try await catalog.changes(scope, since: nil, limit: 1)
        }
        let info = ContainerInfo(
            id: .documents,
            key: test.key,
            layout: .drive,
            isCaseInsensitive: false,
            isReadOnly: false
        )
        _ = try await catalog.createContainer(info, by: scope.token, now: time(3))
        #expect(try await catalog.changes(scope, since: nil, limit: 1).head == .beginning)
    }

    @Test(arguments: Backend.allCases)
    func `the quota counts different chunks, and refuses what passes it`(backend: Backend) async throws {
        let test = try await TestCatalog(backend, quota: 10)
        let catalog = test.catalog
        let small = TestFile("12345678")
        let big = TestFile("abcdefgh")
        #expect(try await test.commit([try small.create("a")], chunks: small.records).outcomes.first?.item != nil)
        #expect(try await catalog.accounts().map(\.used) == [8])
        // The same chunk again costs nothing.
        var copy = TestFile("12345678")
        copy.item = .random()
        #expect(try await test.commit([try copy.create("b")], chunks: copy.records).outcomes.first?.item != nil)
        #expect(try await catalog.accounts().map(\.used) == [8])
        let sizes = big.records.map { ChunkSize(chunk: $0.chunk, length: $0.length) }
        let intake = try await catalog.intake(sizes, test.scope)
        #expect(intake.isQuotaExceeded)
        #expect(intake.unknown.count == 1)
        let outcomes = try await test.commit([try big.create("c"), try folder("f")], chunks: big.records).outcomes
        #expect(outcomes.first == .quotaExceeded)
        #expect(outcomes.last?.item != nil)
        let scope = test.scope
        await #expect(throws: CatalogError.quotaExceeded) {
            try await catalog.addChunks(big.records, renewed: [], scope, now: time(1))
        }
        #expect(try await catalog.missing(big.records.map(\.chunk), scope, now: time(1)) == [0])
        #expect(try await catalog.accounts().map(\.used) == [8])
    }
}
