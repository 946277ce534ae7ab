import CatalogModel
import EngineCore
import MemoryCatalog
import Reconciliation
import UbiquityModel

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
    private var manifests: [ContentID: Manifest] = [:]
    var timeOfDay: Timestamp
    /// No chunk can be added.
    var isQuotaUsed = false

    /// - Throws: nothing, since the account is new.
    init(machines: Int, at time: Timestamp) throws {
        timeOfDay = time
        try catalog.addAccount("me", quota: nil)
        let secrets = (0..<machines).map { SecretHash(secret: [UInt8($0)]) }
        for (number, secret) in secrets.enumerated() {
            let expires = Timestamp(nanoseconds: .max)
            try catalog.addInvitation(Invitation(secret: secret, grant: .everything, expires: expires), account: "me")
            let device = NewDevice(
                id: DeviceID(high: 7, low: UInt64(number) + 1),
                name: "device \(number)",
                token: Self.token(number),
                nonce: []
            )
            _ = try catalog.join(secret, as: device, now: time)
        }
        let info = ContainerInfo(
            id: .documents,
            key: [UInt8](repeating: 1, count: 32),
            layout: .drive,
            isCaseInsensitive: false,
            isReadOnly: false
        )
        _ = try catalog.createContainer(info, by: Self.token(0))
    }

    private static func token(_ machine: Int) -> TokenHash { TokenHash(token: [UInt8(machine)]) }
    private static func scope(_ machine: Int) -> Scope { scopes[machine] }
    private static let scopes = (0..<8).map { Scope(token: token($0), container: .documents) }

    // MARK: What devices ask

    mutating func commit(
        _ operations: [ItemOperation],
        chunks: [ChunkID],
        machine: Int,
        deviceClock: Timestamp
    ) throws -> [OperationOutcome] {
        let lacking = isQuotaUsed ? try missing(chunks) : []
        let request = CommitRequest(
            chunks: chunks.filter { !lacking.contains($0) }.map(Self.record),
            entries: operations.map { .operation($0) },
            deviceClock: deviceClock,
            now: timeOfDay,
            isQuotaExceeded: !lacking.isEmpty
        )
        let outcomes = try catalog.commit(request, Self.scope(machine)).outcomes
        for (operation, outcome) in zip(operations, outcomes) {
            guard case .committed = outcome else { continue }
            switch operation.action {
            case .create(_, .file(let file), _, let manifest, _), .edit(_, .file(let file), _, let manifest, _):
                if let content = file.content { manifests[content] = manifest }
            default: break
            }
        }
        return outcomes
    }

    func changes(machine: Int, since: LogPosition) throws -> Page {
        let page = try catalog.changes(Self.scope(machine), since: since, limit: 7)
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
        Set(try catalog.missing(chunks, Self.scope(0)).map { chunks[$0] })
    }

    mutating func add(_ chunks: [ChunkID]) throws {
        if isQuotaUsed, try !missing(chunks).isEmpty { throw SimFailure.quota }
        try catalog.addChunks(chunks.map(Self.record), Self.scope(0))
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

    var head: LogPosition { (try? catalog.head(Self.scope(0))) ?? .beginning }

    /// The content of a revision that is some item's current one, or a version.
    func tokens(of revision: RevisionID) throws -> [UInt64]? {
        for item in try items() {
            if case .file(let file) = item.content, file.revision == revision, let content = file.content {
                return tokens(of: content)
            }
            for version in try catalog.versions(item.id, Self.scope(0)) where version.revision == revision {
                return tokens(of: version.content)
            }
        }
        return nil
    }

    /// Of a content that is not here; `nil` for one that is announced, and may come.
    func absence(of revision: RevisionID) -> ContentAbsence? {
        guard let item = ((try? items()) ?? []).first(where: { $0.isAnnounced && $0.content.revision == revision })
        else {
            return .superseded
        }
        return item.isDeleted ? .withdrawn : nil
    }

    private func tokens(of content: ContentID) -> [UInt64]? {
        manifests[content]?.entries.map { SimContent.token($0.chunk) }
    }

    // MARK: What the judge looks at

    /// Everything, tombstones too.
    func items() throws -> [RemoteItem] {
        var result: [RemoteItem] = []
        var since: LogPosition?
        while true {
            let page = try catalog.changes(Self.scope(0), since: since, limit: 1000)
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
                tokens.formUnion(self.tokens(of: content) ?? [])
            }
            for version in (try? catalog.versions(item.id, Self.scope(0))) ?? [] {
                tokens.formUnion(self.tokens(of: version.content) ?? [])
            }
        }
        return tokens
    }

    func conflicts() throws -> Int { try items().reduce(0) { $0 + $1.conflicts.count } }
}
