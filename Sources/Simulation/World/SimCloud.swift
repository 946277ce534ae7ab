import CatalogModel
import EngineCore
import MemoryCatalog
import Reconciliation
import UbiquityModel

/// What a device presents to the server, as its account's file has it.
struct SimCredentials {
    /// What the account calls it.
    var name: String
    var token: [UInt8]
    var nonce: [UInt8]
    /// What it asks with until an answer comes.
    var proposedToken: [UInt8]?
}

/// The server: a catalogue in memory, and chunks of which only the names matter.
struct SimCloud {
    struct Page {
        var items: [RemoteItem]
        var manifests: [ContentID: Manifest]
        var position: LogPosition
        var more: Bool
        var isUnknownPosition: Bool
        var head: LogPosition
    }

    private var catalog = CatalogState()
    /// How many devices have ever joined, or become another one.
    private var deviceCount: UInt64 = 0
    var timeOfDay: Timestamp
    /// No chunk can be added.
    var isQuotaUsed = false

    /// - Throws: nothing, since the account is new.
    init(at time: Timestamp, isCaseInsensitive: Bool) throws {
        timeOfDay = time
        try catalog.addAccount("me", quota: nil)
        _ = try join(SimCredentials(name: "the judge", token: Self.judge, nonce: []))
        let info = ContainerInfo(
            id: .documents,
            key: [UInt8](repeating: 1, count: 32),
            layout: .drive,
            isCaseInsensitive: isCaseInsensitive,
            isReadOnly: false
        )
        _ = try catalog.createContainer(info, by: TokenHash(token: Self.judge))
    }

    /// Of a device that only looks.
    private static let judge: [UInt8] = [255]
    private static let watching = Scope(token: TokenHash(token: judge), container: .documents)

    private static func scope(_ credentials: SimCredentials) -> Scope {
        Scope(token: TokenHash(token: credentials.token), container: .documents)
    }

    // MARK: Who asks

    /// A code from somebody who is in.
    /// - Returns: what the device is called from now on.
    mutating func join(_ credentials: SimCredentials) throws -> String {
        let secret = SecretHash(secret: credentials.token)
        let expires = Timestamp(nanoseconds: .max)
        try catalog.addInvitation(Invitation(secret: secret, grant: .everything, expires: expires), account: "me")
        let token = TokenHash(token: credentials.token)
        let device = NewDevice(id: newDevice(), name: credentials.name, token: token, nonce: credentials.nonce)
        return try catalog.join(secret, as: device, now: timeOfDay).deviceName
    }

    /// - Parameter fresh: the next nonce, and the token of what was restored or cloned.
    /// - Returns: what is presented next time.
    mutating func openSession(_ credentials: SimCredentials, fresh: SimCredentials) throws -> SimCredentials {
        let session = try catalog.openSession(
            TokenHash(token: credentials.token),
            nonce: credentials.nonce,
            fresh: FreshCredentials(
                nonce: fresh.nonce,
                device: newDevice(),
                token: TokenHash(token: fresh.token),
                proposed: credentials.proposedToken.map { TokenHash(token: $0) }
            ),
            now: timeOfDay
        )
        let other = session.hasProposedToken ? credentials.proposedToken ?? [] : fresh.token
        let token = session.isRestored ? other : credentials.token
        return SimCredentials(name: session.access.deviceName, token: token, nonce: fresh.nonce)
    }

    /// - Returns: whether it had any rights.
    mutating func revoke(_ credentials: SimCredentials) -> Bool {
        (try? catalog.revokeSelf(TokenHash(token: credentials.token))) != nil
    }

    mutating func revoke(named name: String) -> Bool {
        (try? catalog.revoke(name, by: TokenHash(token: Self.judge))) != nil
    }

    /// Who has said that it brings rules, and has not brought them.
    var announcersOfRules: Set<String> {
        let rules = ((try? items()) ?? []).filter {
            $0.isAnnounced && !$0.isDeleted && IgnoreRules.isName($0.place.name)
        }
        return Set(rules.map(\.author))
    }

    func knows(_ credentials: SimCredentials) -> Bool {
        (try? catalog.access(TokenHash(token: credentials.token))) != nil
    }

    private mutating func newDevice() -> DeviceID {
        deviceCount += 1
        return DeviceID(high: 7, low: deviceCount)
    }

    // MARK: What devices ask

    mutating func commit(
        _ operations: [ItemOperation],
        chunks: [ChunkID],
        by credentials: SimCredentials,
        deviceClock: Timestamp
    ) throws -> (outcomes: [OperationOutcome], head: LogPosition) {
        let lacking = isQuotaUsed ? try missing(chunks) : []
        let request = CommitRequest(
            chunks: chunks.filter { !lacking.contains($0) }.map(Self.record),
            entries: operations.map { .operation($0) },
            deviceClock: deviceClock,
            nonce: credentials.nonce,
            now: timeOfDay,
            isQuotaExceeded: !lacking.isEmpty
        )
        let answer = try catalog.commit(request, Self.scope(credentials))
        return (answer.outcomes, answer.position)
    }

    func changes(for credentials: SimCredentials, since: LogPosition) throws -> Page {
        let page = try catalog.changes(Self.scope(credentials), since: since, limit: 7)
        var manifests: [ContentID: Manifest] = [:]
        for entry in page.entries {
            if case .file(let file) = entry.item.content, let content = file.content, let manifest = entry.manifest {
                manifests[content] = manifest
            }
        }
        return Page(
            items: page.entries.map(\.item),
            manifests: manifests,
            position: page.position,
            more: page.hasMore,
            isUnknownPosition: page.isUnknownPosition,
            head: page.head
        )
    }

    func missing(_ chunks: [ChunkID]) throws -> Set<ChunkID> {
        Set(try catalog.missing(chunks, Self.watching, now: timeOfDay).map { chunks[$0] })
    }

    mutating func add(_ chunks: [ChunkID]) throws {
        if isQuotaUsed, try !missing(chunks).isEmpty { throw SimFailure.quota }
        try catalog.addChunks(chunks.map(Self.record), renewed: chunks, Self.watching, now: timeOfDay)
    }

    private static func record(_ chunk: ChunkID) -> ChunkRecord {
        ChunkRecord(
            chunk: chunk,
            length: UInt32(SimContent.tokenBytes),
            isCompressed: false,
            pack: 1,
            offset: 0,
            recordLength: 1
        )
    }

    var head: LogPosition { (try? catalog.head(Self.watching)) ?? .beginning }

    /// The content of a revision that is some item's current one, or a version.
    func tokens(of revision: RevisionID) throws -> [UInt64]? {
        guard let content = try catalog.content(of: revision, Self.watching) else { return nil }
        return try tokens(of: content)
    }

    /// Of a content that is not here; `nil` for one that is announced, and may come.
    func absence(of revision: RevisionID) -> ContentAbsence? {
        guard let item = ((try? items()) ?? []).first(where: { $0.isAnnounced && $0.content.revision == revision })
        else {
            return .superseded
        }
        if item.isDeleted { return .withdrawn }
        // As the device service finds it out.
        let authors = ((try? catalog.devices(for: TokenHash(token: Self.judge))) ?? []).filter {
            $0.name == item.author
        }
        return !authors.isEmpty && authors.allSatisfy(\.isRevoked) ? .gone : nil
    }

    private func tokens(of content: ContentID) throws -> [UInt64]? {
        let manifest = try catalog.manifests([content], limit: .max, Self.watching).first ?? nil
        return manifest?.entries.map { SimContent.token($0.chunk) }
    }

    // MARK: What is kept no longer

    /// Every chunk that nothing refers to, as if devices had slept for days.
    /// - Returns: how many there were.
    mutating func collectChunks() throws -> Int {
        let now = timeOfDay.after(ChunkCollection.uploadLifetime + ChunkCollection.answerLifetime + .days(1))
        var count = 0
        var position: ChunkPosition?
        repeat {
            let page = catalog.collectChunks(after: position, now: now)
            count += page.discarded
            position = page.next
        } while position != nil
        return count
    }

    /// What the rules keep no longer, and its chunks.
    mutating func discard(_ rules: RetentionRules, after pause: Duration) throws {
        let now = timeOfDay.after(pause)
        var item: ItemPosition?
        repeat { item = catalog.discardVersions(rules, after: item, now: now).next } while item != nil
        var deleted: TombstonePosition?
        let ever = Timestamp(nanoseconds: .min)..<max(now.before(rules.deleted), Timestamp(nanoseconds: 0))
        repeat { deleted = catalog.discardDeleted(in: ever, after: deleted, now: now).next } while deleted != nil
        timeOfDay = now
        _ = try collectChunks()
    }

    /// An item whose content, or one of whose conflict versions, cannot be fetched.
    func brokenItem() throws -> RemoteItem? {
        try items().first { item in
            guard !item.isDeleted, case .file(let file) = item.content, file.content != nil else { return false }
            let revisions = [file.revision] + item.conflicts.map(\.revision)
            return try catalog.wholeness(revisions.map { (item.id, $0) }, Self.watching).contains { !$0.isKnown }
        }
    }

    // MARK: What the judge looks at

    /// Everything, tombstones too.
    func items() throws -> [RemoteItem] {
        var result: [RemoteItem] = []
        var since: LogPosition?
        while true {
            let page = try catalog.changes(Self.watching, since: since, limit: 1000)
            result += page.entries.map(\.item)
            since = page.position
            if !page.hasMore { return result }
        }
    }

    /// Every token that some version of some item still holds, deleted items included.
    func kept() throws -> Set<UInt64> {
        var tokens: Set<UInt64> = []
        for item in try items() {
            if case .file(let file) = item.content, let content = file.content {
                tokens.formUnion(try self.tokens(of: content) ?? [])
            }
            for version in (try? catalog.versions(item.id, Self.watching)) ?? [] {
                tokens.formUnion(try self.tokens(of: version.content) ?? [])
            }
        }
        return tokens
    }

    /// What links lead to that are there.
    func targets() throws -> Set<[UInt8]> {
        Set(
            try items().compactMap { item in
                guard !item.isDeleted, case .symlink(let target) = item.content else { return nil }
                return target
            }
        )
    }

    func conflicts() throws -> Int { try items().reduce(0) { $0 + $1.conflicts.count } }
}
