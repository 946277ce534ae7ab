import CLinux
import Glibc
import TestSupport

/// One thing that a program does, with all its arguments: a history is a list of these, so that it can be repeated and shortened.
///
/// Paths are relative to the folder under test, or to the one that was entered last.
enum Step: Hashable, Sendable {
    // Descriptors, in numbered slots. What a slot held is closed before.
    case open(Int, String, OpenFlags, mode: mode_t)
    case close(Int)
    case read(Int, count: Int)
    case write(Int, Content)
    case readAt(Int, offset: Int, count: Int)
    case writeAt(Int, offset: Int, Content)
    case seek(Int, offset: Int, Whence)
    case setSize(Int, Int)
    case allocate(Int, Allocation, offset: Int, count: Int)
    case copy(Int, offset: Int, to: Int, at: Int, count: Int)
    case synchronize(Int, dataOnly: Bool)
    case lock(Int)
    case describe(Int)
    case setModeOf(Int, mode_t)
    case setTimesOf(Int, Moment)
    /// Gives what a slot holds a name, through /proc.
    case nameOpen(Int, String)

    // Mappings, in numbered slots of their own.
    case map(Int, from: Int, isShared: Bool, isWritable: Bool)
    case peek(Int, offset: Int, count: Int)
    case poke(Int, offset: Int, Content)
    case unmap(Int, isSynchronized: Bool)

    // Names.
    case setMask(mode_t)
    case enter(String)
    case leave
    case makeFolder(String, mode_t)
    case removeFolder(String)
    case unlink(String)
    case rename(String, String, Renaming)
    case hardLink(String, String, follows: Bool)
    case makeLink(to: String, at: String)
    case readLink(String)
    case makeNode(String, NodeKind, mode_t)
    case list(String)

    // Attributes, by name.
    case look(String)
    case access(String, Int32)
    case truncate(String, Int)
    case setMode(String, mode_t)
    case setOwner(String, uid_t, gid_t)
    case setTimes(String, Moment, follows: Bool)
    case setAttribute(String, String, Content, flags: Int32, follows: Bool)
    case setAccessList(String, isDefault: Bool, AccessList)
    case attribute(String, String, room: Int)
    case attributes(String)
    case removeAttribute(String, String)

    // What happens to the mount alone, and must not be seen.
    /// The content goes; the next who wants it gets it back.
    case evict(String)
    /// Another device's version takes the place of what is there, or of nothing. On the plain folder it is renamed over, if the mount took it.
    case receive(String, Content)
    /// The kernel forgets what it knows.
    case forget
}

/// Bytes that a number stands for.
struct Content: Hashable, Sendable, CustomStringConvertible {
    let seed: UInt64
    let count: Int

    var bytes: [UInt8] { randomBytes(count, seed: seed) }
    var description: String { "\(count) bytes #\(seed)" }
}

struct OpenFlags: Hashable, Sendable, CustomStringConvertible {
    var raw: Int32

    private static let names: [(Int32, String)] = [
        (O_CREAT, "CREAT"), (O_EXCL, "EXCL"), (O_TRUNC, "TRUNC"), (O_APPEND, "APPEND"), (O_NONBLOCK, "NONBLOCK"),
        (O_NOFOLLOW, "NOFOLLOW"), (Int32(CLINUX_O_PATH), "PATH"),
    ]

    var description: String {
        let access = ["RDONLY", "WRONLY", "RDWR", "3"][Int(raw & O_ACCMODE)]
        var parts = [access] + Self.names.compactMap { raw & $0.0 == $0.0 ? $0.1 : nil }
        if raw & O_SYNC == O_SYNC { parts.append("SYNC") }
        // Unnamed files include the bit for folders.
        if raw & Self.unnamed == Self.unnamed {
            parts.append("TMPFILE")
        } else if raw & O_DIRECTORY != 0 {
            parts.append("DIRECTORY")
        }
        return parts.joined(separator: "|")
    }

    static let unnamed = Int32(CLINUX_O_TMPFILE) | O_DIRECTORY
}

struct Moment: Hashable, Sendable, CustomStringConvertible {
    let seconds: Int
    let nanoseconds: Int

    var time: timespec { timespec(tv_sec: seconds, tv_nsec: nanoseconds) }
    var description: String { "\(seconds).\(nanoseconds)" }
}

enum Whence: Int32, Sendable, CaseIterable { case start, current, end, data, hole }

enum Allocation: Int32, Sendable, CaseIterable {
    case grow = 0
    case keepSize = 1
    case punch = 3
    case zero = 16
    case zeroKeepingSize = 17
}

enum Renaming: UInt32, Sendable, CaseIterable { case replace, noReplace, exchange }

enum NodeKind: UInt32, Sendable, CaseIterable {
    case file = 0o100000
    case fifo = 0o010000
    case socket = 0o140000
}

/// An ACL: what the owner, the group, everybody, and one other user may do, and the most that groups and users may.
struct AccessList: Hashable, Sendable {
    let owner, group, other, user, mask: UInt16

    static let attribute = "system.posix_acl_access"
    static let defaultAttribute = "system.posix_acl_default"

    /// As in the extended attribute (linux/posix_acl_xattr.h): version 2, then tag, permissions and id of each entry.
    var bytes: [UInt8] {
        let none = UInt32.max
        let entries: [(UInt16, UInt16, UInt32)] = [
            (0x01, owner, none), (0x02, user, 65534), (0x04, group, none), (0x10, mask, none), (0x20, other, none),
        ]
        var bytes: [UInt8] = [2, 0, 0, 0]
        for (tag, permissions, id) in entries {
            for word in [UInt32(tag) | UInt32(permissions) << 16, id] {
                bytes += (0..<4).map { UInt8(truncatingIfNeeded: word >> (8 * $0)) }
            }
        }
        return bytes
    }
}
