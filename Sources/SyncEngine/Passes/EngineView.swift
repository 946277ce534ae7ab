import CloudClient
import Driver
import EngineCore
import Glibc
import Replica
import SystemPackage
import UbiquityModel

/// The device as `Synchronizer` sees it. Lives on the engine's thread only.
final class EngineView: DeviceView {
    let container: ContainerID
    let replica: Replica
    let populator: Populator
    let cloud: any Cloud
    let uploader: Uploader
    let claims: any EngineClaims
    /// As the cloud calls it: see `ContainerEngine.connect`.
    var deviceName: String
    private let clock = ContinuousClock()
    private let started = ContinuousClock.now
    /// From when it is attached to its mount on.
    weak var engine: ContainerEngine?

    var mount: Mount?

    /// While a pass runs.
    var keepsFolder = false {
        didSet {
            lastFolder = nil
            packageFiles = [:]
        }
    }
    let packages: PackageTable
    /// The files of the packages that a pass has looked at.
    var packageFiles: [InodeKey: [InodeKey]] = [:]
    /// What packages look like that are ready to be published, by the names under which they are staged.
    var stagedPackages: [String: LocalState] = [:]
    private(set) lazy var timestampTick = TimestampTick.measured(in: replica.staging)
    private var lastFolder: (key: InodeKey, folder: OwnedFile)?
    var ahead = LookAhead()
    /// What goes on when a program's claim no longer stands in its way: one wait for each, however often the work is looked at meanwhile.
    var claimWaits: [ClaimWait: Set<EngineCore.Work>] = [:]

    struct ClaimWait: Hashable, Sendable {
        let path: ItemPath
        /// Else it may be read, and not changed: that ends with other claims.
        let isToRead: Bool
    }

    init(
        container: ContainerID,
        replica: Replica,
        populator: Populator,
        cloud: any Cloud,
        uploader: Uploader,
        claims: any EngineClaims,
        deviceName: String
    ) {
        self.container = container
        self.replica = replica
        packages = populator.packages
        self.populator = populator
        self.cloud = cloud
        self.uploader = uploader
        self.claims = claims
        self.deviceName = deviceName
    }

    // MARK: The backing tree

    var rootKey: InodeKey { replica.tree.rootKey }

    func observe(_ place: LocalPlace) throws -> LocalState? {
        do {
            let folder = try openFolder(place.folder)
            defer { withExtendedLifetime(folder) {} }
            let state = try replica.tree.observe(in: folder.descriptor, place.name)
            return try seen(state, in: folder.descriptor, place.name)
        } catch .noSuchFileOrDirectory as Errno, .stale as Errno {
            return nil
        }
    }

    func key(at place: LocalPlace) throws -> InodeKey? {
        do {
            let folder = try openFolder(place.folder)
            defer { withExtendedLifetime(folder) {} }
            return try replica.tree.observe(in: folder.descriptor, place.name)?.key
        } catch .noSuchFileOrDirectory, .stale {
            return nil
        }
    }

    func hasTwin(_ place: LocalPlace) throws -> Bool {
        guard replica.database.isCaseInsensitive else { return false }
        let folder = try openFolder(place.folder)
        defer { withExtendedLifetime(folder) {} }
        let folded = place.name.folded
        return try replica.tree.entries(in: folder.descriptor).contains {
            $0.name != place.name && $0.name.folded == folded
        }
    }

    func observedAhead(_ place: LocalPlace) -> LocalState? {
        // Somebody who has it open may write without telling.
        guard let state = ahead.files[place]?.state, !hasWriter(state.key) else { return nil }
        return state
    }

    func target(of place: LocalPlace) throws -> [UInt8]? {
        try unlessGone { () throws(Errno) in
            try withFolder(place.folder) { folder throws(Errno) in
                try replica.tree.readLink(in: folder, place.name)
            }
        }
    }

    func extendedAttributes(of place: LocalPlace, _ key: InodeKey) throws -> [[UInt8]: [UInt8]]? {
        try unlessGone { () throws(Errno) in
            let file = OwnedDescriptor(
                try withFolder(place.folder) { folder throws(Errno) in
                    try replica.tree.openPath(in: folder, place.name)
                }
            )
            if try InodeKey(descriptor: file.raw) != key { throw .stale }
            return try replica.tree.extendedAttributes(descriptor: file.raw)
        }
    }

    func bytes(of place: LocalPlace, _ key: InodeKey, limit: Int) throws -> [UInt8]? {
        try unlessGone { () throws(Errno) in
            let folder = try replica.tree.openFolder(key: place.folder)
            let file = try replica.tree.openFile(in: folder.raw, place.name, expecting: key)
            let size = min(Int64(limit), try replica.tree.observe(descriptor: file.raw).size)
            let descriptor = file.raw
            var count: Result<Int, Errno> = .success(0)
            let bytes = [UInt8](unsafeUninitializedCapacity: Int(size)) { room, filled in
                count = Result { () throws(Errno) in
                    try StagedContent.read(descriptor, into: UnsafeMutableRawBufferPointer(room), at: 0)
                }
                filled = (try? count.get()) ?? 0
            }
            _ = try count.get()
            return bytes
        }
    }

    /// The descriptor is good inside `body` only: where no folder stays open, nothing else holds it.
    private func withFolder<Value>(
        _ key: InodeKey,
        _ body: (Int32) throws(Errno) -> Value
    ) throws(Errno) -> Value {
        let folder = try openFolder(key)
        defer { withExtendedLifetime(folder) {} }
        return try body(folder.descriptor)
    }

    /// Most of what a pass looks at lies beside what it has looked at before: that folder stays open until the pass ends. (It is the folder
    /// of that key, wherever it goes.)
    private func openFolder(_ key: InodeKey) throws(Errno) -> OwnedFile {
        if let lastFolder, lastFolder.key == key { return lastFolder.folder }
        let folder = OwnedFile(try replica.tree.openFolder(key: key))
        if keepsFolder { lastFolder = (key, folder) }
        return folder
    }

    private func unlessGone<Value>(_ body: () throws(Errno) -> Value) throws(Errno) -> Value? {
        do throws(Errno) { return try body() } catch {
            if error == .noSuchFileOrDirectory || error == .stale { return nil }
            throw error
        }
    }

    func place(ofFolder key: InodeKey) -> LocalPlace? {
        replica.folders.entry(key).map { LocalPlace(folder: $0.parent, name: $0.name) }
    }

    func path(of place: LocalPlace) -> ItemPath? { replica.folders.path(of: place.folder)?.appending(place.name) }

    // MARK: The state database

    func synced(_ id: ItemID) throws -> SyncedItem? { try replica.database.synced(id) }
    func synced(at place: Place) throws -> [SyncedItem] { try replica.database.synced(at: place) }
    func synced(key: InodeKey) throws -> [SyncedItem] { try replica.database.synced(key: key) }
    func syncedChildren(of folder: ItemID) throws -> [SyncedItem] { try replica.database.syncedChildren(of: folder) }
    func syncedSubtree(of folder: ItemID) throws -> [SyncedItem] { try replica.database.syncedSubtree(of: folder) }
    func remote(_ id: ItemID) throws -> RemoteItem? { try replica.database.remote(id) }
    func remote(at place: Place) throws -> [RemoteItem] { try replica.database.remote(at: place) }
    func remote(like place: Place) throws -> [RemoteItem] { try replica.database.remote(like: place) }
    func synced(revision: RevisionID) throws -> [SyncedItem] { try replica.database.synced(revision: revision) }
    func remote(revision: RevisionID) throws -> RemoteItem? { try replica.database.remote(revision: revision) }
    func deletedRemote(revision: RevisionID) throws -> RemoteItem? {
        try replica.database.deletedRemote(revision: revision)
    }
    func strange(among keys: [InodeKey]) throws -> [InodeKey] { try replica.database.strange(among: keys) }
    func isLogged(_ deletion: DeletionEntry) -> Bool { replica.deletions.contains(deletion) }
    func askingTogether(_ body: () -> Void) { replica.database.readingTogether(body) }

    func withdraw(_ deletions: [DeletionEntry]) {
        // One that stays in the log proves what has been done already.
        try? replica.deletions.remove(deletions)
    }

    // MARK: Clock and chance

    var now: Instant { Instant(clock.now - started) }
    func newItem() -> ItemID { .made(at: Self.timeOfDay) }

    static var timeOfDay: Timestamp {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Timestamp(seconds: Int64(time.tv_sec), nanoseconds: Int64(time.tv_nsec))
    }

    // MARK: Acts

    func recordMade() {
        // One attempt has just failed: the next one comes by itself.
        if populator.hasMade { engine?.assumeIsolated { if !$0.recordsPopulatedLater { $0.recordPopulated() } } }
    }

    func populateBelow(_ folder: ItemID) throws -> Bool {
        try engine?.assumeIsolated { engine in try engine.populateBelow(folder) } ?? true
    }

    func fetchWhole(_ place: LocalPlace, _ key: InodeKey) { engine?.assumeIsolated { $0.fetchWhole(place, key) } }

    func settled(_ item: ItemID, _ key: InodeKey?) { engine?.assumeIsolated { $0.settled(item, key) } }

    func noteProblem(_ item: ItemID, at place: LocalPlace?, _ reason: String) {
        engine?.assumeIsolated { $0.noteProblem(item, at: place, reason) }
    }
}
