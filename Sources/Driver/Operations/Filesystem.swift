import CFuse3
import Glibc
import Logging
import Replica
import Synchronization
import SystemPackage
import UbiquityModel

/// What the mount shows: the backing tree, `.versions`, and, to the engine's apply threads alone, the staging folder.
///
/// Its extensions hold the operations, a file per family. Their rules (architecture section 3.1, driver-facts.md):
/// - Handlers run on request threads. System calls on the backing disk may block there; nothing may wait for the mount, the network or a
///   claim. What has to wait keeps its request in `deferrals`.
/// - Mutexes are held for memory work only: never across a system call, a reply or a call to the host. Order: `names`, then the table,
///   then a node; every other one is a leaf.
/// - The kernel serialises changes of one folder's entries, and changes of one file, including those of the apply threads.
final class Filesystem: Sendable {
    /// Seconds. The kernel keeps what it knows until it is told otherwise.
    static let forever = 1e9
    static let versionsName: StaticString = ".versions"

    let configuration: MountConfiguration
    let replica: Replica
    let host: any DriverHost
    let logger: Logger
    let table: NodeTable
    let descriptors: DescriptorCache
    let passthrough: Passthrough
    let backings = BackingCache()
    let forgotten = ForgottenNodes()
    /// In a case-insensitive container only.
    let foldedNames: FoldedNames?
    let writerWatch = WriterWatch()
    /// The connection to the kernel, once it is there.
    let connection = Atomic<Int32>(-1)
    let names = NameLock()
    let open = OpenObjects()
    let placeholders = PlaceholderRegistry()
    let worker: Worker
    /// Files that have become whole are synchronized here: a large one may take seconds, in which readers of others are to be answered.
    let finisher: Worker
    let deferrals: Deferrals
    let applier = Applier()
    let versions = VersionTree()
    let buffers = BufferPool()
    let notices = Mailbox<Invalidations.Notice>()
    let rootDescriptor: SharedDescriptor
    let stagingDescriptor: SharedDescriptor
    /// The staging folder's name in the root, for the apply threads only. Nobody guesses it.
    let stagingName: String
    /// The mount's device number, once it is mounted.
    let mountDevice = Atomic<UInt64>(0)
    /// The connection, for libfuse's I/O functions until it is initialised. A leaf: memory work only.
    let session = Mutex(WeakSession(session: nil))
    /// libfuse has seen the kernel's INIT; the kernel has our reply.
    let isInitialized = Atomic(false)
    let isReplied = Atomic(false)
    /// Programs find no way in any more (`Mount.closeToPrograms`).
    let isClosed = Atomic(false)
    /// Descriptors that handles keep for fsync alone.
    let keptForSync = Atomic(0)
    /// A thread of ours that is let into a closed mount; 0 is none.
    let admittedThread = Atomic<Int32>(0)
    /// Root passes permission checks, as on any disk.
    let isPrivileged = geteuid() == 0

    init(
        _ configuration: MountConfiguration,
        replica: Replica,
        host: any DriverHost,
        passthrough: Passthrough,
        logger: Logger
    ) throws(Errno) {
        self.configuration = configuration
        self.passthrough = passthrough
        self.replica = replica
        self.host = host
        self.logger = logger
        foldedNames = configuration.isCaseInsensitive ? FoldedNames() : nil
        rootDescriptor = SharedDescriptor(try called(fcntl(replica.tree.rootDescriptor, F_DUPFD_CLOEXEC, 0)))
        stagingDescriptor = SharedDescriptor(try called(fcntl(replica.staging.descriptor, F_DUPFD_CLOEXEC, 0)))
        stagingName = ".ubiquity-" + RevisionID.random().description
        guard let placeholderName = try? Name("-") else { throw .invalidArgument }
        let root = try Observation(descriptor: rootDescriptor.raw)
        let staging = try Observation(descriptor: stagingDescriptor.raw)
        table = NodeTable(
            root: Node(
                id: NodeTable.rootID,
                key: root.key,
                kind: .folder,
                parent: root.key,
                name: placeholderName,
                facts: root.facts
            ),
            staging: Node(
                id: NodeTable.stagingID,
                key: staging.key,
                kind: .folder,
                parent: root.key,
                name: placeholderName,
                facts: staging.facts
            )
        )
        descriptors = DescriptorCache(limit: Self.descriptorLimit())
        worker = try Worker("ubiq-reply", count: 3)
        finisher = try Worker("ubiq-finish", count: 2)
        deferrals = Deferrals(worker: worker)
    }

    /// 40 % of what the process may have open; programs' open files need the rest.
    private static func descriptorLimit() -> Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 400 }
        return Int(min(UInt64(limit.rlim_cur) / 5 * 2, 200_000))
    }

    /// After the last request.
    func close() {
        let handles = open.removeAll().compactMap { if case .file(let handle) = $0 { handle } else { nil } }
        for handle in handles + writerWatch.takeKept() {
            leave(handle)
            released(handle)
        }
        table.removeAll()
        descriptors.removeAll()
    }

    /// Whether whoever asks may enter: look names up, open and list.
    func admits(_ request: Request) -> Bool {
        guard isClosed.load(ordering: .relaxed) else { return true }
        return applier.acting(request.thread) != nil || request.thread == admittedThread.load(ordering: .relaxed)
    }

    /// Whether whoever asks may change something: where this device may only read, that is the engine alone.
    func mayChange(_ request: Request) -> Bool {
        !configuration.isReadOnly || applier.acting(request.thread) != nil
    }

    func node(_ id: fuse_ino_t) throws(Errno) -> Node {
        guard let node = table.node(UInt64(id)) else { throw .stale }
        return node
    }

    func name(_ bytes: UnsafePointer<CChar>) throws(Errno) -> Name {
        do throws(NameError) {
            return try Name(cString: bytes)
        } catch .tooLong {
            // The kernel lets names of up to 1024 bytes through.
            throw .fileNameTooLong
        } catch {
            throw .invalidArgument
        }
    }

    func isVersions(_ parent: Node, _ name: UnsafePointer<CChar>) -> Bool {
        parent.id == NodeTable.rootID
            && strcmp(name, UnsafeRawPointer(Self.versionsName.utf8Start).assumingMemoryBound(to: CChar.self)) == 0
    }

    // MARK: Reports

    func report(
        _ aspects: LocalChange.Aspects,
        _ parent: InodeKey,
        _ name: Name,
        _ key: InodeKey?,
        movedFrom: (parent: InodeKey, name: Name)? = nil,
        replaced: InodeKey? = nil,
        mayHaveOtherNames: Bool = true,
        isFolder: Bool
    ) {
        // What the engine has in its staging folder is its own business.
        guard parent != table.staging.key else { return }
        host.changed(
            LocalChange(
                aspects: aspects,
                parent: parent,
                name: name,
                key: key,
                movedFrom: movedFrom,
                replaced: replaced,
                mayHaveOtherNames: mayHaveOtherNames,
                isFolder: isFolder
            )
        )
    }

    /// Of an inode, wherever it is now; nothing if it has no name any more.
    func report(_ aspects: LocalChange.Aspects, _ node: Node) {
        guard node.id != NodeTable.rootID, let link = node.link else { return }
        let mayHaveOthers = node.state.withLock { $0.mayHaveOtherNames }
        report(
            aspects,
            link.parent,
            link.name,
            node.key,
            mayHaveOtherNames: mayHaveOthers,
            isFolder: node.kind == .folder
        )
    }

    /// EBUSY where another party's claim covers one of the entries.
    func checkClaims(_ request: Request, _ entries: [(parent: Node, name: Name)]) throws(Errno) {
        guard host.claimsExist, applier.acting(request.thread) == nil else { return }
        let paths = entries.compactMap { path(of: $0.parent.key)?.appending($0.name) }
        if host.entryChangeRefused(paths: paths, threadID: request.thread) { throw .resourceBusy }
    }
}
