internal import Driver
internal import FileCoordination
internal import Replica
internal import SyncEngine
internal import Synchronization
internal import SystemPackage
internal import UbiquityModel

/// What the driver of one container calls: coordination goes to the broker, everything else to the engine.
final class ServiceHost: DriverHost {
    private let engine: EngineHost
    private let broker: ClaimBroker
    private let gate: MaterializationGate
    private let container: ContainerID
    private let replica: Replica
    private let unmounting = Mutex<(@Sendable () -> Void)?>(nil)

    init(
        engine: EngineHost,
        broker: ClaimBroker,
        gate: MaterializationGate,
        container: ContainerID,
        replica: Replica
    ) {
        self.engine = engine
        self.broker = broker
        self.gate = gate
        self.container = container
        self.replica = replica
    }

    /// Called when somebody else unmounts it.
    func whenUnmounted(_ body: @escaping @Sendable () -> Void) { unmounting.withLock { $0 = body } }
    func forgetUnmounting() { unmounting.withLock { $0 = nil } }

    func unmounted() { unmounting.withLock { $0 }?() }

    // MARK: - Coordination

    var claimsExist: Bool { broker.claimsExist }

    func openWaits(
        path: ItemPath,
        forWriting: Bool,
        mayWait: Bool,
        threadID: Int32,
        completion: @escaping @Sendable (Errno?) -> Void
    ) -> ContentRequest? {
        broker.openWaits(
            target(path),
            forWriting: forWriting,
            mayWait: mayWait,
            threadID: threadID,
            completion: completion
        )
    }

    func entryChangeRefused(paths: [ItemPath], threadID: Int32) -> Bool {
        broker.changeRefused(paths.map { target($0) }, threadID: threadID)
    }

    func closed(key: InodeKey) {
        engine.closed(key: key)
        broker.writersChanged()
    }

    func used(_ key: InodeKey) { engine.used(key) }

    func beginMove() { engine.beginMove() }
    func endMove() { engine.endMove() }

    func changed(_ change: LocalChange) {
        engine.changed(change)
        guard broker.claimsExist, change.aspects.contains(.entry), let parent = replica.folders.path(of: change.parent)
        else { return }
        let path = parent.appending(change.name)
        if let from = change.movedFrom {
            guard let oldParent = replica.folders.path(of: from.parent) else { return }
            broker.moved(target(oldParent.appending(from.name)), to: path)
        } else {
            let tree = replica.tree
            broker.deleted(target(path)) { Self.isGone(change, in: tree) }
        }
    }

    /// A change of an entry tells that a name appeared or vanished, the tree which of the two.
    private static func isGone(_ change: LocalChange, in tree: BackingTree) -> Bool {
        do throws(Errno) {
            let folder = try tree.openFolder(key: change.parent)
            return try tree.observe(in: folder.raw, change.name) == nil
        } catch { return false }
    }

    private func target(_ path: ItemPath) -> ClaimTarget { ClaimTarget(container: container, path: path) }

    // MARK: - Content

    func needContent(
        _ file: PlaceholderFile,
        range: Range<Int64>,
        waitsForAuthor: Bool,
        threadID: Int32,
        completion: @escaping @Sendable (Errno?) -> Void
    ) -> ContentRequest {
        gated(threadID, refused: completion) { [engine] in
            engine.needContent(file, range: range, waitsForAuthor: waitsForAuthor, completion: completion)
        }
    }

    /// Asks for content if the program may have it, and nobody has called that off before it was known.
    private func gated(
        _ threadID: Int32,
        refused: @escaping @Sendable (Errno) -> Void,
        _ ask: @escaping @Sendable () -> ContentRequest
    ) -> ContentRequest {
        let content = GatedContent()
        gate.judge(threadID) { isAllowed in
            guard isAllowed else { return refused(.noData) }
            if !content.proceed(ask) { refused(.interrupted) }
        }
        return ContentRequest { content.cancel() }
    }

    func presentRanges(of key: InodeKey, _ placeholder: Placeholder) -> ByteRangeSet {
        engine.presentRanges(of: key, placeholder)
    }
    func datalessOpened(_ file: PlaceholderFile, threadID: Int32) {
        engine.datalessOpened(file)
        gate.judge(threadID) { [engine] isAllowed in
            if isAllowed { engine.restMayFollow(of: file) }
        }
    }
    func datalessClosed(_ file: PlaceholderFile) { engine.datalessClosed(file) }

    // MARK: - Folders that populate themselves

    func isUnpopulated(_ folder: InodeKey) -> Bool { engine.isUnpopulated(folder) }
    func listingWaits(
        folder: InodeKey,
        completion: @escaping @Sendable (Errno?) -> Void
    ) -> ContentRequest? { engine.listingWaits(folder: folder, completion: completion) }
    func isListed(_ folder: InodeKey) -> Bool { engine.isListed(folder) }
    func populate(_ folder: InodeKey, _ name: Name) throws(Errno) -> Bool { try engine.populate(folder, name) }
    func cloudEntries(of folder: InodeKey) throws(Errno) -> [CloudEntry] { try engine.cloudEntries(of: folder) }
    func cloudName(like folded: FoldedName, in folder: InodeKey) throws(Errno) -> Name? {
        try engine.cloudName(like: folded, in: folder)
    }
    func hasCloudEntries(_ folder: InodeKey) throws(Errno) -> Bool { try engine.hasCloudEntries(folder) }

    // MARK: - Items and versions

    func itemAttribute(
        _ name: ItemAttributeName,
        key: InodeKey,
        parent: InodeKey,
        itemName: Name,
        completion: @escaping @Sendable (Result<[UInt8], Errno>) -> Void
    ) {
        engine.itemAttribute(name, key: key, parent: parent, itemName: itemName, completion: completion)
    }

    func control(_ verb: String, parent: InodeKey, name: Name) -> Errno? {
        engine.control(verb, parent: parent, name: name)
    }

    func versions(of path: ItemPath, completion: @escaping @Sendable (Result<VersionListing, Errno>) -> Void) {
        engine.versions(of: path, completion: completion)
    }

    func openVersion(
        path: ItemPath,
        revision: RevisionID,
        threadID: Int32,
        completion: @escaping @Sendable (Result<Int32, Errno>) -> Void
    ) -> ContentRequest {
        gated(threadID, refused: { completion(.failure($0)) }) { [engine] in
            engine.openVersion(path: path, revision: revision, completion: completion)
        }
    }

    func packageIndex(of version: ItemVersion, completion: @escaping @Sendable (Result<PackageIndex, Errno>) -> Void) {
        engine.packageIndex(of: version, completion: completion)
    }

    func openPart(
        _ part: Range<Int64>,
        of version: ItemVersion,
        threadID: Int32,
        completion: @escaping @Sendable (Result<Int32, Errno>) -> Void
    ) -> ContentRequest {
        gated(threadID, refused: { completion(.failure($0)) }) { [engine] in
            engine.openPart(part, of: version, completion: completion)
        }
    }

    func changeVersion(
        _ change: VersionChange,
        path: ItemPath,
        version: ItemVersion,
        threadID: Int32,
        completion: @escaping @Sendable (Errno?) -> Void
    ) {
        if broker.claimsExist, broker.contentChangeRefused(target(path), threadID: threadID) {
            return completion(.resourceBusy)
        }
        engine.changeVersion(change, path: path, version: version, completion: completion)
    }

    func aboutToDelete(key: InodeKey, parent: InodeKey, name: Name, isLastName: Bool) {
        engine.aboutToDelete(key: key, parent: parent, name: name, isLastName: isLastName)
    }

    func deletionFailed(key: InodeKey) { engine.deletionFailed(key: key) }

    func orphanWritten(key: InodeKey, lastParent: InodeKey, lastName: Name, descriptor: consuming OwnedDescriptor) {
        engine.orphanWritten(key: key, lastParent: lastParent, lastName: lastName, descriptor: descriptor)
    }
}
