import CFuse3
import CLinux
import Glibc
import Replica
import Synchronization
import SystemPackage
import UbiquityModel

extension Filesystem {
    func getAttributes(_ request: Request, _ id: fuse_ino_t) {
        if VersionTree.owns(id) { return versions.attributes(request, id) }
        request.attempt { () throws(Errno) in request.reply(attributes: try status(of: node(id)), timeout: Self.forever)
        }
    }

    func readLink(_ request: Request, _ id: fuse_ino_t) {
        request.attempt { () throws(Errno) in
            let target: [UInt8]
            if VersionTree.owns(id) {
                target = try versionTarget(id)
            } else {
                let descriptor = try descriptor(of: node(id))
                target = try replica.tree.readLink(descriptor: descriptor.raw)
            }
            (target.map { CChar(bitPattern: $0) } + [0]).withUnsafeBufferPointer {
                _ = fuse_reply_readlink(request.raw, $0.baseAddress)
            }
        }
    }

    func statistics(_ request: Request) {
        request.attempt { () throws(Errno) in
            var status = statvfs()
            try called(fstatvfs(rootDescriptor.raw, &status))
            fuse_reply_statfs(request.raw, &status)
        }
    }

    // MARK: Setting

    /// What a SETATTR asks for.
    struct WantedAttributes: Sendable {
        var mode: UInt16?
        var user: uid_t?
        var group: gid_t?
        /// Whether the owner is set, if only to what he is.
        var hasOwner = false
        var size: Int64?
        var accessed: timespec?
        var modified: timespec?

        init() {}

        init(_ attributes: stat, _ set: Int32) {
            func has(_ bit: Int32) -> Bool { set & bit != 0 }
            let now = timespec(tv_sec: 0, tv_nsec: Int(CLINUX_UTIME_NOW))
            // chown(-1, -1) asks for nothing, but as every chown it ends setuid and setgid.
            hasOwner = set == 0 || has(FUSE_SET_ATTR_UID) || has(FUSE_SET_ATTR_GID)
            if has(FUSE_SET_ATTR_MODE) { mode = UInt16(attributes.st_mode & 0o7777) }
            if has(FUSE_SET_ATTR_UID) { user = attributes.st_uid }
            if has(FUSE_SET_ATTR_GID) { group = attributes.st_gid }
            if has(FUSE_SET_ATTR_SIZE) { size = Int64(attributes.st_size) }
            if has(FUSE_SET_ATTR_ATIME_NOW) {
                accessed = now
            } else if has(FUSE_SET_ATTR_ATIME) {
                accessed = attributes.st_atim
            }
            if has(FUSE_SET_ATTR_MTIME_NOW) {
                modified = now
            } else if has(FUSE_SET_ATTR_MTIME) {
                modified = attributes.st_mtim
            }
        }
    }

    func setAttributes(_ request: Request, _ id: fuse_ino_t, _ attributes: stat, _ set: Int32, handle number: UInt64?) {
        let wanted = WantedAttributes(attributes, set)
        request.attempt { () throws(Errno) in
            guard !VersionTree.owns(id) else { throw .readOnly }
            let node = try node(id)
            if let acting = applier.acting(request.thread) { return try applyAttributes(request, node, wanted, acting) }
            let handle = number.flatMap { open.file($0) }
            guard let size = wanted.size else { return changeByProgram(request, node, wanted) }
            if let handle, handle.isWritable {
                // The handle counts as a writer already, and its file is whole.
                return try truncate(request, node, size, wanted, through: handle)
            }
            try requireAccess(request, node, W_OK)
            if let link = node.link, let parent = table.node(link.parent) {
                try checkClaims(request, [(parent, link.name)])
            }
            truncateByName(request, node, size, wanted)
        }
    }

    /// Everything but the size. Answers now, or in a moment if the engine is just acting on the inode.
    private func changeByProgram(_ request: Request, _ node: Node, _ wanted: WantedAttributes) {
        let isBegun = node.beginChange { [self] in
            worker.run { [self] in changeByProgram(request, node, wanted) }
        }
        guard isBegun else { return }
        defer { node.endChange() }
        request.attempt { () throws(Errno) in
            try keepingEvidence(node) { () throws(Errno) in try change(node, wanted) }
            request.reply(attributes: try status(of: node), timeout: Self.forever)
        }
    }

    /// Counts as a writer until it is done, so that the engine stays away. Answers now or later.
    private func truncateByName(_ request: Request, _ node: Node, _ size: Int64, _ wanted: WantedAttributes) {
        let admission = node.beginUse(isWriting: true, discards: size == 0, thread: request.thread) { [self] in
            worker.run { [self] in truncateByName(request, node, size, wanted) }
        }
        switch admission {
        case .waits: return
        case .sentAway: request.fail(.stale)
        case .needsContent:
            // Bounded by the host. Filling goes to the backing file, not through the mount: nobody waits for us but who wants this file.
            // Until then the engine stays away: on its way through the kernel it would wait for the inode, with its folder locked.
            node.beginTruncation()
            withWholeContent(request, node, waitsForAuthor: true, failed: { node.endTruncation() }) { [self] in
                truncateByName(request, node, size, wanted)
                node.endTruncation()
            }
        case .admitted(let facts):
            defer { noteWriterEnded(node, wrote: true) }
            request.attempt { () throws(Errno) in
                if facts.placeholder != nil { try discardContent(of: node) }
                try truncate(request, node, size, wanted, through: nil)
            }
        }
    }

    private func truncate(
        _ request: Request,
        _ node: Node,
        _ size: Int64,
        _ wanted: WantedAttributes,
        through handle: Handle?
    ) throws(Errno) {
        if let handle {
            let file = try file(of: handle)
            try checked(clinux_truncate(file.raw, size))
            handle.hasWritten.store(true, ordering: .relaxed)
        } else {
            let path = try descriptor(of: node)
            let file = try OwnedDescriptor(reopening: path.raw, flags: O_WRONLY)
            try checked(clinux_truncate(file.raw, size))
        }
        try dropPrivileges(request, node)
        var rest = wanted
        rest.size = nil
        try change(node, rest)
        noteWritten(node)
        request.reply(attributes: try status(of: node), timeout: Self.forever)
    }

    /// Everything but the size.
    func change(_ node: Node, _ wanted: WantedAttributes, isReported: Bool = true) throws(Errno) {
        let descriptor = try descriptor(of: node)
        if wanted.hasOwner {
            let none = uid_t.max
            let flags = Int32(CLINUX_AT_EMPTY_PATH) | AT_SYMLINK_NOFOLLOW
            // The disk ends setuid and setgid, whoever does it.
            try called(fchownat(descriptor.raw, "", wanted.user ?? none, wanted.group ?? none, flags))
        }
        if let mode = wanted.mode { try setMode(node, descriptor, mode) }
        if wanted.accessed != nil || wanted.modified != nil {
            let omit = timespec(tv_sec: 0, tv_nsec: Int(CLINUX_UTIME_OMIT))
            var times = [wanted.accessed ?? omit, wanted.modified ?? omit]
            try called(utimensat(descriptor.raw, "", &times, Int32(CLINUX_AT_EMPTY_PATH)))
            if let wished = wanted.modified, node.isDataless {
                // What is just being filled in moves the disk's: only what the time of now is has to be asked of it.
                let isNow = wished.tv_nsec == Int(CLINUX_UTIME_NOW)
                let time = try isNow ? diskStatus(descriptor.raw).st_mtim : wished
                let modified = Timestamp(seconds: Int64(time.tv_sec), nanoseconds: Int64(time.tv_nsec))
                if try !changePlaceholder(node, modified: modified, mode: nil) {
                    // It has become whole meanwhile, and with that got the time that it had.
                    try called(utimensat(descriptor.raw, "", &times, Int32(CLINUX_AT_EMPTY_PATH)))
                }
            }
        }
        let isChanged = wanted.mode != nil || wanted.modified != nil || wanted.hasOwner
        if isReported, isChanged { report(.attributes, node) }
    }

    func setMode(_ node: Node, _ descriptor: SharedDescriptor, _ mode: UInt16) throws(Errno) {
        if node.isDataless, try changePlaceholder(node, modified: nil, mode: mode & 0o777) {
            let status = try diskStatus(descriptor.raw)
            // setuid, setgid and sticky are the inode's own.
            let backing = InodeMode.backing(mode, .file)
            if UInt16(status.st_mode & 0o7777) != backing { try checked(clinux_chmod(descriptor.raw, UInt32(backing))) }
            return
        }
        try InodeMode.set(descriptor.raw, mode, node.kind)
        let isHidden = InodeMode.backing(mode, node.kind) != mode
        node.state.withLock { $0.facts.mode = isHidden ? mode : nil }
    }

    /// setuid and setgid end when somebody without privileges changes content or owner. The kernel leaves this to us
    /// (HANDLE_KILLPRIV_V2); an unprivileged driver's own call does it.
    func dropPrivileges(_ request: Request, _ node: Node) throws(Errno) {
        guard isPrivileged, request.user != 0, node.kind == .file else { return }
        let descriptor = try descriptor(of: node)
        let mode = UInt16(try diskStatus(descriptor.raw).st_mode & 0o7777)
        // setgid without permission to execute for the group means something else (mandatory locks), and stays.
        let kept = mode & (mode & 0o010 != 0 ? ~0o6000 : ~0o4000)
        guard kept != mode else { return }
        try checked(clinux_chmod(descriptor.raw, UInt32(kept)))
        notices.push(.attributes(node: node.id))
    }
}
