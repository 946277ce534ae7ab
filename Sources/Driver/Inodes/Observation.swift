import CFuse3
import CLinux
import Glibc
import Replica
import Synchronization
import SystemPackage
import UbiquityModel

/// Which inode is at a name in a folder: enough to take the name away, or elsewhere.
struct Sighting {
    let key: InodeKey
    let kind: LocalKind
    /// Nothing of the inode is left when this name is gone.
    let hasOneName: Bool

    init(_ key: InodeKey, _ status: stat) {
        self.key = key
        kind = LocalKind(mode: status.st_mode)
        hasOneName = kind == .folder || status.st_nlink <= 1
    }

    /// Of an inode that was never seen with another name: no look at the disk tells more.
    init?(_ node: Node) {
        guard node.state.withLock({ !$0.mayHaveOtherNames }) else { return nil }
        key = node.key
        kind = node.kind
        hasOneName = true
    }
}

/// One look at a name in a folder: which inode, its status, and what our own attributes say of it.
struct Observation {
    let sighting: Sighting
    let status: stat
    let facts: Node.Facts

    var key: InodeKey { sighting.key }
    var kind: LocalKind { sighting.kind }
    var hasOneName: Bool { sighting.hasOneName }

    /// - Parameter name: empty for the descriptor's own inode.
    init(in directory: Int32, _ name: UnsafePointer<CChar>) throws(Errno) {
        // First: a file that becomes whole loses its attribute last, so what follows is right without it; with it, nothing else counts.
        let facts = try Self.facts(in: directory, name)
        (sighting, status) = try Self.look(in: directory, name)
        self.facts = facts
    }

    init(descriptor: Int32) throws(Errno) { try self.init(in: descriptor, "") }

    /// Of a file that was just made, which carries nothing of ours.
    init(newFile descriptor: Int32) throws(Errno) {
        (sighting, status) = try Self.look(in: descriptor, "")
        facts = Node.Facts()
    }

    private static func look(
        in directory: Int32,
        _ name: UnsafePointer<CChar>
    ) throws(Errno) -> (Sighting, stat) {
        var status = stat()
        try called(fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW | Int32(CLINUX_AT_EMPTY_PATH)))
        return (Sighting(try InodeKey(in: directory, name: name), status), status)
    }

    private static let prefix = Array("user.ubiquity..".utf8)

    private static func facts(
        in directory: Int32,
        _ name: UnsafePointer<CChar>
    ) throws(Errno) -> Node.Facts {
        var facts = Node.Facts()
        guard try hasOwn(in: directory, name) else { return facts }
        if let bytes = try value(in: directory, name, ExtendedAttributes.mode), bytes.count == 2 {
            facts.mode = (UInt16(bytes[0]) << 8 | UInt16(bytes[1])) & 0o7777
        }
        if let bytes = try value(in: directory, name, ExtendedAttributes.placeholder) {
            guard let placeholder = Placeholder(encoded: bytes) else { throw .unreadablePlaceholder }
            facts.placeholder = placeholder
        }
        return facts
    }

    /// One call for the inodes that carry nothing of ours, which are most.
    private static func hasOwn(in directory: Int32, _ name: UnsafePointer<CChar>) throws(Errno) -> Bool {
        let result = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { room -> Int64 in
            let count = clinux_fuse_xattr_list_at(directory, name, room.baseAddress, room.count)
            guard count > 0 else { return count }
            let names = UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(room)[..<Int(count)])
            return names.split(separator: 0).contains { $0.starts(with: prefix) } ? 1 : 0
        }
        switch -Int32(truncatingIfNeeded: result) {
        case ERANGE: return true
        case EOPNOTSUPP, EPERM, EACCES: return false
        default: return try checked(result) > 0
        }
    }

    private static func value(
        in directory: Int32,
        _ name: UnsafePointer<CChar>,
        _ attribute: String
    ) throws(Errno) -> [UInt8]? {
        var result: Int64 = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: 256) { room, count in
            result = clinux_fuse_xattr_get_at(directory, name, attribute, room.baseAddress, room.count)
            count = max(0, Int(result))
        }
        if result == -Int64(ENODATA) { return nil }
        try checked(result)
        return bytes
    }
}

extension Node.Facts {
    /// What programs see of an inode.
    func applied(to status: stat) -> stat {
        var status = status
        // setuid, setgid and sticky are the inode's own: the disk ends them when it must.
        if let mode { status.st_mode = status.st_mode & ~0o777 | UInt32(mode & 0o777) }
        if let placeholder {
            status.st_mode = status.st_mode & ~0o777 | UInt32(placeholder.mode)
            status.st_size = off_t(placeholder.size)
            let modified = placeholder.modified.parts
            status.st_mtim = timespec(tv_sec: Int(modified.seconds), tv_nsec: Int(modified.nanoseconds))
            // No blocks at all, and `cp --sparse` and `tar -S` write zeros without reading.
            if placeholder.size > 0 { status.st_blocks = max(1, status.st_blocks) }
            // Filling moves the inode's change time, and `tar` takes that for somebody's writing.
            status.st_ctim = status.st_mtim
        }
        return status
    }

    /// Whether what the disk would enforce is not what the program should meet.
    var hidesMode: Bool { mode != nil || placeholder != nil }
}
