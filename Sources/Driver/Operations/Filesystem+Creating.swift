import CFuse3
import CLinux
import Glibc
import Replica
import SystemPackage
import UbiquityModel

extension Filesystem {
    func makeNode(
        _ request: Request,
        _ parent: fuse_ino_t,
        _ name: UnsafePointer<CChar>,
        _ mode: mode_t,
        _ device: dev_t
    ) {
        make(request, parent, name) { folder, name throws(Errno) in
            let isFile = mode & FileMode.typeMask == FileMode.file || mode & FileMode.typeMask == 0
            try called(mknodat(folder, name, isFile ? mode | 0o600 : mode, device))
            if isFile { try setTrueMode(in: folder, name, UInt16(mode & 0o7777), .file) }
        }
    }

    func makeFolder(_ request: Request, _ parent: fuse_ino_t, _ name: UnsafePointer<CChar>, _ mode: mode_t) {
        make(request, parent, name) { folder, name throws(Errno) in
            try called(mkdirat(folder, name, isPrivileged ? mode : mode | 0o700))
            // A folder with setgid passes it on: what the disk added stays.
            if !isPrivileged, mode & 0o700 != 0o700 {
                try setTrueMode(in: folder, name, UInt16(mode & 0o7777), .folder)
            }
        }
    }

    func makeLink(
        _ request: Request,
        _ target: UnsafePointer<CChar>,
        _ parent: fuse_ino_t,
        _ name: UnsafePointer<CChar>
    ) {
        make(request, parent, name) { folder, name throws(Errno) in try called(symlinkat(target, folder, name)) }
    }

    /// The disk keeps what the owner needs; the rest is in an attribute.
    private func setTrueMode(
        in folder: Int32,
        _ name: UnsafePointer<CChar>,
        _ mode: UInt16,
        _ kind: LocalKind
    ) throws(Errno) {
        let path = SharedDescriptor(try checked(clinux_open_at(folder, name, Int32(CLINUX_O_PATH) | O_NOFOLLOW, 0)))
        try InodeMode.set(path.raw, mode, kind)
    }

    private func make(
        _ request: Request,
        _ parent: fuse_ino_t,
        _ name: UnsafePointer<CChar>,
        _ act: (_ folder: Int32, _ name: UnsafePointer<CChar>) throws(Errno) -> Void
    ) {
        request.attempt { () throws(Errno) in
            let (folder, itemName) = try admitNewName(request, parent, name)
            let descriptor = try descriptor(of: folder)
            try names.shared { () throws(Errno) in try act(descriptor.raw, name) }
            try giveToCaller(request, descriptor, name)
            guard case .entry(var entry) = try enter(folder, descriptor, itemName, name) else { throw .stale }
            let node = try node(entry.ino)
            report(.entry, folder.key, itemName, node.key, isFolder: node.kind == .folder)
            reply(request, &entry)
        }
    }

    /// What is checked before any new name in a folder.
    private func admitNewName(
        _ request: Request,
        _ parent: fuse_ino_t,
        _ name: UnsafePointer<CChar>
    ) throws(Errno) -> (folder: Node, name: Name) {
        guard !VersionTree.owns(parent) else { throw .readOnly }
        let folder = try node(parent)
        if isVersions(folder, name) { throw .fileExists }
        // Only the engine fills the staging folder, and not through the mount.
        guard folder.id != NodeTable.stagingID else { throw .notPermitted }
        let itemName = try self.name(name)
        try requireAccess(request, folder, W_OK | X_OK)
        try checkClaims(request, [(folder, itemName)])
        return (folder, itemName)
    }

    /// What root's driver makes for another user (allow_other) belongs to that user; the folder's setgid decides on the group.
    private func giveToCaller(
        _ request: Request,
        _ folder: SharedDescriptor,
        _ name: UnsafePointer<CChar>
    ) throws(Errno) {
        guard isPrivileged, request.user != 0 || request.group != 0 else { return }
        let inherits = try diskStatus(folder.raw).st_mode & FileMode.setGroup != 0
        try called(fchownat(folder.raw, name, request.user, inherits ? gid_t.max : request.group, AT_SYMLINK_NOFOLLOW))
    }

    func hardLink(_ request: Request, _ id: fuse_ino_t, _ parent: fuse_ino_t, _ name: UnsafePointer<CChar>) {
        request.attempt { () throws(Errno) in
            guard !VersionTree.owns(id) else { throw .crossDevice }
            let node = try node(id)
            let (folder, itemName) = try admitNewName(request, parent, name)
            let source = try descriptor(of: node)
            let descriptor = try descriptor(of: folder)
            _ = try names.shared { () throws(Errno) in
                try called(linkat(AT_FDCWD, "/proc/self/fd/\(source.raw)", descriptor.raw, name, AT_SYMLINK_FOLLOW))
            }
            guard case .entry(var entry) = try enter(folder, descriptor, itemName, name) else { throw .stale }
            report(.entry, folder.key, itemName, node.key, isFolder: false)
            reply(request, &entry)
        }
    }

    // MARK: Files

    func create(
        _ request: Request,
        _ parent: fuse_ino_t,
        _ name: UnsafePointer<CChar>,
        _ mode: mode_t,
        _ flags: Int32
    ) {
        request.attempt { () throws(Errno) in
            let (folder, itemName) = try admitNewName(request, parent, name)
            let descriptor = try descriptor(of: folder)
            let file = try makingRoom { () throws(Errno) in try makeFile(descriptor, name, mode, flags) }
            try giveToCaller(request, descriptor, name)
            guard case .entry(let entry) = try enter(folder, descriptor, itemName, name) else { throw .stale }
            let node = try node(entry.ino)
            let isWriting = flags & O_ACCMODE != O_RDONLY
            let admission = node.beginUse(isWriting: isWriting, discards: true, thread: request.thread, again: {})
            guard case .admitted = admission else {
                forget(entry.ino, 1)
                throw .stale
            }
            report(.entry, folder.key, itemName, node.key, isFolder: false)
            let mayMap = flags & O_ACCMODE == O_RDWR
            let handle = Handle(
                node: node,
                descriptor: file,
                isWritable: isWriting,
                mayMap: mayMap,
                thread: request.thread
            )
            reply(request, handle, created: entry.attr)
        }
    }

    /// The kernel looked the name up before, and holds the folder's lock: if there is one now, somebody works behind its back.
    private func makeFile(
        _ folder: SharedDescriptor,
        _ name: UnsafePointer<CChar>,
        _ mode: mode_t,
        _ flags: Int32
    ) throws(Errno) -> SharedDescriptor {
        let onDisk = isPrivileged ? mode : mode | 0o600
        let wanted = Self.backingFlags(flags) | O_CREAT | O_EXCL | O_NOFOLLOW
        do throws(Errno) {
            let file = SharedDescriptor(
                try names.shared { () throws(Errno) in
                    try checked(clinux_open_at(folder.raw, name, wanted, UInt32(onDisk & 0o7777)))
                }
            )
            if onDisk != mode { try InodeMode.set(file.raw, UInt16(mode & 0o7777), .file) }
            return file
        } catch .fileExists where flags & O_EXCL == 0 {
            throw .stale
        }
    }
}
