import CatalogModel
import CatalogStore
import Reconciliation
import UbiquityModel

/// Plays histories on the catalogue in SQLite and on the one in memory, and compares what they say.
///
/// Both live longer than one history: each has an account of its own.
final class CatalogDuel {
    private let folder: TemporaryFolder
    private let sqlite: SQLiteCatalog
    private let memory = VolatileCatalog()

    init() throws {
        folder = try TemporaryFolder.inMemory()
        sqlite = try SQLiteCatalog(path: folder.path + "/catalog.sqlite")
    }

    /// Plays it to its end or to the first difference.
    func play(
        _ history: [CatalogStep],
        account: String,
        quota: Int64?,
        isCaseInsensitive: Bool
    ) async throws -> CatalogDifference? {
        let scope = try await begin(account, quota, isCaseInsensitive)
        var played = 0
        var position = LogPosition.beginning
        var items = Set<ItemID>()
        do throws(CatalogDifference) {
            for step in history {
                played += 1
                let answer = try await perform(step, account)
                items.formUnion(step.items)
                position = try await compareFeed(scope, since: position, items, limit: 2 + played % 5)
                if let answer, answer.position != position { throw CatalogDifference("the feed ends elsewhere") }
                // Of the rest what changed: all of it each time would take ten times as long.
                try await compareFolders([.root] + Set(step.items).sorted(), scope, limit: 6 + played % 9)
            }
            try await compareAll(scope)
        } catch {
            var difference = error
            difference.history = history.prefix(played).map(\.description)
            return difference
        }
        return nil
    }

    func close() throws { try sqlite.close() }

    private func begin(_ account: String, _ quota: Int64?, _ isCaseInsensitive: Bool) async throws -> Scope {
        for catalog in [sqlite, memory] as [any Catalog] {
            try await catalog.addAccount(account, quota: quota, now: time(1))
        }
        for number in CatalogStepGenerator.devices {
            let grant = Grant(isReadOnly: number == CatalogStepGenerator.reader)
            let secret = SecretHash(secret: Array(account.utf8) + [number])
            let invitation = Invitation(secret: secret, grant: grant, expires: time(100))
            let new = NewDevice(id: .random(), name: "device \(number)", token: token(number, account), nonce: [1])
            for catalog in [sqlite, memory] as [any Catalog] {
                try await catalog.addInvitation(invitation, account: account)
                _ = try await catalog.join(secret, as: new, now: time(2))
            }
        }
        let key = [UInt8](repeating: 7, count: 32)
        let info = ContainerInfo(
            id: .documents,
            key: key,
            layout: .drive,
            isCaseInsensitive: isCaseInsensitive,
            isReadOnly: false
        )
        let scope = Scope(token: token(1, account), container: .documents)
        for catalog in [sqlite, memory] as [any Catalog] {
            _ = try await catalog.createContainer(info, by: scope.token, now: time(3))
        }
        // Whatever becomes of the devices of the history, this one may look.
        return Scope(token: token(Self.observer, account), container: .documents)
    }

    private static let observer = CatalogStepGenerator.reader

    private func token(_ device: UInt8, _ account: String) -> TokenHash {
        TokenHash(token: Array(account.utf8) + [device])
    }

    // MARK: Steps

    private func perform(_ step: CatalogStep, _ account: String) async throws(CatalogDifference) -> CommitAnswer? {
        switch step {
        case .commit(let request, let device):
            let scope = Scope(token: token(device, account), container: .documents)
            return try await compare("the answer") { try await $0.commit(request, scope) }
        case .keepHouse(let now): try await keepHouse(now)
        case .addChunks(let chunks, let device):
            let scope = Scope(token: token(device, account), container: .documents)
            let sizes = chunks.map { ChunkSize(chunk: $0.chunk, length: $0.length) }
            try await compare("the intake") { try await $0.intake(sizes, scope) }
            let renewed = chunks.map(\.chunk)
            try await compare("the chunks' answer") { catalog in
                try await catalog.addChunks(chunks, renewed: renewed, scope, now: time(1_005))
                return true
            }
        case .openSession(let device, let nonce, let freshNonce, let fresh, let proposed):
            let credentials = FreshCredentials(
                nonce: [freshNonce],
                device: .random(),
                token: token(fresh, account),
                proposed: proposed.map { self.token($0, account) }
            )
            let token = token(device, account)
            try await compare("the session") {
                try await $0.openSession(token, nonce: [nonce], fresh: credentials, now: time(5))
            }
        case .revoke(let name, let device):
            let token = token(device, account)
            try await compare("the revoked device") { try await $0.revoke(name, by: token, now: time(6)) }
        case .declarePackages(let change, let device):
            let scope = Scope(token: token(device, account), container: .documents)
            try await compare("the declared packages") { try await $0.declarePackages(change, scope).info }
        }
        return nil
    }

    /// With rules that discard much within the seconds of a history.
    private static let rules = RetentionRules(
        everything: .seconds(3),
        steps: [.init(age: .seconds(12), period: .seconds(3))],
        resolved: .seconds(2),
        unwanted: .seconds(1),
        deleted: .seconds(4)
    )

    private func keepHouse(_ now: Timestamp) async throws(CatalogDifference) {
        var item: ItemPosition?
        repeat {
            let after = item
            item = try await compare("the discarded versions") {
                try await $0.discardVersions(Self.rules, after: after, now: now)
            }?.next
        } while item != nil
        let time = Timestamp(nanoseconds: 0)..<now.before(Self.rules.deleted)
        var deleted: TombstonePosition?
        repeat {
            let after = deleted
            deleted = try await compare("what was deleted long ago") {
                try await $0.discardDeleted(in: time, after: after, now: now)
            }?.next
        } while deleted != nil
        var chunk: ChunkPosition?
        repeat {
            let after = chunk
            chunk = try await compare("the collected chunks") {
                try await $0.collectChunks(after: after, now: now)
            }?.next
        } while chunk != nil
    }

    // MARK: Comparing

    /// Returns where the feed ends.
    private func compareFeed(
        _ scope: Scope,
        since: LogPosition,
        _ items: Set<ItemID>,
        limit: Int
    ) async throws(CatalogDifference) -> LogPosition {
        var position = since
        var hasMore = true
        while hasMore {
            let from = position
            let page = try await compare("the feed") { try await $0.changes(scope, since: from, limit: limit) }
            guard let page, !page.isUnknownPosition else { throw CatalogDifference("a position is not known") }
            guard page.entries.allSatisfy({ items.contains($0.item.id) }) else {
                throw CatalogDifference("the feed tells of what nobody made")
            }
            position = page.position
            hasMore = page.hasMore
        }
        return position
    }

    /// Everything that can be asked about the container.
    private func compareAll(_ scope: Scope) async throws(CatalogDifference) {
        let listing = try await compare("the listing") { try await $0.changes(scope, since: nil, limit: 1_000) }
        let listed = (listing?.entries ?? []).map(\.item)
        try await compareFolders([.root] + listed.filter { $0.content == .folder }.map(\.id), scope, limit: 5)
        var after: DeletedPosition?
        repeat {
            let from = after
            let page = try await compare("what was deleted") {
                try await $0.deleted(scope, since: time(1_003), after: from, limit: 3)
            }
            let last = page?.items.last
            after = page?.hasMore == true ? last.map { .init(deleted: $0.deleted, position: $0.item.position) } : nil
        } while after != nil
        var known = [(item: ItemID, version: ItemVersion)]()
        for item in listed.map(\.id) + [.random()] {
            let versions = try await compare("the versions") { try await $0.versions(item, scope) }
            known += (versions ?? []).map { (item, $0) }
        }
        let versions = known
        for limit in [36 * versions.count, 36] {
            try await compare("the manifests") {
                try await $0.manifests(versions.map(\.version.content), limit: limit, scope)
            }
        }
        try await compare("the wholeness") { catalog in
            try await catalog.wholeness(versions.map { ($0.item, $0.version.revision) } + [(.root, .random())], scope)
        }
        let chunks = Self.chunks
        try await compare("the chunks") { try await $0.chunks(chunks, scope) }
        for now in [time(1_010), time(100_000)] {
            try await compare("the missing chunks") { try await $0.missing(chunks, scope, now: now) }
        }
        try await compare("the devices") { try await $0.devices(for: scope.token) }
        try await compare("the containers") { try await $0.containers(for: scope.token) }
        try await compare("the accounts") { try await $0.accounts() }
    }

    /// What lies in folders, page by page to the end.
    private func compareFolders(
        _ folders: [ItemID],
        _ scope: Scope,
        limit: Int
    ) async throws(CatalogDifference) {
        var rest = folders
        var after: Name?
        while !rest.isEmpty {
            let (asked, start) = (rest, after)
            let page = try await compare("what lies in folders") {
                try await $0.children(of: asked, after: start, limit: limit, scope)
            }
            guard let page else { throw CatalogDifference("folders are refused") }
            guard page.completeCount > 0 || page.last.map({ last in after.map { $0 < last } ?? true }) == true else {
                throw CatalogDifference("a page of folders goes no further")
            }
            rest.removeFirst(page.completeCount)
            after = page.last
        }
    }

    private static let chunks = ["x", "y", "xy", "z", "w", "long", "er"].compactMap(chunk)

    /// What both say; `nil` if they refuse with one error.
    @discardableResult
    private func compare<Value: Equatable & Sendable>(
        _ what: String,
        _ ask: (any Catalog) async throws -> Value
    ) async throws(CatalogDifference) -> Value? {
        let onDisk = await result { try await ask(sqlite) }
        let inMemory = await result { try await ask(memory) }
        if case .failure(.failed(let message)) = onDisk { throw CatalogDifference("\(what): \(message)") }
        guard onDisk == inMemory else {
            throw CatalogDifference("\(what):\nin SQLite \(onDisk)\nin memory \(inMemory)")
        }
        return try? onDisk.get()
    }

    private func result<Value>(_ ask: () async throws -> Value) async -> Result<Value, CatalogError> {
        do { return .success(try await ask()) } catch let error as CatalogError { return .failure(error) } catch {
            return .failure(.failed("\(error)"))
        }
    }
}

struct CatalogDifference: Error, CustomStringConvertible {
    let what: String
    /// The steps up to that one.
    var history: [String] = []

    init(_ what: String) { self.what = what }

    var description: String {
        (history.enumerated().map { "\($0 + 1). \($1)" } + [what]).joined(separator: "\n")
    }
}

extension CatalogStep {
    /// The items that it may change.
    fileprivate var items: [ItemID] {
        guard case .commit(let request, _) = self else { return [] }
        return request.entries.compactMap { entry in
            if case .operation(let operation) = entry, operation.item != .root { return operation.item }
            return nil
        }
    }
}
