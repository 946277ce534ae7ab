import CFuse3
import CLinux
import Glibc
import UbiquityModel

/// Tells the kernel what it must ask for again: from a thread of its own, since an entry's invalidation takes its folder's lock, which a
/// request that is being answered may hold.
struct Invalidations {
    enum Notice: Sendable {
        /// Attributes; what is cached of the content stays.
        case attributes(node: UInt64)
        /// A name, and the folder's attributes and listing.
        case entry(folder: UInt64, name: Name)
        /// A folder's attributes and listing.
        case listing(folder: UInt64)
        /// All names, also those that are known not to be there. Only Linux 6.16 and later can do that.
        case allEntries
    }

    let notices: Mailbox<Notice>
    let session: SessionPointer

    /// Runs until the mailbox is closed. What is not cached (ENOENT), and a mount that is gone, is no error here.
    func run() {
        while case .element(let notice) = notices.next() {
            switch notice {
            case .attributes(let node):
                fuse_lowlevel_notify_inval_inode(session.raw, fuse_ino_t(node), -1, 0)
            case .entry(let folder, let name):
                name.withCString {
                    _ = fuse_lowlevel_notify_inval_entry(session.raw, fuse_ino_t(folder), $0, name.bytes.count)
                }
                // The kernel lets go of the listing by itself only if it knew the name.
                fuse_lowlevel_notify_inval_inode(session.raw, fuse_ino_t(folder), 0, 0)
            case .listing(let folder):
                fuse_lowlevel_notify_inval_inode(session.raw, fuse_ino_t(folder), 0, 0)
            case .allEntries:
                _ = clinux_fuse_forget_entries(fuse_session_fd(session.raw))
            }
        }
    }
}

/// libfuse's session. Unchecked: libfuse locks what it shares between threads, and the session is destroyed after all of them ended.
struct SessionPointer: @unchecked Sendable {
    let raw: OpaquePointer
}
