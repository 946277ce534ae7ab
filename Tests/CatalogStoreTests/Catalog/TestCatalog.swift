import CatalogModel
import CatalogStore
import Glibc
import Reconciliation
import Testing
import UbiquityModel

/// A catalogue of its own, with one account, one device and one container.
struct TestCatalog {
    /// The file of a catalogue that has one.
    let path: String?
    let catalog: any Catalog
    let scope: Scope
    let key = [UInt8](repeating: 7, count: 32)
    /// Goes with the test.
    private let folder: TemporaryFolder?

    static let container = ContainerID.documents

    init(_ backend: Backend, quota: Int64? = nil, isCaseInsensitive: Bool = false) async throws {
        switch backend {
        case .sqlite:
            let folder = try TemporaryFolder()
            let path = folder.path + "/catalog.sqlite"
            self.folder = folder
            self.path = path
            catalog = try SQLiteCatalog(path: path)
        case .memory:
            folder = nil
            path = nil
            catalog = VolatileCatalog()
        }
        scope = Scope(token: TokenHash(token: [1]), container: Self.container)
        try await catalog.addAccount("anna", quota: quota, now: time(1))
        _ = try await catalog.join("anna", token: [1], name: "laptop")
        let info = ContainerInfo(
            id: Self.container,
            key: key,
            layout: .drive,
            isCaseInsensitive: isCaseInsensitive,
            isReadOnly: false
        )
        _ = try await catalog.createContainer(info, by: scope.token, now: time(1))
    }

    func commit(
        _ operations: [ItemOperation],
        chunks: [ChunkRecord] = [],
        now: Int64 = 1_000,
        discardsFormer: Bool = false,
        scope: Scope? = nil
    ) async throws(CatalogError) -> CommitAnswer {
        try await catalog.commit(
            CommitRequest(
                chunks: chunks,
                entries: operations.map { .operation($0) },
                deviceClock: time(now),
                discardsFormer: discardsFormer,
                now: time(now)
            ),
            scope ?? self.scope
        )
    }

    /// All items, in the order of the log.
    func listing() async throws -> [RemoteItem] {
        var result = [RemoteItem]()
        var position: LogPosition?
        while true {
            let page = try await catalog.changes(scope, since: position, limit: 3)
            #expect(!page.isUnknownPosition)
            result += page.entries.map(\.item)
            position = page.position
            if !page.hasMore { return result }
        }
    }
}

extension Catalog {
    /// Invites and joins a device.
    func join(_ account: String, token: [UInt8], name: String, grant: Grant = .everything) async throws -> Access {
        let secret = SecretHash(secret: token + [0xFF])
        try await addInvitation(Invitation(secret: secret, grant: grant, expires: time(100)), account: account)
        return try await join(secret, as: device(name, token: token), now: time(2))
    }
}

func device(_ name: String, token: [UInt8]) -> NewDevice {
    NewDevice(id: .random(), name: name, token: TokenHash(token: token), nonce: [1])
}

func time(_ seconds: Int64) -> Timestamp { Timestamp(nanoseconds: seconds * 1_000_000_000) }

/// A file of one chunk per part; equal texts are equal chunks.
struct TestFile {
    var item = ItemID.random()
    var revision = RevisionID.random()
    var parts: [String]

    init(_ parts: String...) { self.parts = parts }

    var manifest: Manifest {
        Manifest(
            entries: parts.compactMap { part in chunk(part).map { .init(chunk: $0, length: UInt32(part.utf8.count)) } }
        )
    }

    var content: ItemContent {
        let id = ContentID(bytes: chunk("content of " + parts.joined())?.bytes ?? [])
        return .file(FileContent(revision: revision, content: id, size: manifest.size))
    }

    var records: [ChunkRecord] {
        manifest.entries.map {
            ChunkRecord(chunk: $0.chunk, length: $0.length, isCompressed: false, pack: 1, offset: 16, recordLength: 100)
        }
    }

    func create(_ name: String, in parent: ItemID = .root, edited: Int64 = 10) throws -> ItemOperation {
        operation(
            .create(
                place: Place(parent: parent, name: try Name(name)),
                content: content,
                attributes: ItemAttributes(
                    modified: time(5),
                    mode: 0o640,
                    extended: [Array("user.a".utf8): [1, 2, 3]]
                ),
                manifest: manifest,
                edited: time(edited)
            )
        )
    }

    func edit(_ item: ItemID, base: RevisionID?, edited: Int64) -> ItemOperation {
        ItemOperation(
            id: .random(),
            item: item,
            action: .edit(
                base: base,
                content: content,
                attributes: ItemAttributes(modified: time(edited), mode: 0o640),
                manifest: manifest,
                edited: time(edited)
            )
        )
    }

    func operation(_ action: ItemOperation.Action) -> ItemOperation {
        ItemOperation(id: .random(), item: item, action: action)
    }
}

func folder(_ name: String, in parent: ItemID = .root) throws -> ItemOperation {
    ItemOperation(
        id: .random(),
        item: .random(),
        action: .create(
            place: Place(parent: parent, name: try Name(name)),
            content: .folder,
            attributes: ItemAttributes(modified: time(1), mode: 0o755),
            manifest: Manifest(),
            edited: time(1)
        )
    )
}

/// Text stretched to a digest.
func chunk(_ text: String) -> ChunkID? {
    var state: UInt64 = 0xcbf2_9ce4_8422_2325
    var bytes = [UInt8]()
    for round in 0..<32 {
        for byte in text.utf8 { state = (state ^ UInt64(byte)) &* 0x100_0000_01b3 }
        state = (state ^ UInt64(round)) &* 0x100_0000_01b3
        bytes.append(UInt8(truncatingIfNeeded: state >> 32))
    }
    return ChunkID(bytes: bytes)
}

extension OperationOutcome {
    var item: RemoteItem? {
        if case .committed(let item) = self { return item }
        return nil
    }
}
