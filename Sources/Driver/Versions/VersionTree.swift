import CFuse3
import Glibc
import Replica
import Synchronization
import SystemPackage
import UbiquityModel

/// The nodes of `.versions`: a folder for each path of the container that was looked up, a file for each version.
final class VersionTree: Sendable {
    static let rootID = NodeTable.versionBit | 1

    static func owns(_ id: fuse_ino_t) -> Bool { UInt64(id) & NodeTable.versionBit != 0 }

    enum Kind: Hashable, Sendable {
        /// What `.versions/PATH` is, for folders and files of the container alike.
        case folder(ItemPath)
        case version(of: ItemPath, ItemVersion, name: Name)
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
    func version(of path: ItemPath, named name: Name) -> ItemVersion? {
        state.withLock { state in
            for node in state.nodes.values {
                if case .version(path, let version, name) = node.kind { return version }
            }
            return nil
        }
    }

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
        // Versions come and go without the kernel's doing.
        entry.entry_timeout = 0
        entry.attr_timeout = 0
        return entry
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
                state.numbers[node.kind] = nil
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
            let modified = version.modified.parts
            status.st_mtim = timespec(tv_sec: Int(modified.seconds), tv_nsec: Int(modified.nanoseconds))
        }
        status.st_ctim = status.st_mtim
        status.st_atim = status.st_mtim
        return status
    }
}
