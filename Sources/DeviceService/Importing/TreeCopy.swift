internal import CLinux
internal import Glibc
internal import Replica
internal import SystemPackage
internal import UbiquityControl
internal import UbiquityModel

/// What was copied, and as what it was seen: the source is removed only where it is still that.
struct CopiedItem {
    var name: Name
    var status: clinux_status
    var children: [CopiedItem]
}

/// Copies a file or a whole folder from another filesystem: contents, modes, times, attributes, links, fifos.
enum TreeCopy {
    private static let attempts = 3

    static func copy(
        _ name: Name,
        of folder: borrowing LocalFolder,
        to target: borrowing LocalFolder,
        as new: Name
    ) throws(ControlError) -> CopiedItem {
        guard let status = try folder.status(of: name) else { throw folder.failure(name, ENOENT) }
        switch status.mode & S_IFMT {
        case S_IFREG: return try copyFile(name, of: folder, to: target, as: new)
        case S_IFDIR: return try copyFolder(name, status, of: folder, to: target, as: new)
        case S_IFLNK:
            let link = try folder.linkTarget(name).map { CChar(bitPattern: $0) } + [0]
            let code = new.withCString { symlinkat(link, target.raw, $0) < 0 ? errno : 0 }
            guard code == 0 else { throw target.failure(new, code) }
            try setTimes(new, of: target, status)
        default:
            let code = new.withCString { mknodat(target.raw, $0, mode_t(status.mode), 0) < 0 ? errno : 0 }
            guard code == 0 else {
                throw ControlError("\(folder.path(of: name))", "cannot be copied: \(systemMessage(code))")
            }
        }
        return CopiedItem(name: name, status: status, children: [])
    }

    /// Removes what was copied, where it has not changed meanwhile.
    static func remove(_ item: CopiedItem, of folder: borrowing LocalFolder) throws(ControlError) {
        guard let status = try folder.status(of: item.name) else { return }
        let isFolder = item.status.mode & S_IFMT == S_IFDIR
        guard status.inode == item.status.inode, isFolder || status.isUnchanged(since: item.status) else {
            let path = "\(folder.path(of: item.name))"
            throw ControlError(.tryAgain, path, "it was changed while it was imported", remedy: "run the command again")
        }
        if isFolder {
            let inner = try LocalFolder(opening: item.name, in: folder)
            for child in item.children { try remove(child, of: inner) }
        }
        try folder.remove(item.name, isFolder: isFolder)
    }

    private static func copyFolder(
        _ name: Name,
        _ status: clinux_status,
        of folder: borrowing LocalFolder,
        to target: borrowing LocalFolder,
        as new: Name
    ) throws(ControlError) -> CopiedItem {
        let code = new.withCString { mkdirat(target.raw, $0, 0o700) < 0 ? errno : 0 }
        guard code == 0 else { throw target.failure(new, code) }
        let inner = try LocalFolder(opening: name, in: folder)
        let innerTarget = try LocalFolder(opening: new, in: target)
        var children = [CopiedItem]()
        for entry in try inner.names() { children.append(try copy(entry, of: inner, to: innerTarget, as: entry)) }
        try setAttributes(of: innerTarget.raw, from: inner.raw, status, .folder, path: inner.path)
        return CopiedItem(name: name, status: status, children: children)
    }

    private static func copyFile(
        _ name: Name,
        of folder: borrowing LocalFolder,
        to target: borrowing LocalFolder,
        as new: Name
    ) throws(ControlError) -> CopiedItem {
        let source = try folder.openFile(name)
        defer { close(source) }
        let copy = new.withCString { clinux_open_at(target.raw, $0, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600) }
        guard copy >= 0 else { throw target.failure(new, copy) }
        defer { close(copy) }
        for _ in 0..<attempts {
            let before = try LocalFolder.status(of: source, path: folder.path(of: name))
            try copyBytes(from: source, to: copy, folder.failure(name, EIO), target.path(of: new))
            let after = try LocalFolder.status(of: source, path: folder.path(of: name))
            guard after.isUnchanged(since: before) else { continue }
            try setAttributes(of: copy, from: source, after, .file, path: folder.path(of: name))
            return CopiedItem(name: name, status: after, children: [])
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
        _ readFailure: ControlError,
        _ path: ControlPath
    ) throws(ControlError) {
        var buffer = [UInt8](repeating: 0, count: 1 << 20)
        var offset: Int64 = 0
        while true {
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
        let refused: [[UInt8]]
        do throws(Errno) {
            refused = try ExtendedAttributes.replaceSynced(copy, with: try ExtendedAttributes.synced(source))
            try InodeMode.set(copy, try LocalFolder.trueMode(source, status, kind) & 0o777, kind)
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

    private static func setTimes(
        _ name: Name,
        of folder: borrowing LocalFolder,
        _ status: clinux_status
    ) throws(ControlError) {
        let descriptor = name.withCString { clinux_open_at(folder.raw, $0, Int32(CLINUX_O_PATH) | O_NOFOLLOW, 0) }
        guard descriptor >= 0 else { throw folder.failure(name, descriptor) }
        defer { close(descriptor) }
        let code = clinux_set_modified(descriptor, status.modified_seconds, status.modified_nanoseconds)
        guard code == 0 else { throw folder.failure(name, code) }
    }
}
