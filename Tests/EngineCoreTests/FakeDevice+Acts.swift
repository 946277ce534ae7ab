import EngineCore
import Logging
import Reconciliation
import UbiquityModel

/// What a database throws that cannot be read.
struct BrokenDatabase: Error {}

/// The connection broke before the answer to a commit was there.
struct LostAnswer: Error {}

extension FakeDevice {
    /// What drives this device; it says nothing.
    func makeSynchronizer() -> Synchronizer<FakeDevice> {
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        return Synchronizer(device: self, logger: logger)
    }
}

/// As much of a device as deciding and sending ask for: nothing is applied.
extension FakeDevice: EngineDevice {
    var timestampTick: Duration { .zero }
    func newOperation() -> OperationID {
        identifiers += 1
        return OperationID(high: 8, low: identifiers)
    }
    func newRevision() -> RevisionID {
        identifiers += 1
        return RevisionID(high: 9, low: identifiers)
    }
    func noteChanges() -> Bool {
        hearings += 1
        whenHeard(hearings)
        return true
    }
    func perform(_ effect: EngineCore.Effect) {}
    func manifest(_ content: ContentID) throws -> Manifest? { nil }
    func remoteChildren(of folder: ItemID) throws -> [RemoteItem] { [] }
    func hasSynced() throws -> Bool { true }
    func differing(after last: ItemID?, limit: Int) throws -> [ItemID] { [] }
    func write(sending: [(item: ItemID, sent: SentRevision)]) throws {}
    func write(sentLinks: [(item: ItemID, sent: SentLink)]) throws {}
    func write(sentDeletions: [(item: ItemID, sent: SentDeletion)]) throws {
        if databaseFails { throw BrokenDatabase() }
        for (item, sent) in sentDeletions { self.sentDeletions[item] = sent }
    }
    func write(unwitnessed isUnwitnessed: Bool, _ places: [LocalPlace]) throws {
        if databaseFails { throw BrokenDatabase() }
        if isUnwitnessed { unwitnessed.formUnion(places) } else { unwitnessed.subtract(places) }
    }
    func write(held isHeld: Bool, _ items: [ItemID]) throws {
        if databaseFails { throw BrokenDatabase() }
        heldWrites.append((isHeld: isHeld, items: items))
        if isHeld { held.formUnion(items) } else { held.subtract(items) }
    }
    func write(confirmed isConfirmed: Bool, _ items: [ItemID]) throws {}
    func write(changed isChanged: Bool, packages: [InodeKey]) throws {}
    func rewrite(remote items: [RemoteItem], manifests: [ContentID: Manifest]) throws {}
    func remoteIDs(after last: ItemID?, limit: Int) throws -> [ItemID] { [] }
    func removeRemote(_ items: [ItemID], position: LogPosition) throws {}
    func wasFormer(_ content: ContentID) throws -> Bool { false }
    func itemCount() throws -> Int {
        counts += 1
        if databaseFails { throw BrokenDatabase() }
        return total
    }
    var loggedDeletions: Int { 0 }
    func itemsDeletedHere(limit: Int) throws -> Set<ItemID> { [] }
    func record(_ record: PassRecord) async throws {
        if databaseFails { throw BrokenDatabase() }
        upserts += record.changes.upserts
        for item in record.changes.answeredDeletions { sentDeletions[item] = nil }
    }
    func makeDurable(_ places: [LocalPlace], _ folders: Set<InodeKey>) async -> Bool { true }
    func syncedOrphans() throws -> [ItemID] { [] }
    func unlog(_ deletions: [DeletionEntry]) throws {}
    func forEachEntry(
        of folder: InodeKey,
        unless isPassedOver: (Name, LocalKind) throws -> Bool,
        _ body: (Name, LocalState?) throws -> Void
    ) throws {
        for (place, state) in tree.sorted(by: { $0.key < $1.key }) where place.folder == folder {
            if try !isPassedOver(place.name, state.kind) { try body(place.name, state) }
        }
    }
    func stage(_ remote: RemoteItem) async throws -> String { "" }
    func bring(_ arriving: [RemoteItem]) async -> [ItemID: String] { [:] }
    func wholeContent(_ wanted: WantedContent) async -> WholeContent { whole() }
    func newStagedName() -> String { "" }
    func discard(_ staged: String) { discarded.append(staged) }
    func perform(_ mutation: Mutation, at path: ItemPath) async -> Result<MutationResult, MutationFailure>? {
        performed += 1
        return nil
    }
    func perform(_ acts: [(Mutation, ItemPath)]) async -> [Result<MutationResult, MutationFailure>?] { [] }
    func noteRevision(_ revision: RevisionID, of item: ItemID) {}
    func willAppear(_ staged: [(item: ItemID, name: String)]) {}
    func haveAppeared() {}
    func populatedFolder(_ item: ItemID) -> InodeKey? { nil }
    func hasWriter(_ key: InodeKey) -> Bool { false }
    func collectDirty(_ key: InodeKey) {}
    func mayRead(_ path: ItemPath) -> Bool { true }
    func wake(_ works: Set<EngineCore.Work>, whenFree path: ItemPath) {}
    func log(_ deletion: DeletionEntry) {}
    func itemBeingCreated(_ key: InodeKey) -> ItemID? { nil }
    func beginCreating(_ key: InodeKey, _ item: ItemID) {}
    static var smallFile: Int64 { 1 }
    static var smallArrival: Int64 { 1 }
    func read(_ files: [WantedFile]) async -> [Result<ReadContent, ReadFailure>] {
        files.map { file in
            guard let content = ContentID(bytes: [UInt8](repeating: 99, count: 32)) else { return .failure(.changed) }
            return .success(ReadContent(manifest: Manifest(), content: content, state: file.state, chunks: [:]))
        }
    }
    func beginTransfer(_ file: WantedFile, of item: ItemID, _ works: Set<EngineCore.Work>) {}
    func missing(_ chunks: [ChunkID]) async throws -> Set<ChunkID> { [] }
    func upload(_ chunks: [(id: ChunkID, bytes: [UInt8])]) async throws {}
    func commit(
        _ operations: [ItemOperation],
        chunks: [(id: ChunkID, bytes: [UInt8])]
    ) async throws -> [OperationOutcome] {
        committed += operations
        whileCommitting()
        guard let answer else { throw LostAnswer() }
        return operations.map(answer)
    }
    func isOfConnection(_ error: any Error) -> Bool { error is LostAnswer }
    func connectionFailed(_ error: any Error) {}
}
