import Replica
import Synchronization

/// A file that a program has open.
final class Handle: Sendable {
    let node: Node
    /// On the backing inode, until the kernel has a file of its own (`Filesystem.file(of:)`). A leaf: memory work only.
    private let opened: Mutex<SharedDescriptor?>
    /// For fsync, where the kernel has a file of its own: what the disk could not write it tells each descriptor that was open by then, and
    /// one that is opened later only if nobody was told before, as the engine may have been. For reading only: who looks for writers does
    /// not see it, and who looks for readers wants no handle to be open (`Node.beginHold`). A leaf: memory work only.
    private let syncing = Mutex<SharedDescriptor?>(nil)
    let isWritable: Bool
    /// Whether it may be mapped for writing.
    let mayMap: Bool
    /// Who opened it.
    let thread: Int32
    /// The file was dataless when it was opened: reads ask for what is missing.
    let dataless: PlaceholderFile?
    let hasWritten = Atomic(false)
    /// 0: not chosen, 1: passthrough, 2: other. Set once, before the kernel knows the handle.
    private let routing = Atomic<UInt8>(0)

    init(
        node: Node,
        descriptor: SharedDescriptor?,
        isWritable: Bool,
        mayMap: Bool = false,
        thread: Int32,
        dataless: PlaceholderFile? = nil
    ) {
        self.node = node
        opened = Mutex(descriptor)
        self.isWritable = isWritable
        self.mayMap = mayMap
        self.thread = thread
        self.dataless = dataless
    }

    var descriptor: SharedDescriptor? { opened.withLock { $0 } }

    /// An open descriptor of ours would look like a program's mapping (`Filesystem.isMapped`).
    func dropDescriptor() {
        let dropped = opened.withLock { opened in
            defer { opened = nil }
            return opened
        }
        withExtendedLifetime(dropped) {}
    }

    var syncDescriptor: SharedDescriptor? { syncing.withLock { $0 } }

    func keepForSync(_ descriptor: SharedDescriptor) { syncing.withLock { $0 = descriptor } }

    /// Before the handle counts as closed: an eviction would take it for a program's mapping.
    /// - Returns: whether there was one.
    func dropSyncDescriptor() -> Bool {
        let dropped = syncing.withLock { syncing in
            defer { syncing = nil }
            return syncing
        }
        return withExtendedLifetime(dropped) { dropped != nil }
    }

    func setRoute(_ route: Route) {
        if case .passthrough = route {
            routing.store(1, ordering: .releasing)
        } else {
            routing.store(2, ordering: .releasing)
        }
    }

    /// Whether the kernel reads and writes the backing file by itself.
    var isDirect: Bool { routing.load(ordering: .acquiring) == 1 }
    var isRouted: Bool { routing.load(ordering: .acquiring) != 0 }

    /// The placeholder, while reads still depend on what is present of it.
    var streaming: PlaceholderFile? {
        guard let dataless, !dataless.isWhole, !dataless.isDiscarded else { return nil }
        return dataless
    }
}

/// What the kernel holds a number of.
enum OpenObject: Sendable {
    case file(Handle)
    case folder(FolderHandle)
    /// The content of a version.
    case version(SharedDescriptor)
    case versionFolder(VersionFolderHandle)
}

/// Everything that is open, by the number given to the kernel. Numbers are never used again.
final class OpenObjects: Sendable {
    private struct State: Sendable {
        var next: UInt64 = 1
        var objects: [UInt64: OpenObject] = [:]
    }

    /// A leaf: memory work only.
    private let state = Mutex(State())

    func insert(_ object: OpenObject) -> UInt64 {
        state.withLock { state in
            state.next += 1
            state.objects[state.next] = object
            return state.next
        }
    }

    subscript(_ number: UInt64) -> OpenObject? { state.withLock { $0.objects[number] } }

    func file(_ number: UInt64) -> Handle? {
        if case .file(let handle) = self[number] { handle } else { nil }
    }

    func remove(_ number: UInt64) -> OpenObject? { state.withLock { $0.objects.removeValue(forKey: number) } }

    /// The handles on files, oldest first.
    var files: [Handle] {
        let objects = state.withLock { $0.objects }
        return objects.sorted { $0.key < $1.key }.compactMap {
            if case .file(let handle) = $0.value { handle } else { nil }
        }
    }

    /// Handles through which files may be written to unseen.
    var directWriters: [Handle] {
        state.withLock { state in
            state.objects.values.compactMap {
                if case .file(let handle) = $0, handle.isWritable, handle.isDirect { handle } else { nil }
            }
        }
    }

    func removeAll() -> [OpenObject] {
        state.withLock { state in
            defer { state.objects = [:] }
            return state.objects.sorted { $0.key < $1.key }.map(\.value)
        }
    }
}
