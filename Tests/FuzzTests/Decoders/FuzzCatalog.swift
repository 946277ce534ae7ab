import CatalogModel
import CatalogStore
import Reconciliation
import UbiquityModel

/// A catalogue with a little of everything in it.
enum FuzzCatalog {
    private static let scope = Scope(token: TokenHash(token: [1]), container: .documents)
    private static let now = Timestamp(nanoseconds: 1_800_000_000_000_000_000)
    private static let secret = SecretHash(secret: [1])

    static func make(_ path: String) async throws -> SQLiteCatalog {
        let catalog = try SQLiteCatalog(path: path)
        var arbitrary = Arbitrary(seed: 1)
        try await catalog.addAccount("me", quota: 1 << 40, now: now)
        let forever = Timestamp(nanoseconds: .max)
        for secret in [secret, SecretHash(secret: [2])] {
            let invitation = Invitation(secret: secret, grant: .everything, expires: forever)
            try await catalog.addInvitation(invitation, account: "me")
        }
        let device = NewDevice(id: DeviceID(high: 1, low: 1), name: "device", token: scope.token, nonce: [1])
        _ = try await catalog.join(secret, as: device, now: now)
        let key = arbitrary.bytes(32)
        let info = ContainerInfo(
            id: .documents,
            key: key,
            layout: .drive,
            isCaseInsensitive: false,
            isReadOnly: false
        )
        _ = try await catalog.createContainer(info, by: scope.token, now: now)
        _ = try await catalog.declarePackages(PackageDeclaration(added: ["a", "b"], removed: ["c"]), scope)
        let chunk = try Self.chunk
        try await catalog.addChunks([chunk], renewed: [], scope, now: now)
        let manifest = Manifest(entries: [.init(chunk: chunk.chunk, length: chunk.length)])
        let entries = try (UInt64(1)...4).map { number in
            let content = FileContent(
                revision: RevisionID(high: 1, low: number),
                content: try content(),
                size: manifest.size
            )
            let place = Place(parent: .root, name: try Name("file \(number)"))
            return CommitRequest.Entry.operation(
                ItemOperation(
                    id: OperationID(high: 1, low: number),
                    item: ItemID(high: 2, low: number),
                    action: .create(
                        place: place,
                        content: .file(content),
                        attributes: ItemAttributes(modified: now, mode: 0o644, extended: [Array("user.a".utf8): [1]]),
                        manifest: manifest,
                        edited: now
                    )
                )
            )
        }
        let gone = ItemOperation(
            id: OperationID(high: 1, low: 9),
            item: ItemID(high: 2, low: 4),
            action: .delete(base: RevisionID(high: 1, low: 4), conflicts: [RevisionID(high: 1, low: 5)])
        )
        _ = try await catalog.commit(
            CommitRequest(entries: entries + [.operation(gone)], deviceClock: now, now: now),
            scope
        )
        return catalog
    }

    private static var chunk: ChunkRecord {
        get throws {
            var arbitrary = Arbitrary(seed: 2)
            return ChunkRecord(
                chunk: try arbitrary.chunk(),
                length: 5,
                isCompressed: false,
                pack: 1,
                offset: 16,
                recordLength: 69
            )
        }
    }

    private static func content() throws -> ContentID {
        var arbitrary = Arbitrary(seed: 3)
        return try arbitrary.content()
    }

    /// Asks it everything. Whether each question got an answer.
    static func look(_ path: String) async -> Bool {
        let catalog: SQLiteCatalog
        do throws(CatalogError) { catalog = try SQLiteCatalog(path: path) } catch { return false }
        defer { try? catalog.close() }
        let item = ItemID(high: 2, low: 1)
        let revision = RevisionID(high: 1, low: 1)
        let scope = scope
        var failures = 0
        func ask<Value>(_ question: () async throws -> Value) async {
            do { _ = try await question() } catch { failures += 1 }
        }
        await ask { try await catalog.accounts() }
        await ask { try await catalog.access(scope.token) }
        await ask { try await catalog.devices(for: scope.token) }
        await ask { try await catalog.containers(for: scope.token) }
        await ask { try await catalog.changes(scope, since: nil, limit: 9) }
        await ask { try await catalog.children(of: [.root], after: nil, limit: 9, scope) }
        await ask { try await catalog.versions(item, scope) }
        await ask { try await catalog.deleted(scope, since: Timestamp(nanoseconds: 0), after: nil, limit: 9) }
        await ask { try await catalog.manifests([try content()], limit: 1 << 20, scope) }
        await ask { try await catalog.wholeness([(item, revision)], scope) }
        await ask { try await catalog.chunks([try chunk.chunk], scope) }
        await ask { try await catalog.intake([ChunkSize(chunk: try chunk.chunk, length: 5)], scope) }
        await ask { try await catalog.missing([try chunk.chunk], scope, now: now) }
        await ask { try await catalog.setting("url") }
        let fresh = FreshCredentials(nonce: [9], device: DeviceID(high: 9, low: 9), token: TokenHash(token: [9]))
        await ask { try await catalog.openSession(scope.token, nonce: [1], fresh: fresh, now: now) }
        let other = NewDevice(id: DeviceID(high: 3, low: 3), name: "other", token: TokenHash(token: [3]), nonce: [3])
        await ask { try await catalog.join(SecretHash(secret: [2]), as: other, now: now) }
        await ask { try await catalog.declarePackages(PackageDeclaration(added: ["d"], removed: ["a"]), scope) }
        await ask {
            let place = Place(parent: .root, name: try Name("b"))
            let move = ItemOperation(id: OperationID(high: 5, low: 1), item: item, action: .move(to: place))
            return try await catalog.commit(
                CommitRequest(entries: [.operation(move)], deviceClock: now, now: now),
                scope
            )
        }
        return failures == 0
    }
}
