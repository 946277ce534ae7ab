import CFuse3
import CLinux
import Glibc
import Replica
import Synchronization
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
        let isFile = mode & FileMode.typeMask == FileMode.file || mode & FileMode.typeMask == 0
        let hidden = isFile ? hiddenMode(request, mode, .file) : nil
        make(request, parent, name, mode, hiding: hidden) { folder, name throws(Errno) -> Void in
            let onDisk = isFile ? Self.onDisk(mode, .file) : mode
            try withMask(of: request, onDisk) { mode throws(Errno) in try called(mknodat(folder, name, mode, device)) }
        }
    }

    func makeFolder(_ request: Request, _ parent: fuse_ino_t, _ name: UnsafePointer<CChar>, _ mode: mode_t) {
        let hidden = hiddenMode(request, mode, .folder)
        make(request, parent, name, hiding: hidden, isFolder: true) { folder, name throws(Errno) -> Void in
            _ = try withMask(of: request, Self.onDisk(mode, .folder)) { mode throws(Errno) in
                try called(mkdirat(folder, name, mode))
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

    // MARK: Modes

    /// The disk keeps what the owner needs; the rest is in an attribute.
    static func onDisk(_ mode: mode_t, _ kind: LocalKind) -> mode_t {
        mode & ~0o7777 | mode_t(InodeMode.backing(UInt16(mode & 0o7777), kind))
    }

    /// Makes something with the caller's umask, which a folder with a default ACL ignores: the disk decides.
    @discardableResult
    func withMask<Result>(
        of request: Request,
        _ mode: mode_t,
        _ make: (_ mode: mode_t) throws(Errno) -> Result
    ) throws(Errno) -> Result {
        let masked = clinux_fuse_begin_mask(isPrivileged ? request.mask : request.mask & 0o077, mode)
        defer { clinux_fuse_end_mask() }
        return try make(masked)
    }

    /// What the owner may do with something new, if the disk shows more.
    func hiddenMode(_ request: Request, _ mode: mode_t, _ kind: LocalKind) -> UInt16? {
        let owners = UInt16(mode & ~request.mask & 0o700)
        return InodeMode.backing(owners, kind) == owners ? nil : owners
    }

    /// The rest of the mode is as the disk made it.
    func hide(_ owners: UInt16, of descriptor: Int32, _ kind: LocalKind) throws(Errno) {
        let status = try diskStatus(descriptor)
        try InodeMode.set(descriptor, UInt16(status.st_mode & 0o7077) | owners, kind)
    }

    /// - Parameter owners: what the owner may do with it, if the disk shows more.
    private func make(
        _ request: Request,
        _ parent: fuse_ino_t,
        _ name: UnsafePointer<CChar>,
        _ mode: mode_t = 0,
        hiding owners: UInt16? = nil,
        isFolder: Bool = false,
        _ act: (_ folder: Int32, _ name: UnsafePointer<CChar>) throws(Errno) -> Void
    ) {
        request.attempt { () throws(Errno) in
            let (folder, itemName) = try admitNewName(request, parent, name)
            let descriptor = try descriptor(of: folder)
            try names.shared { () throws(Errno) in try act(descriptor.raw, name) }
            let entered = try completing(descriptor, name, isFolder: isFolder) { () throws(Errno) -> Entered in
                if let owners {
                    let path = try openPath(in: descriptor, name)
                    try hide(owners, of: path.raw, isFolder ? .folder : .file)
                }
                try giveToCaller(request, descriptor, name, mode)
                return try enter(folder, descriptor, itemName, name)
            }
            guard case .entry(var entry) = entered else { throw .stale }
            let node = try node(entry.ino)
            report(.entry, folder.key, itemName, node.key, mayHaveOtherNames: false, isFolder: node.kind == .folder)
            reply(request, &entry)
        }
    }

    /// What is left to do for something that was just made. If that fails, it goes again: the kernel remembers that nothing is there, so
    /// that it could neither be seen nor made anew, and nobody tells the engine of it.
    private func completing<Result>(
        _ folder: SharedDescriptor,
        _ name: UnsafePointer<CChar>,
        isFolder: Bool,
        _ body: () throws(Errno) -> Result
    ) throws(Errno) -> Result {
        do throws(Errno) { return try body() } catch {
            // The kernel holds the folder's lock until the request is answered. Who works behind its back loses nothing, either.
            var status = stat()
            let isEmpty =
                fstatat(folder.raw, name, &status, AT_SYMLINK_NOFOLLOW) == 0
                && (status.st_mode & FileMode.typeMask != FileMode.file || status.st_size == 0)
            if isEmpty { _ = names.shared { unlinkat(folder.raw, name, isFolder ? AT_REMOVEDIR : 0) } }
            throw error
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
        try requireNoTwin(request, of: itemName, in: folder)
        return (folder, itemName)
    }

    /// What root's driver makes for another user (allow_other) belongs to that user; the folder's setgid decides on the group.
    private func giveToCaller(
        _ request: Request,
        _ folder: SharedDescriptor,
        _ name: UnsafePointer<CChar>,
        _ mode: mode_t
    ) throws(Errno) {
        guard isPrivileged, request.user != 0 || request.group != 0 else { return }
        let inherits = try diskStatus(folder.raw).st_mode & FileMode.setGroup != 0
        if mode & (FileMode.setUser | FileMode.setGroup) != 0 {
            return try give(openPath(in: folder, name), to: request, inheritsGroup: inherits, mode)
        }
        try called(fchownat(folder.raw, name, request.user, inherits ? gid_t.max : request.group, AT_SYMLINK_NOFOLLOW))
    }

    /// The same for a file without a name.
    func giveToCaller(
        _ request: Request,
        _ folder: SharedDescriptor,
        _ file: SharedDescriptor,
        _ mode: mode_t
    ) throws(Errno) {
        guard isPrivileged, request.user != 0 || request.group != 0 else { return }
        let inherits = try diskStatus(folder.raw).st_mode & FileMode.setGroup != 0
        try give(file, to: request, inheritsGroup: inherits, mode)
    }

    /// The disk ends a file's setuid and setgid with its owner; whoever makes a file may begin with them, on any disk. (Not setgid for
    /// the folder's group: he may not belong to it.)
    private func give(
        _ file: SharedDescriptor,
        to request: Request,
        inheritsGroup: Bool,
        _ mode: mode_t
    ) throws(Errno) {
        let flags = Int32(CLINUX_AT_EMPTY_PATH) | AT_SYMLINK_NOFOLLOW
        try called(fchownat(file.raw, "", request.user, inheritsGroup ? gid_t.max : request.group, flags))
        let status = try diskStatus(file.raw)
        guard status.st_mode & FileMode.typeMask == FileMode.file else { return }
        let kept = mode & (inheritsGroup ? FileMode.setUser : FileMode.setUser | FileMode.setGroup)
        guard kept != 0 else { return }
        try checked(clinux_chmod(file.raw, UInt32(status.st_mode & 0o7777 | kept)))
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
            node.state.withLock { $0.mayHaveOtherNames = true }
            let former = node.link
            guard case .entry(var entry) = try enter(folder, descriptor, itemName, name) else { throw .stale }
            report(.entry, folder.key, itemName, node.key, isFolder: false)
            // What that name is a part of has to be told from now on of what is done by this one.
            if let former { report([], former.parent, former.name, node.key, isFolder: false) }
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
            let file = try makingRoom { () throws(Errno) in try makeFile(request, descriptor, name, mode, flags) }
            let hidden = hiddenMode(request, mode, .file)
            let (path, entered) = try completing(descriptor, name, isFolder: false) {
                () throws(Errno) -> (SharedDescriptor, Entered) in
                if let hidden { try hide(hidden, of: file.raw, .file) }
                try giveToCaller(request, descriptor, name, mode)
                // What is bound is asked for everything else, too: it is the node's inode for certain.
                let path = mayPass ? try openPath(in: descriptor, name) : file
                let entered = try enter(folder, itemName) { () throws(Errno) in
                    hidden != nil ? try Observation(descriptor: path.raw) : try Observation(newFile: path.raw)
                }
                return (path, entered)
            }
            guard case .entry(let entry) = entered else { throw .stale }
            let node = try node(entry.ino)
            if mayPass { _ = descriptors.insert(path, for: node.id) }
            node.state.withLock { state in
                state.isWithoutCapabilities = true
                // Nobody else has ever had it.
                (state.mayBeMapped, state.directWriters.mayHaveMapped) = (false, false)
            }
            let isWriting = flags & O_ACCMODE != O_RDONLY
            let admission = node.beginUse(isWriting: isWriting, discards: true, thread: request.thread, again: {})
            guard case .admitted = admission else {
                forget(entry.ino, 1)
                throw .stale
            }
            report(.entry, folder.key, itemName, node.key, mayHaveOtherNames: false, isFolder: false)
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
        _ request: Request,
        _ folder: SharedDescriptor,
        _ name: UnsafePointer<CChar>,
        _ mode: mode_t,
        _ flags: Int32
    ) throws(Errno) -> SharedDescriptor {
        let onDisk = Self.onDisk(mode, .file)
        let wanted = Self.backingFlags(flags) | O_CREAT | O_EXCL | O_NOFOLLOW
        do throws(Errno) {
            return SharedDescriptor(
                try names.shared { () throws(Errno) in
                    try withMask(of: request, onDisk) { mode throws(Errno) in
                        try checked(clinux_open_at(folder.raw, name, wanted, UInt32(mode & 0o7777)))
                    }
                }
            )
        } catch .fileExists where flags & O_EXCL == 0 {
            throw .stale
        }
    }
}
