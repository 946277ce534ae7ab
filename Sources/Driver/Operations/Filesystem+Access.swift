import CFuse3
import Glibc
import Replica
import Synchronization
import SystemPackage
import UbiquityModel

/// Permissions that the backing inodes do not show.
///
/// The kernel checks nothing for a mount that only its user may enter; the disk checks what the driver does there, as the same user. What
/// is left is the true mode of the user's own files and folders where the inode on disk keeps more (architecture section 3.2).
extension Filesystem {
    /// Throws EACCES if a true mode that the disk does not enforce forbids this to its owner.
    /// - Parameter wanted: R_OK, W_OK, X_OK together.
    func requireAccess(_ request: Request, _ node: Node, _ wanted: Int32) throws(Errno) {
        guard !isPrivileged, node.facts.hidesMode, applier.acting(request.thread) == nil else { return }
        let status = try status(of: node)
        guard status.st_uid == request.user else { return }
        if Int32(status.st_mode >> 6) & wanted != wanted { throw .permissionDenied }
    }

    /// access(2) and chdir(2).
    func access(_ request: Request, _ id: fuse_ino_t, _ wanted: Int32) {
        request.answer { () throws(Errno) in
            if VersionTree.owns(id) {
                // Not EROFS, with which `rm` gives up at a terminal instead of asking.
                if wanted & W_OK != 0 { throw .permissionDenied }
                return
            }
            let node = try node(id)
            guard wanted != F_OK, applier.acting(request.thread) == nil else { return }
            let status = try status(of: node)
            if request.user == 0 {
                // As on any disk: root may do everything, but execute only what somebody may.
                let isExecutable = status.st_mode & 0o111 != 0 || node.kind == .folder
                if wanted & X_OK != 0, !isExecutable { throw .permissionDenied }
                return
            }
            let shift: UInt32 = status.st_uid == request.user ? 6 : status.st_gid == request.group ? 3 : 0
            if Int32(status.st_mode >> shift) & wanted != wanted { throw .permissionDenied }
        }
    }

    /// What programs see of a node.
    func status(of node: Node) throws(Errno) -> stat {
        let descriptor = try descriptor(of: node)
        var status = node.facts.applied(to: try diskStatus(descriptor.raw))
        // Filled while it is open: its readers see the times that it had when they opened it.
        if node.state.withLock({ $0.attributesAreOld }) { status.st_ctim = status.st_mtim }
        return status
    }

    /// The descriptor stays open for as long as this runs, whatever the cache gives up meanwhile.
    func diskStatus(_ descriptor: SharedDescriptor) throws(Errno) -> stat { try diskStatus(descriptor.raw) }

    func diskStatus(_ descriptor: Int32) throws(Errno) -> stat {
        var status = stat()
        try called(fstat(descriptor, &status))
        return status
    }
}
