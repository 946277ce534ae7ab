package import Driver
import Glibc
package import Replica
import Synchronization
package import SystemPackage
package import UbiquityModel

/// What the driver calls: collects what changed, serves content, remembers deletions. Every method returns at once; what takes
/// longer is handed to the engine's own thread.
///
/// The coordination half of `DriverHost` belongs to the device service, which wraps this object.
package final class EngineHost: Sendable {
    private struct State: Sendable {
        var changes: [LocalChange] = []
        /// Files of which a writer was closed.
        var closed: [InodeKey] = []
        /// The engine gathers: it looks again by itself.
        var isGathering = false
        /// Something came since it last asked whether to go on.
        var wasTold = false
        /// Items whose creation is on its way, so that a deletion meanwhile is logged although no synced row exists yet.
        var creating: [InodeKey: ItemID] = [:]
        /// What was logged besides the inode before a name of it went, until that is known to be done: of hard links, and of files that
        /// are on their way.
        var announced: [InodeKey: [DeletionEntry]] = [:]
        var engine: ContainerEngine?
    }

    /// Guards memory only; a leaf in the order of locks.
    private let state = Mutex(State())
    private let moves = Atomic(0)
    private let orphans = Atomic(0)
    private let replica: Replica
    package let filler: ContentFiller
    private let populator: Populator
    private let listing: FirstListing
    private let readAhead: ReadAhead
    private let watch: ContentWatch

    init(
        replica: Replica,
        filler: ContentFiller,
        populator: Populator,
        listing: FirstListing,
        readAhead: ReadAhead,
        watch: ContentWatch
    ) {
        self.replica = replica
        self.filler = filler
        self.populator = populator
        self.listing = listing
        self.readAhead = readAhead
        self.watch = watch
    }

    func attach(_ engine: ContainerEngine?) { state.withLock { $0.engine = engine } }

    /// A program changed something: called after the backing tree has changed.
    package func changed(_ change: LocalChange) {
        // The engine finds out which items that ended; until then this is enough. A log that cannot be written brings items back.
        if change.replaced != nil, let key = change.key { try? replica.deletions.append(.replacing(key)) }
        if change.aspects.contains(.entry) {
            populator.folderChanged(change.parent)
            if let from = change.movedFrom { populator.folderChanged(from.parent) }
        }
        tell { state in
            if !state.announced.isEmpty, change.aspects.contains(.entry) {
                for case let key? in [change.key, change.replaced] { state.announced[key] = nil }
            }
            if let last = state.changes.indices.last, state.changes[last].absorb(change) { return }
            state.changes.append(change)
        }
    }

    /// Notes something for the engine, which comes for it soon.
    private func tell(_ note: (inout State) -> Void = { _ in }) {
        let engine: ContainerEngine? = state.withLock { state in
            note(&state)
            state.wasTold = true
            guard !state.isGathering, let engine = state.engine else { return nil }
            state.isGathering = true
            return engine
        }
        guard let engine else { return }
        Task { await engine.gatherChanges() }
    }

    /// What happens within a moment is taken together, and while programs go on the engine comes again by itself: a program that makes
    /// thousands of files wakes no thread for each. (On two processors that took as long as all the rest: 110 us a file instead of 55.)
    static let gatheringTime = Duration.milliseconds(1)
    /// While programs go on without a break it comes more seldom: each time costs a thread's waking and a look into the database.
    static let longestGatheringTime = Duration.milliseconds(4)

    /// Whether the engine may rest until it is called: nothing came during the last moment. What comes after this calls it.
    func endGathering() -> Bool {
        state.withLock { state in
            state.isGathering = state.wasTold && state.engine != nil
            state.wasTold = false
            return !state.isGathering
        }
    }

    private func syncedItem(_ folder: InodeKey, _ name: Name) -> ItemID? {
        var parent: ItemID? = .root
        if folder != replica.tree.rootKey {
            parent = (try? replica.database.synced(key: folder))?.first { $0.content == .folder }?.id
        }
        guard let parent else { return nil }
        return (try? replica.database.synced(at: Place(parent: parent, name: name)))?.first?.id
    }

    /// Nothing was reported that the engine has not seen yet.
    var isDrained: Bool { state.withLock { $0.changes.isEmpty } && !populator.hasMade }

    /// What programs changed since the last call, and the files that they closed after writing.
    func takeChanges() -> (changes: [LocalChange], closed: [InodeKey]) {
        state.withLock { state in
            defer {
                state.changes = []
                state.closed = []
            }
            return (state.changes, state.closed)
        }
    }

    /// A program is about to move something, and the driver tells of that (`changed`) before `endMove`.
    package func beginMove() { moves.add(1, ordering: .sequentiallyConsistent) }
    package func endMove() { moves.subtract(1, ordering: .sequentiallyConsistent) }
    /// Whether the tree may show a move that nobody has told of.
    var isMoving: Bool { moves.load(ordering: .sequentiallyConsistent) > 0 }

    /// Called before an unlink, rmdir or replacing rename takes a name away: the deletion is logged before it happens.
    package func aboutToDelete(key: InodeKey, parent: InodeKey, name: Name, isLastName: Bool) {
        // A log that cannot be written makes the item come back instead of going: never the other way round.
        var items: [DeletionEntry] = []
        if isLastName {
            try? replica.deletions.append(.inode(key))
        } else if let item = syncedItem(parent, name) {
            // The inode lives on as another item.
            items.append(.item(item))
        }
        if let creating = state.withLock({ $0.creating[key] }) { items.append(.item(creating)) }
        // What was logged before stays so, whatever becomes of this.
        items.removeAll { replica.deletions.contains($0) }
        guard !items.isEmpty else { return }
        let announced = items
        state.withLock { $0.announced[key] = announced }
        for entry in announced { try? replica.deletions.append(entry) }
    }

    /// The file is about to be sent as a new item: from now on the cloud may have it.
    func beginCreating(_ key: InodeKey, _ item: ItemID) {
        populator.noteOwn(item, isSent: true)
        state.withLock { $0.creating[key] = item }
    }

    func itemBeingCreated(_ key: InodeKey) -> ItemID? { state.withLock { $0.creating[key] } }

    /// What became of the item is written down. Its file may be gone.
    func endCreating(_ key: InodeKey?, _ item: ItemID) {
        populator.noteOwn(item, isSent: false)
        state.withLock { state in
            if state.creating.isEmpty { return }
            if let key {
                state.creating[key] = nil
            } else {
                state.creating = state.creating.filter { $0.value != item }
            }
        }
    }

    /// The disk refused it. Of one inode one name goes at a time: the kernel sees to that.
    package func deletionFailed(key: InodeKey) {
        let announced = state.withLock { $0.announced.removeValue(forKey: key) } ?? []
        try? replica.deletions.remove([DeletionEntry.inode(key)] + announced)
    }

    /// What a program wrote to an inode that the engine had replaced is kept beside the item, never dropped.
    package func orphanWritten(
        key: InodeKey,
        lastParent: InodeKey,
        lastName: Name,
        descriptor: consuming OwnedDescriptor
    ) {
        guard let engine = state.withLock({ $0.engine }) else { return }
        let file = OwnedFile(descriptor)
        // Not when the engine comes to it: a stop that it comes to first has to wait for this.
        orphans.add(1, ordering: .sequentiallyConsistent)
        Task { [self] in
            await engine.keepOrphan(file, lastParent: lastParent, lastName: lastName)
            orphans.subtract(1, ordering: .sequentiallyConsistent)
        }
    }

    /// Contents that are about to become files of their own.
    var orphansUnderWay: Int { orphans.load(ordering: .sequentiallyConsistent) }

    // MARK: Folders that populate themselves

    package func isUnpopulated(_ folder: InodeKey) -> Bool { populator.item(of: folder) != nil }

    package func listingWaits(
        folder: InodeKey,
        completion: @escaping @Sendable (Errno?) -> Void
    ) -> ContentRequest? {
        guard let item = populator.item(of: folder) else { return nil }
        return listing.wait(for: item, completion)
    }

    package func isListed(_ folder: InodeKey) -> Bool {
        populator.item(of: folder).map { listing.isListed($0) } ?? true
    }

    package func populate(_ folder: InodeKey, _ name: Name) throws(Errno) -> Bool {
        let isMade = try populator.populate(folder, name)
        if isMade { tell() }
        return isMade
    }

    package func cloudEntries(of folder: InodeKey) throws(Errno) -> [CloudEntry] {
        do throws(ReplicaError) { return try populator.entries(of: folder) } catch { throw .ioError }
    }

    package func cloudName(like folded: FoldedName, in folder: InodeKey) throws(Errno) -> Name? {
        do throws(ReplicaError) { return try populator.name(like: folded, in: folder) } catch { throw .ioError }
    }

    package func hasCloudEntries(_ folder: InodeKey) throws(Errno) -> Bool {
        guard isListed(folder) else { return true }
        do throws(ReplicaError) { return try populator.hasEntries(folder) } catch { throw .ioError }
    }

    package func needContent(
        _ file: PlaceholderFile,
        range: Range<Int64>,
        waitsForAuthor: Bool,
        completion: @escaping @Sendable (Errno?) -> Void
    ) -> ContentRequest {
        filler.need(file, range: range, waitsForAuthor: waitsForAuthor, completion: completion)
    }

    package func presentRanges(of key: InodeKey, _ placeholder: Placeholder) -> ByteRangeSet {
        RangeStore.load(key, placeholder, from: replica)
    }

    package func datalessOpened(_ file: PlaceholderFile) { filler.opened(file) }
    /// A program that may fetch content has it open.
    package func restMayFollow(of file: PlaceholderFile) { filler.restMayFollow(of: file) }
    package func datalessClosed(_ file: PlaceholderFile) { filler.closed(file) }

    /// A writable handle was closed: what waited for it goes on.
    package func closed(key: InodeKey) {
        tell { $0.closed.append(key) }
        watch.used(key)
    }

    package func used(_ key: InodeKey) {
        watch.used(key)
        readAhead.used(key)
    }

    package func itemAttribute(
        _ name: ItemAttributeName,
        key: InodeKey,
        parent: InodeKey,
        itemName: Name,
        completion: @escaping @Sendable (Result<[UInt8], Errno>) -> Void
    ) {
        guard let engine = state.withLock({ $0.engine }) else { return completion(.failure(.noData)) }
        Task { completion(await engine.attributeText(name, key: key, parent: parent, name: itemName)) }
    }

    /// `user.ubiquity.control`: starts and returns.
    package func control(_ verb: String, parent: InodeKey, name: Name) -> Errno? {
        guard ["evict", "download", "pin", "unpin"].contains(verb) else { return .invalidArgument }
        guard let engine = state.withLock({ $0.engine }) else { return .noData }
        if verb == "evict", engine.refusesForGood(toEvict: LocalPlace(folder: parent, name: name)) {
            return .notPermitted
        }
        Task { await engine.control(verb, parent: parent, name: name) }
        return nil
    }

    package func versions(of path: ItemPath, completion: @escaping @Sendable (Result<VersionListing, Errno>) -> Void) {
        guard let engine = state.withLock({ $0.engine }) else { return completion(.failure(.noSuchFileOrDirectory)) }
        Task { completion(await engine.versionListing(of: path)) }
    }

    package func openVersion(
        path: ItemPath,
        revision: RevisionID,
        completion: @escaping @Sendable (Result<Int32, Errno>) -> Void
    ) -> ContentRequest {
        answer(completion) { await $0.openVersion(path: path, revision: revision) }
    }

    private func answer(
        _ completion: @escaping @Sendable (Result<Int32, Errno>) -> Void,
        _ ask: @escaping @Sendable (ContainerEngine) async -> Result<Int32, Errno>
    ) -> ContentRequest {
        guard let engine = state.withLock({ $0.engine }) else {
            completion(.failure(.noSuchFileOrDirectory))
            return ContentRequest(cancel: {})
        }
        let task = Task { completion(await ask(engine)) }
        return ContentRequest { task.cancel() }
    }

    package func packageIndex(
        of version: ItemVersion,
        completion: @escaping @Sendable (Result<PackageIndex, Errno>) -> Void
    ) {
        guard let engine = state.withLock({ $0.engine }) else { return completion(.failure(.noSuchFileOrDirectory)) }
        Task { completion(await engine.packageIndex(of: version)) }
    }

    package func openPart(
        _ part: Range<Int64>,
        of version: ItemVersion,
        completion: @escaping @Sendable (Result<Int32, Errno>) -> Void
    ) -> ContentRequest {
        answer(completion) { await $0.openPart(part, of: version) }
    }

    package func changeVersion(
        _ change: VersionChange,
        path: ItemPath,
        version: ItemVersion,
        completion: @escaping @Sendable (Errno?) -> Void
    ) {
        guard let engine = state.withLock({ $0.engine }) else { return completion(.noSuchFileOrDirectory) }
        Task { completion(await engine.changeVersion(change, path: path, version: version)) }
    }
}
