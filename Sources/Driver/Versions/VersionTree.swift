import CFuse3
import Glibc
import Replica
import Synchronization
import SystemPackage
import UbiquityModel

/// The nodes of `.versions`: a folder for each path of the container that was looked up, a file for each version; of a package a folder, with
/// what lies in it.
final class VersionTree: Sendable {
    static let rootID = NodeTable.versionBit | 1

    static func owns(_ id: fuse_ino_t) -> Bool { UInt64(id) & NodeTable.versionBit != 0 }

    enum Kind: Hashable, Sendable {
        /// What `.versions/PATH` is, for folders and files of the container alike.
        case folder(ItemPath)
        case version(of: ItemPath, ItemVersion, name: Name)
        /// A version of a package.
        case package(VersionPackage)
        /// What lies in one.
        case element(of: VersionPackage, VersionContents.Element)

        /// What an entry of `.versions/PATH` is.
        var version: ItemVersion? {
            switch self {
            case .version(_, let version, _): version
            case .package(let package): package.version
            case .folder, .element: nil
            }
        }
    }

    private struct Node: Sendable {
        let kind: Kind
        var lookups: UInt64
    }

    private struct State: Sendable {
        var next = NodeTable.versionBit | 16
        var nodes: [UInt64: Node] = [:]
        var numbers: [Kind: UInt64] = [:]
    }

    /// A leaf: memory work only.
    private let state = Mutex(State())
    private let started: timespec = {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        return now
    }()

    func kind(_ id: fuse_ino_t) throws(Errno) -> Kind {
        if UInt64(id) == Self.rootID { return .folder(.root) }
        guard let kind = state.withLock({ $0.nodes[UInt64(id)]?.kind }) else { throw .stale }
        return kind
    }

    /// A version that was looked up and not forgotten.
    func version(of path: ItemPath, named name: Name) -> Kind? {
        state.withLock { state in
            for node in state.nodes.values {
                switch node.kind {
                case .version(path, _, name): return node.kind
                case .package(let package) where package.path == path && package.name == name: return node.kind
                case .folder, .version, .package, .element: continue
                }
            }
            return nil
        }
    }

    /// The kernel takes what was removed for dead: what is shown again there is another node.
    func retire(_ kind: Kind) { state.withLock { $0.numbers[kind] = nil } }

    /// Counts a lookup.
    func enter(_ kind: Kind) -> fuse_entry_param {
        let id = state.withLock { state in
            if let id = state.numbers[kind] {
                state.nodes[id]?.lookups += 1
                return id
            }
            let id = state.next
            state.next += 1
            state.nodes[id] = Node(kind: kind, lookups: 1)
            state.numbers[kind] = id
            return id
        }
        var entry = fuse_entry_param()
        entry.ino = fuse_ino_t(id)
        entry.attr = attributes(id, kind)
        (entry.entry_timeout, entry.attr_timeout) = Self.timeouts(kind)
        return entry
    }

    /// How long the kernel may keep what it knows, in seconds: a name, and what is at it.
    private static func timeouts(_ kind: Kind) -> (Double, Double) {
        switch kind {
        // Versions come and go without the kernel's doing.
        case .version: (0, 0)
        // Whoever copies a package walks through both for each of its files, and the server is asked whether they are still there.
        case .folder, .package: (1, 1)
        case .element: (Filesystem.forever, Filesystem.forever)
        }
    }

    /// `.versions` itself, which is always there.
    func rootEntry() -> fuse_entry_param {
        var entry = fuse_entry_param()
        entry.ino = fuse_ino_t(Self.rootID)
        entry.attr = attributes(Self.rootID, .folder(.root))
        entry.entry_timeout = Filesystem.forever
        entry.attr_timeout = Filesystem.forever
        return entry
    }

    func forget(_ id: fuse_ino_t, _ count: UInt64) {
        state.withLock { state in
            guard let node = state.nodes[UInt64(id)] else { return }
            if node.lookups > count {
                state.nodes[UInt64(id)]?.lookups -= count
            } else {
                state.nodes[UInt64(id)] = nil
                if state.numbers[node.kind] == UInt64(id) { state.numbers[node.kind] = nil }
            }
        }
    }

    func attributes(_ request: Request, _ id: fuse_ino_t) {
        request.attempt { () throws(Errno) in
            request.reply(attributes: attributes(UInt64(id), try kind(id)), timeout: 0)
        }
    }

    /// Of 512 bytes each. Never none of something: tools would take it for a hole.
    static func blocks(of size: Int64) -> Int64 { size / 512 + (size % 512).signum() }

    private func attributes(_ id: UInt64, _ kind: Kind) -> stat {
        var status = stat()
        status.st_ino = ino_t(id)
        status.st_uid = geteuid()
        status.st_gid = getegid()
        status.st_blksize = 4096
        switch kind {
        case .folder:
            status.st_mode = FileMode.folder | 0o500
            status.st_nlink = 2
            status.st_mtim = started
        case .version(_, let version, _):
            status.st_mode = FileMode.file | 0o400
            status.st_nlink = 1
            status.st_size = off_t(version.size)
            status.st_blocks = blkcnt_t(Self.blocks(of: version.size))
            status.st_mtim = Self.time(version.modified)
        case .package(let package):
            status.st_mode = FileMode.folder | 0o700
            status.st_nlink = 2
            status.st_mtim = Self.time(package.version.modified)
        case .element(let package, let entry): Self.describe(entry.element, of: package.version, in: &status)
        }
        status.st_ctim = status.st_mtim
        status.st_atim = status.st_mtim
        return status
    }

    /// Folders keep their true modes, although nothing in them can be changed: what was copied out of here can be.
    private static func describe(
        _ element: PackageIndex.Element,
        of version: ItemVersion,
        in status: inout stat
    ) {
        status.st_nlink = 1
        switch element.kind {
        case .folder:
            status.st_mode = FileMode.folder | mode_t(element.mode)
            status.st_nlink = 2
            status.st_mtim = time(version.modified)
        case .symlink(let target):
            status.st_mode = FileMode.symlink | 0o777
            status.st_size = off_t(target.count)
            status.st_mtim = time(version.modified)
        case .file(let size, let modified):
            status.st_mode = FileMode.file | mode_t(element.mode & 0o555)
            status.st_size = off_t(size)
            status.st_blocks = blkcnt_t(blocks(of: size))
            status.st_mtim = time(modified)
        }
    }

    private static func time(_ time: Timestamp) -> timespec {
        let parts = time.parts
        return timespec(tv_sec: Int(parts.seconds), tv_nsec: Int(parts.nanoseconds))
    }
}
