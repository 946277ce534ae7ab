internal import CLinux
internal import Glibc
internal import Replica
internal import SystemPackage
internal import UbiquityControl
internal import UbiquityModel

/// Copies an item from another filesystem: contents, owners, modes, times, attributes, links, fifos.
enum ItemCopy {
    private static let attempts = 3
    /// Attributes that say who may do what with an item, and what it may do.
    private static let rights = ["system.posix_acl_access", "system.posix_acl_default", "security.capability"]

    /// Of anything but a folder.
    /// - Parameter goOn: asked again and again, also within a file.
    /// - Returns: as what it was seen: the source is removed only where it is still that.
    static func copy(
        _ name: Name,
        of folder: LocalFolder,
        to target: LocalFolder,
        as new: Name,
        _ goOn: () throws(ControlError) -> Void
    ) throws(ControlError) -> clinux_status {
        guard let status = try folder.status(of: name) else { throw folder.failure(name, ENOENT) }
        switch status.mode & S_IFMT {
        case S_IFREG: return try copyFile(name, of: folder, to: target, as: new, goOn)
        case S_IFLNK:
            let link = try folder.linkTarget(name).map { CChar(bitPattern: $0) } + [0]
            let code = new.withCString { symlinkat(link, target.raw, $0) < 0 ? errno : 0 }
            guard code == 0 else { throw target.failure(new, code) }
            setOwner(new, of: target, status)
            try setTimes(new, of: target, status)
        default:
            // It may have become one since the look at everything.
            try folder.refuseDevice(name, status)
            let code = new.withCString { new in
                // The umask counts for the first of the two only.
                mknodat(target.raw, new, mode_t(status.mode), 0) < 0
                    || fchmodat(target.raw, new, mode_t(status.mode & 0o7777), 0) < 0 ? errno : 0
            }
            guard code == 0 else {
                throw ControlError("\(folder.path(of: name))", "cannot be copied: \(systemMessage(code))")
            }
            setOwner(new, of: target, status)
        }
        return status
    }

    /// A folder like another one, without what is in it.
    static func makeFolder(
        like source: LocalFolder,
        _ status: clinux_status,
        in target: LocalFolder,
        as new: Name
    ) throws(ControlError) {
        let code = new.withCString { mkdirat(target.raw, $0, 0o700) < 0 ? errno : 0 }
        guard code == 0 else { throw target.failure(new, code) }
        let made = try LocalFolder(opening: new, in: target)
        try setAttributes(of: made.raw, from: source.raw, status, .folder, path: source.path)
    }

    /// For a folder whose entries have moved its times.
    static func setTimes(of folder: LocalFolder, _ status: clinux_status) throws(ControlError) {
        let code = clinux_set_modified(folder.raw, status.modified_seconds, status.modified_nanoseconds)
        guard code == 0 else { throw ControlError("\(folder.path)", systemMessage(code)) }
    }

    private static func copyFile(
        _ name: Name,
        of folder: LocalFolder,
        to target: LocalFolder,
        as new: Name,
        _ goOn: () throws(ControlError) -> Void
    ) throws(ControlError) -> clinux_status {
        let source = try folder.openFile(name)
        defer { close(source) }
        if LocalFolder.hasWriter(source) { throw .openForWriting(folder.path(of: name)) }
        let copy = new.withCString { clinux_open_at(target.raw, $0, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600) }
        guard copy >= 0 else { throw target.failure(new, copy) }
        defer { close(copy) }
        for _ in 0..<attempts {
            let before = try LocalFolder.status(of: source, path: folder.path(of: name))
            try copyBytes(from: source, to: copy, before.size, folder.failure(name, EIO), target.path(of: new), goOn)
            let after = try LocalFolder.status(of: source, path: folder.path(of: name))
            guard after.isUnchanged(since: before) else { continue }
            try setAttributes(of: copy, from: source, after, .file, path: folder.path(of: name))
            return after
        }
        throw ControlError(
            .tryAgain,
            "\(folder.path(of: name))",
            "a program keeps changing it",
            remedy: "close it, and run the command again"
        )
    }

    private static func copyBytes(
        from source: Int32,
        to copy: Int32,
        _ sizeBytes: Int64,
        _ readFailure: ControlError,
        _ path: ControlPath,
        _ goOn: () throws(ControlError) -> Void
    ) throws(ControlError) {
        // Most files are small, and clearing a buffer for a large one takes longer than copying them.
        var buffer = [UInt8](repeating: 0, count: Int(min(max(sizeBytes + 1, 1 << 12), 1 << 20)))
        var offset: Int64 = 0
        while true {
            try goOn()
            let count = clinux_pread(source, &buffer, buffer.count, offset)
            guard count >= 0 else { throw readFailure }
            if count == 0 { break }
            let status = buffer.withUnsafeBytes { clinux_pwrite_all(copy, $0.baseAddress, Int(count), offset) }
            guard status >= 0 else { throw ControlError("\(path)", systemMessage(status)) }
            offset += count
        }
        let status = clinux_truncate(copy, offset)
        guard status >= 0 else { throw ControlError("\(path)", systemMessage(status)) }
    }

    /// - Parameter path: the source's. What this disk has no room for stays where it is, with its file.
    private static func setAttributes(
        of copy: Int32,
        from source: Int32,
        _ status: clinux_status,
        _ kind: LocalKind,
        path: ControlPath
    ) throws(ControlError) {
        var refused: [[UInt8]]
        // First: it ends setuid, setgid and capabilities. Only root gives files to others, and what would make a program act for its owner
        // is not for another owner.
        let isOwned = fchown(copy, status.user, status.group) == 0
        do throws(Errno) {
            refused = try ExtendedAttributes.replaceSynced(copy, with: try ExtendedAttributes.synced(source))
            // Before the mode, which may be another one on this disk than an access list says.
            refused += try copyRights(from: source, to: copy)
            let mode = try LocalFolder.trueMode(source, status, kind)
            try InodeMode.set(copy, isOwned ? mode : mode & 0o777, kind)
        } catch {
            throw ControlError("\(path)", "\(error)")
        }
        if let first = refused.first {
            let others = refused.count > 1 ? " and \(refused.count - 1) more" : ""
            throw ControlError(
                "\(path)",
                "its extended attribute \(String(decoding: first, as: UTF8.self))\(others) cannot be kept on the container's disk",
                remedy: "remove the attribute, or move the file elsewhere"
            )
        }
        let code = clinux_set_modified(copy, status.modified_seconds, status.modified_nanoseconds)
        guard code == 0 else { throw ControlError("\(path)", systemMessage(code)) }
    }

    /// - Returns: those that cannot be kept.
    private static func copyRights(from source: Int32, to copy: Int32) throws(Errno) -> [[UInt8]] {
        var refused = [[UInt8]]()
        for name in rights {
            guard let value = try ExtendedAttributes.get(source, name) else { continue }
            do throws(Errno) { try ExtendedAttributes.set(copy, name, value) } catch {
                // As setuid of another owner: what only root may give, the copy goes without.
                if name == "security.capability", error == .notPermitted { continue }
                refused.append(Array(name.utf8))
            }
        }
        return refused
    }

    /// Of what has no content. Whoever may not give it away keeps it.
    private static func setOwner(_ name: Name, of folder: LocalFolder, _ status: clinux_status) {
        _ = name.withCString { fchownat(folder.raw, $0, status.user, status.group, AT_SYMLINK_NOFOLLOW) }
    }

    private static func setTimes(
        _ name: Name,
        of folder: LocalFolder,
        _ status: clinux_status
    ) throws(ControlError) {
        let descriptor = name.withCString { clinux_open_at(folder.raw, $0, Int32(CLINUX_O_PATH) | O_NOFOLLOW, 0) }
        guard descriptor >= 0 else { throw folder.failure(name, descriptor) }
        defer { close(descriptor) }
        let code = clinux_set_modified(descriptor, status.modified_seconds, status.modified_nanoseconds)
        guard code == 0 else { throw folder.failure(name, code) }
    }
}
