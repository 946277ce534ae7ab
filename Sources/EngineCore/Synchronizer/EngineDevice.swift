package import UbiquityModel

/// What the engine asks of its device and its cloud while it sends and applies. With `DeviceView`, everything that the synchronizer reads
/// and does goes through here, so that the device service and the simulator run the same code.
///
/// What is asynchronous goes on where its caller runs; other work of the engine may come between.
package protocol EngineDevice: DeviceView, SendableMetatype {
    // MARK: Clock and chance

    /// Of two changes of a file that lie closer together, its times may tell only one. Zero where they tell each.
    var timestampTick: Duration { get }
    func newOperation() -> OperationID
    func newRevision() -> RevisionID

    // MARK: What programs do

    /// Has the synchronizer note what programs did until now (`Synchronizer.note`).
    /// - Returns: false while one is just moving something, and has not told of it.
    func noteChanges() -> Bool

    // MARK: Effects

    /// Everything but `loadPending`, which needs no device.
    func perform(_ effect: EngineCore.Effect)

    // MARK: The state database

    func manifest(_ content: ContentID) throws -> Manifest?
    func remoteChildren(of folder: ItemID) throws -> [RemoteItem]
    /// Whether there is anything at all on which was agreed.
    func hasSynced() throws -> Bool
    /// Items that differ between what was agreed on and what the cloud has, in the order of their ids.
    func differing(after last: ItemID?, limit: Int) throws -> [ItemID]
    /// Before it leaves: what is sent, and as which revision.
    func write(sending: [(item: ItemID, sent: SentRevision)]) throws
    /// The same of links' targets.
    func write(sentLinks: [(item: ItemID, sent: SentLink)]) throws
    /// The same of deletions.
    func write(sentDeletions: [(item: ItemID, sent: SentDeletion)]) throws
    /// Those deletions wait for somebody's word, or do so no more.
    func write(held isHeld: Bool, _ items: [ItemID]) throws
    /// Those deletions may go, whenever that is, or are not to be known any more.
    func write(confirmed isConfirmed: Bool, _ items: [ItemID]) throws
    /// Programs have changed something in them, or that is looked at and sent.
    func write(changed isChanged: Bool, packages: [InodeKey]) throws
    /// No program has changed what is there, or that is sent, or a program has.
    func write(unwitnessed isUnwitnessed: Bool, _ places: [LocalPlace]) throws
    /// Writes down what the cloud says now, also where it says less than it did, and what is still agreed on with it
    /// (`SyncedItem.agreed(withRestored:known:)`).
    func rewrite(remote items: [RemoteItem], manifests: [ContentID: Manifest]) throws
    /// What the cloud has said that it has, tombstones too, in the order of the ids.
    func remoteIDs(after last: ItemID?, limit: Int) throws -> [ItemID]
    /// Forgets what the cloud does not have after all, and writes down how far its log is known.
    func removeRemote(_ items: [ItemID], position: LogPosition) throws
    /// Whether that was a package's content which was agreed on with a server that knows nothing of it any more.
    func wasFormer(_ content: ContentID) throws -> Bool
    /// Items of the container, here or in the cloud only.
    func itemCount() throws -> Int
    /// Entries of the deletion log.
    var loggedDeletions: Int { get }
    /// The items of which the log says that a program has deleted them.
    /// - Parameter limit: no more than about so many are looked for.
    func itemsDeletedHere(limit: Int) throws -> Set<ItemID>
    /// Makes files and names durable, then writes what a pass has achieved.
    /// - Throws: when the disk does not write, or the database.
    func record(_ record: PassRecord) async throws

    /// Makes durable what is at these places, with its names, and which entries these folders have.
    /// - Returns: false when the disk does not write.
    func makeDurable(_ places: [LocalPlace], _ folders: Set<InodeKey>) async -> Bool

    /// The items whose folder has no row.
    func syncedOrphans() throws -> [ItemID]

    /// Takes deletions out of the log that have not been done.
    func unlog(_ deletions: [DeletionEntry]) throws

    // MARK: The backing tree

    /// Where folders are; whoever moves one says so here.
    var folders: FolderIndex { get }
    /// What lies in a folder, one after the other; without a state, what cannot be looked at.
    /// - Parameter isPassedOver: asked first about each entry of which the folder itself tells what it is. True: nobody looks at it.
    func forEachEntry(
        of folder: InodeKey,
        unless isPassedOver: (Name, LocalKind) throws -> Bool,
        _ body: (Name, LocalState?) throws -> Void
    ) throws
    /// Makes what is to appear, beside the tree: a folder, a symlink, an empty file or a placeholder. Before a folder can be looked into,
    /// it is known if all in it is in the cloud only.
    /// - Returns: by what name it is published.
    func stage(_ remote: RemoteItem) async throws -> String
    /// Small new files are about to appear: makes those of them beside the tree that come here with their content at once, all of it durable.
    /// - Returns: by what name each of these is published. The others are staged without content.
    func bring(_ arriving: [RemoteItem]) async -> [ItemID: String]
    /// New content for a file that is whole here, brought together beside the tree.
    func wholeContent(_ wanted: WantedContent) async -> WholeContent
    /// One that is free, and that nobody guesses.
    func newStagedName() -> String
    /// What was staged is not wanted any more.
    func discard(_ staged: String)
    /// One act, which checks that it finds what is expected.
    /// - Returns: `nil` while a program's claim covers the path.
    func perform(_ mutation: Mutation, at path: ItemPath) async -> Result<MutationResult, MutationFailure>?
    /// Several, one after the other, each as if it were alone.
    /// - Returns: an answer for each.
    func perform(_ acts: [(Mutation, ItemPath)]) async -> [Result<MutationResult, MutationFailure>?]
    /// A content is about to be here, or has been replaced, of which somebody may ask by its revision alone.
    func noteRevision(_ revision: RevisionID, of item: ItemID)

    // MARK: Folders in the cloud only

    /// These are about to be published, and have no rows until this pass has ended: once they are here they are not in the cloud only. Who asks
    /// for the name of one that a program has moved away meanwhile would get it a second time.
    func willAppear(_ staged: [(item: ItemID, name: String)])
    /// All of them have their rows, or get none in this pass.
    func haveAppeared()
    /// The local folder of an item, made now if it is in the cloud only, with all folders above it.
    func populatedFolder(_ item: ItemID) -> InodeKey?

    // MARK: Programs

    func hasWriter(_ key: InodeKey) -> Bool
    /// What is written from now on is told anew.
    func collectDirty(_ key: InodeKey)
    /// No program's claim forbids to read there.
    func mayRead(_ path: ItemPath) -> Bool
    /// Wakes the work when asking again about a path is worth it.
    func wake(_ works: Set<EngineCore.Work>, whenFree path: ItemPath)
    /// The item that the inode is about to become in the cloud.
    func itemBeingCreated(_ key: InodeKey) -> ItemID?
    /// The file is about to be sent as a new item: from now on the cloud may have it.
    func beginCreating(_ key: InodeKey, _ item: ItemID)

    // MARK: Contents and the cloud

    /// Files up to this size, in bytes, are read within a pass and travel inside the commit.
    static var smallFile: Int64 { get }
    /// Files up to this size, in bytes, may come here with others of their kind.
    static var smallArrival: Int64 { get }
    /// Reads small files whole, side by side.
    /// - Returns: one for each, in their order.
    func read(_ files: [WantedFile]) async -> [Result<ReadContent, ReadFailure>]
    /// Begins to read and send a large file beside the passes; `Synchronizer.transferEnded` follows.
    func beginTransfer(_ file: WantedFile, of item: ItemID, _ works: Set<EngineCore.Work>)
    /// Those of the chunks that the cloud lacks.
    func missing(_ chunks: [ChunkID]) async throws -> Set<ChunkID>
    /// Sends those of the chunks that the cloud lacks.
    func upload(_ chunks: [(id: ChunkID, bytes: [UInt8])]) async throws
    /// - Returns: an outcome for each operation.
    func commit(
        _ operations: [ItemOperation],
        chunks: [(id: ChunkID, bytes: [UInt8])]
    ) async throws -> [OperationOutcome]
    /// Whether it is the connection, or the server, that failed.
    func isOfConnection(_ error: any Error) -> Bool
    /// The device draws the consequences: what was achieved until then has been written down.
    func connectionFailed(_ error: any Error)
}

extension EngineDevice {
    func forEachEntry(of folder: InodeKey, _ body: (Name, LocalState?) throws -> Void) throws {
        try forEachEntry(of: folder, unless: { _, _ in false }, body)
    }
}

/// A file whose content is to be read.
package struct WantedFile: Sendable {
    package var place: LocalPlace
    /// As it was when it was looked at: it is read only if it is that still.
    package var state: LocalState
    /// Somebody has it open: it may be written while it is read.
    package var hasWriter: Bool

    package init(place: LocalPlace, state: LocalState, hasWriter: Bool) {
        self.place = place
        self.state = state
        self.hasWriter = hasWriter
    }
}

/// Why a file could not be read.
package enum ReadFailure: Error {
    /// Written meanwhile, replaced, gone: look again.
    case changed
    case unreadable(String)
    /// What some files of a package stand for is not here, and nobody knows it.
    case lacking
}

/// Content that replaces a whole file's.
package struct WantedContent: Sendable {
    package var remote: RemoteItem
    package var file: FileContent
    package var place: LocalPlace
    /// What is there now, and has the content of `row`: whose own evidence may be of another inode, after a backup was restored.
    package var evidence: LocalEvidence
    package var row: SyncedItem?
    package var works: Set<EngineCore.Work>
}

package enum WholeContent: Sendable {
    /// Ready to be published under this name.
    case staged(String)
    case not(EngineCore.Verdict)
}

/// What a pass has achieved, to be written down.
package struct PassRecord: Sendable {
    /// Rows, once what they describe is durable.
    package var changes: SyncedChanges
    /// What the cloud answered: written in any case.
    package var answered: [RemoteItem]
    package var manifests: [ContentID: Manifest]
    /// What is there whose rows are written, of whatever kind: made durable before. Else a change that a power loss takes back would pass
    /// for one that was made here since, and be sent.
    package var written: [LocalPlace]
    /// Folders whose entries the engine changed.
    package var folders: Set<InodeKey>
    /// Items whose deletion the cloud has taken.
    package var deletions: [ItemID]
}
