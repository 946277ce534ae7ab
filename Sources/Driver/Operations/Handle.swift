import Replica
import Synchronization

/// A file that a program has open.
final class Handle: Sendable {
    let node: Node
    /// On the backing inode.
    let descriptor: SharedDescriptor
    let isWritable: Bool
    /// Who opened it.
    let thread: Int32
    /// The file was dataless when it was opened: reads ask for what is missing.
    let dataless: PlaceholderFile?
    /// Whether its reads may fetch content.
    let mayMaterialize: Bool
    let hasWritten = Atomic(false)

    init(
        node: Node,
        descriptor: SharedDescriptor,
        isWritable: Bool,
        thread: Int32,
        dataless: PlaceholderFile? = nil,
        mayMaterialize: Bool = true
    ) {
        self.node = node
        self.descriptor = descriptor
        self.isWritable = isWritable
        self.thread = thread
        self.dataless = dataless
        self.mayMaterialize = mayMaterialize
    }

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

    func removeAll() -> [OpenObject] {
        state.withLock { state in
            defer { state.objects = [:] }
            return state.objects.sorted { $0.key < $1.key }.map(\.value)
        }
    }
}
