import CFuse3
import Glibc
import Synchronization
import SystemPackage

/// libfuse's table of C functions. Each only finds the file system and passes the request on.
///
/// getlk, setlk and flock are left out on purpose: the kernel's own locks are right. Files without a name (O_TMPFILE), which this
/// libfuse does not know, come as files to be created whose name is "/" (`clinux_fuse_name_unnamed`).
func operationTable() -> fuse_lowlevel_ops {
    var table = fuse_lowlevel_ops()
    addFolderOperations(&table)
    addEntryOperations(&table)
    addFileOperations(&table)
    addAttributeOperations(&table)
    table.`init` = { context, connection in
        guard let context, let connection else { return }
        configure(&connection.pointee, isShared: filesystem(context).configuration.letsOthersIn)
        filesystem(context).isInitialized.store(true, ordering: .releasing)
    }
    return table
}

/// The context is `Session`'s, retained for as long as the session lives.
private func filesystem(_ context: UnsafeMutableRawPointer) -> Filesystem {
    Unmanaged<Filesystem>.fromOpaque(context).takeUnretainedValue()
}

/// Every request has a session, and every session its context.
private func with(_ raw: fuse_req_t?, _ body: (Filesystem, Request) -> Void) {
    guard let raw, let context = fuse_req_userdata(raw) else { return }
    body(filesystem(context), Request(raw))
}

/// Names always come with their request; libfuse would have to be broken to pass none.
private func with(
    _ raw: fuse_req_t?,
    _ name: UnsafePointer<CChar>?,
    _ body: (Filesystem, Request, UnsafePointer<CChar>) -> Void
) {
    with(raw) { filesystem, request in
        guard let name else { return request.fail(.invalidArgument) }
        body(filesystem, request, name)
    }
}

/// Requests that a mount refuses once it is closed to programs: ways in, not what goes through open handles.
private func entering(_ raw: fuse_req_t?, _ body: (Filesystem, Request) -> Void) {
    with(raw) { filesystem, request in
        guard filesystem.admits(request) else { return request.fail(.permissionDenied) }
        body(filesystem, request)
    }
}

private func entering(
    _ raw: fuse_req_t?,
    _ name: UnsafePointer<CChar>?,
    _ body: (Filesystem, Request, UnsafePointer<CChar>) -> Void
) {
    with(raw, name) { filesystem, request, name in
        guard filesystem.admits(request) else { return request.fail(.permissionDenied) }
        body(filesystem, request, name)
    }
}

/// Requests that change something.
private func changing(_ raw: fuse_req_t?, _ body: (Filesystem, Request) -> Void) {
    with(raw) { filesystem, request in
        guard filesystem.mayChange(request) else { return request.fail(.readOnly) }
        body(filesystem, request)
    }
}

/// The same of names in folders, or of attributes.
private func changing(
    _ raw: fuse_req_t?,
    _ name: UnsafePointer<CChar>?,
    _ body: (Filesystem, Request, UnsafePointer<CChar>) -> Void
) {
    with(raw, name) { filesystem, request, name in
        guard filesystem.mayChange(request) else { return request.fail(.readOnly) }
        body(filesystem, request, name)
    }
}

/// Ways in that change something.
private func enteringToChange(
    _ raw: fuse_req_t?,
    _ name: UnsafePointer<CChar>?,
    _ body: (Filesystem, Request, UnsafePointer<CChar>) -> Void
) {
    entering(raw, name) { filesystem, request, name in
        guard filesystem.mayChange(request) else { return request.fail(.readOnly) }
        body(filesystem, request, name)
    }
}

/// What we ask of the kernel, only as far as it offers it (libfuse would end the session otherwise). What libfuse does not know is added
/// in `Session`.
private func configure(_ connection: inout fuse_conn_info, isShared: Bool) {
    // Of 32 bits, or of 64 in newer versions of libfuse; these are among the first.
    func want(_ capability: some BinaryInteger) {
        connection.want |= connection.capable & UInt32(truncatingIfNeeded: capability)
    }
    func drop(_ capability: some BinaryInteger) { connection.want &= ~UInt32(truncatingIfNeeded: capability) }
    want(FUSE_CAP_ASYNC_READ)
    want(FUSE_CAP_ATOMIC_O_TRUNC)
    want(FUSE_CAP_ASYNC_DIO)
    // For `Request.reply(file:_:)`.
    want(FUSE_CAP_SPLICE_WRITE)
    want(FUSE_CAP_READDIRPLUS)
    want(FUSE_CAP_READDIRPLUS_AUTO)
    want(FUSE_CAP_CACHE_SYMLINKS)
    // A folder's default ACL takes the place of the umask: the disk decides.
    want(FUSE_CAP_DONT_MASK)
    // Where others are let in, the kernel checks permissions, by ACLs too.
    if isShared { want(FUSE_CAP_POSIX_ACL) }
    // All changes come through the kernel or are invalidated by us.
    drop(FUSE_CAP_AUTO_INVAL_DATA)
    // Its second version is asked for instead.
    drop(FUSE_CAP_HANDLE_KILLPRIV)
    // The default of 12 would let 12 waiting page faults stop all read-ahead.
    connection.max_background = 4096
    connection.congestion_threshold = 3072
    connection.time_gran = 1
}

private func addFolderOperations(_ table: inout fuse_lowlevel_ops) {
    table.lookup = { raw, parent, name in entering(raw, name) { $0.lookup($1, parent, $2) } }
    table.forget = { raw, id, count in
        with(raw) { filesystem, request in
            filesystem.forget(id, count)
            fuse_reply_none(request.raw)
        }
    }
    table.forget_multi = { raw, count, forgets in
        with(raw) { filesystem, request in
            for forget in UnsafeBufferPointer(start: forgets, count: count) {
                filesystem.forget(forget.ino, forget.nlookup)
            }
            fuse_reply_none(request.raw)
        }
    }
    table.opendir = { raw, id, _ in entering(raw) { $0.openFolder($1, id) } }
    table.readdir = { raw, _, size, offset, info in
        entering(raw) { $0.list($1, info?.pointee.fh ?? 0, size, Int64(offset), withAttributes: false) }
    }
    table.readdirplus = { raw, _, size, offset, info in
        entering(raw) { $0.list($1, info?.pointee.fh ?? 0, size, Int64(offset), withAttributes: true) }
    }
    table.releasedir = { raw, _, info in with(raw) { $0.releaseFolder($1, info?.pointee.fh ?? 0) } }
    table.fsyncdir = { raw, _, dataOnly, info in
        with(raw) { $0.synchronize($1, info?.pointee.fh ?? 0, dataOnly: dataOnly != 0) }
    }
}

private func addEntryOperations(_ table: inout fuse_lowlevel_ops) {
    table.mknod = { raw, parent, name, mode, device in
        enteringToChange(raw, name) { $0.makeNode($1, parent, $2, mode, device) }
    }
    table.mkdir = { raw, parent, name, mode in enteringToChange(raw, name) { $0.makeFolder($1, parent, $2, mode) } }
    table.symlink = { raw, target, parent, name in
        enteringToChange(raw, name) { filesystem, request, name in
            guard let target else { return request.fail(.invalidArgument) }
            filesystem.makeLink(request, target, parent, name)
        }
    }
    table.link = { raw, id, parent, name in enteringToChange(raw, name) { $0.hardLink($1, id, parent, $2) } }
    table.unlink = { raw, parent, name in enteringToChange(raw, name) { $0.unlink($1, parent, $2) } }
    table.rmdir = { raw, parent, name in enteringToChange(raw, name) { $0.removeFolder($1, parent, $2) } }
    table.rename = { raw, parent, name, newParent, newName, flags in
        enteringToChange(raw, name) { filesystem, request, name in
            guard let newName else { return request.fail(.invalidArgument) }
            filesystem.rename(request, parent, name, newParent, newName, flags)
        }
    }
    table.create = { raw, parent, name, mode, info in
        enteringToChange(raw, name) { filesystem, request, name in
            let flags = info?.pointee.flags ?? 0
            if strcmp(name, "/") == 0 { return filesystem.createUnnamed(request, parent, mode, flags) }
            filesystem.create(request, parent, name, mode, flags)
        }
    }
}

private func addFileOperations(_ table: inout fuse_lowlevel_ops) {
    table.open = { raw, id, info in
        let flags = info?.pointee.flags ?? 0
        entering(raw) { filesystem, request in
            let changes = flags & O_ACCMODE != O_RDONLY || flags & O_TRUNC != 0
            guard !changes || filesystem.mayChange(request) else { return request.fail(.readOnly) }
            filesystem.open(request, id, flags)
        }
    }
    table.read = { raw, _, size, offset, info in
        with(raw) { $0.read($1, info?.pointee.fh ?? 0, size, Int64(offset), info?.pointee.flags ?? 0) }
    }
    table.write = { raw, _, bytes, size, offset, info in
        with(raw) {
            $0.write($1, info?.pointee.fh ?? 0, UnsafeRawBufferPointer(start: bytes, count: size), Int64(offset))
        }
    }
    table.flush = { raw, _, info in with(raw) { $0.flush($1, info?.pointee.fh ?? 0) } }
    table.release = { raw, _, info in with(raw) { $0.release($1, info?.pointee.fh ?? 0) } }
    table.fsync = { raw, _, dataOnly, info in
        with(raw) { $0.synchronize($1, info?.pointee.fh ?? 0, dataOnly: dataOnly != 0) }
    }
    table.fallocate = { raw, _, mode, offset, length, info in
        with(raw) { $0.allocate($1, info?.pointee.fh ?? 0, mode, Int64(offset), Int64(length)) }
    }
    table.lseek = { raw, _, offset, whence, info in
        with(raw) { $0.seek($1, info?.pointee.fh ?? 0, Int64(offset), whence) }
    }
    table.copy_file_range = { raw, _, fromOffset, from, _, toOffset, to, length, _ in
        with(raw) {
            $0.copyRange(
                $1,
                from?.pointee.fh ?? 0,
                Int64(fromOffset),
                to?.pointee.fh ?? 0,
                Int64(toOffset),
                length
            )
        }
    }
}

private func addAttributeOperations(_ table: inout fuse_lowlevel_ops) {
    table.getattr = { raw, id, _ in with(raw) { $0.getAttributes($1, id) } }
    table.setattr = { raw, id, attributes, set, info in
        changing(raw) { filesystem, request in
            guard let attributes else { return request.fail(.invalidArgument) }
            filesystem.setAttributes(request, id, attributes.pointee, set, handle: info?.pointee.fh)
        }
    }
    table.readlink = { raw, id in with(raw) { $0.readLink($1, id) } }
    table.access = { raw, id, wanted in
        entering(raw) { filesystem, request in
            guard wanted & W_OK == 0 || filesystem.mayChange(request) else { return request.fail(.readOnly) }
            filesystem.access(request, id, wanted)
        }
    }
    table.statfs = { raw, _ in with(raw) { $0.statistics($1) } }
    table.getxattr = { raw, id, name, room in with(raw, name) { $0.getAttribute($1, id, $2, room) } }
    table.listxattr = { raw, id, room in with(raw) { $0.listAttributes($1, id, room) } }
    table.setxattr = { raw, id, name, value, size, flags in
        with(raw, name) { filesystem, request, name in
            // What is asked of the engine changes nothing for others.
            guard Filesystem.isControl(name) || filesystem.mayChange(request) else { return request.fail(.readOnly) }
            filesystem.setAttribute(request, id, name, UnsafeRawBufferPointer(start: value, count: size), flags)
        }
    }
    table.removexattr = { raw, id, name in changing(raw, name) { $0.removeAttribute($1, id, $2) } }
}
