internal import CLinux
internal import Glibc
internal import Replica
internal import SystemPackage
internal import UbiquityControl
internal import UbiquityModel

/// Copies an item from another filesystem: contents, modes, times, attributes, links, fifos.
enum ItemCopy {
    private static let attempts = 3

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
            try setTimes(new, of: target, status)
        default:
            let code = new.withCString { mknodat(target.raw, $0, mode_t(status.mode), 0) < 0 ? errno : 0 }
            guard code == 0 else {
                throw ControlError("\(folder.path(of: name))", "cannot be copied: \(systemMessage(code))")
            }
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
