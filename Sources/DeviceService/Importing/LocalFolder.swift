internal import CLinux
internal import Glibc
internal import Replica
internal import SystemPackage
internal import UbiquityControl
internal import UbiquityModel

/// An open folder of the disk during an import. Nothing here follows a link. It is open for as long as something has to be done in it: that
/// may be later than its entries were looked at.
final class LocalFolder {
    let raw: Int32
    let path: ControlPath
    private let isOwned: Bool

    init(opening path: ControlPath) throws(ControlError) {
        let terminated = path.bytes.map { CChar(bitPattern: $0) } + [0]
        let raw = clinux_open_at(AT_FDCWD, terminated, O_RDONLY | O_DIRECTORY, 0)
        guard raw >= 0 else { throw ControlError("\(path)", systemMessage(raw)) }
        self.raw = raw
        self.path = path
        isOwned = true
    }

    init(opening name: Name, in folder: LocalFolder) throws(ControlError) {
        let raw = name.withCString { clinux_open_at(folder.raw, $0, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0) }
        let path = folder.path(of: name)
        guard raw >= 0 else { throw ControlError("\(path)", systemMessage(raw)) }
        self.raw = raw
        self.path = path
        isOwned = true
    }

    /// The descriptor stays the caller's.
    init(borrowing raw: Int32, path: ControlPath) {
        self.raw = raw
        self.path = path
        isOwned = false
    }

    deinit { if isOwned { close(raw) } }

    func path(of name: Name) -> ControlPath { ControlPath(bytes: path.bytes + [UInt8(ascii: "/")] + name.bytes) }

    func failure(_ name: Name, _ code: Int32) -> ControlError { ControlError("\(path(of: name))", systemMessage(code)) }

    /// In the order of their bytes.
    func names() throws(ControlError) -> [Name] {
        let readable = clinux_reopen(raw, O_RDONLY | O_DIRECTORY)
        guard readable >= 0 else { throw ControlError("\(path)", systemMessage(readable)) }
        defer { close(readable) }
        var result = [Name]()
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let length = clinux_getdents(readable, &buffer, buffer.count)
            if length < 0 { throw ControlError("\(path)", systemMessage(Int32(length))) }
            if length == 0 { return result.sorted() }
            var offset = 0
            // linux_dirent64: inode (8), offset (8), length of the record (2), type (1), name, NUL.
            while offset + 19 < Int(length) {
                let record = Int(buffer[offset + 16]) | Int(buffer[offset + 17]) << 8
                // The names of "." and ".." are none, and dropped here.
                let name = buffer.withUnsafeBytes { bytes in
                    let room = bytes[(offset + 19)..<(offset + record)].prefix { $0 != 0 }
                    return try? Name(bytes: UnsafeRawBufferPointer(rebasing: room))
                }
                if let name { result.append(name) }
                offset += record
            }
        }
    }

    static func status(of raw: Int32, path: ControlPath) throws(ControlError) -> clinux_status {
        var status = clinux_status()
        let code = clinux_status_of(raw, &status)
        guard code == 0 else { throw ControlError("\(path)", systemMessage(code)) }
        return status
    }

    func status() throws(ControlError) -> clinux_status { try Self.status(of: raw, path: path) }

    /// `nil` if there is nothing of that name.
    func status(of name: Name) throws(ControlError) -> clinux_status? {
        var status = clinux_status()
        let code = name.withCString { clinux_status_at(raw, $0, &status) }
        if code == -ENOENT { return nil }
        guard code == 0 else { throw failure(name, code) }
        return status
    }

    func isPlaceholder(_ name: Name) throws(ControlError) -> Bool {
        let own = try ownAttributes(of: name)
        return !own.isEmpty && own.contains(Array(ExtendedAttributes.placeholder.utf8))
    }

    /// The names of those attributes that only the backing tree's items have.
    private func ownAttributes(of name: Name) throws(ControlError) -> [[UInt8]] {
        do throws(Errno) {
            let names = try name.withCString { name throws(Errno) in try ExtendedAttributes.names(in: raw, name) }
            // Nearly all have none at all.
            return names.isEmpty ? [] : names.filter { $0.starts(with: Self.ownPrefix) }
        } catch {
            throw ControlError("\(path(of: name))", "\(error)")
        }
    }

    private static let ownPrefix = Array("user.ubiquity..".utf8)

    func linkTarget(_ name: Name) throws(ControlError) -> [UInt8] {
        var buffer = [CChar](repeating: 0, count: 4096)
        let count = name.withCString { clinux_readlink_at(raw, $0, &buffer, buffer.count) }
        guard count >= 0 else { throw failure(name, Int32(count)) }
        return buffer.prefix(Int(count)).map { UInt8(bitPattern: $0) }
    }

    /// What an import has to do to an item for the backing tree.
    enum Shape {
        case fine
        case toBeAdopted
        /// Its content is not here.
        case placeholder
    }

    func shape(of name: Name, _ status: clinux_status) throws(ControlError) -> Shape {
        let kind: LocalKind
        switch status.mode & S_IFMT {
        case S_IFREG: kind = .file
        case S_IFDIR: kind = .folder
        default: return .fine
        }
        let own = try ownAttributes(of: name)
        if !own.isEmpty {
            return own.contains(Array(ExtendedAttributes.placeholder.utf8)) ? .placeholder : .toBeAdopted
        }
        let visible = UInt16(status.mode & 0o7777)
        return InodeMode.backing(visible, kind) == visible ? .fine : .toBeAdopted
    }

    /// Gives an item, and everything in it, the shape that items of the backing tree have: no attributes of ours from elsewhere,
    /// and modes that let the service in.
    /// - Parameter isCopied: it will be copied, not renamed: what can be read and emptied as it is stays as it is.
    func adopt(_ name: Name, _ status: clinux_status, isCopied: Bool) throws(ControlError) {
        let kind: LocalKind
        let needed: UInt16
        switch status.mode & S_IFMT {
        case S_IFREG: (kind, needed) = (.file, 0o400)
        case S_IFDIR: (kind, needed) = (.folder, 0o700)
        default: return
        }
        let isFine = isCopied && (geteuid() == 0 || UInt16(status.mode & 0o777) & needed == needed)
        // What belongs to somebody else stays as it is: `status` will say that it cannot be read.
        if !isFine, status.user == geteuid() || geteuid() == 0 { try adopt(name, status, kind) }
        guard kind == .folder else { return }
        let inner = try LocalFolder(opening: name, in: self)
        for entry in try inner.names() {
            if let status = try inner.status(of: entry) { try inner.adopt(entry, status, isCopied: isCopied) }
        }
    }

    private func adopt(_ name: Name, _ status: clinux_status, _ kind: LocalKind) throws(ControlError) {
        let visible = UInt16(status.mode & 0o7777)
        let own = try ownAttributes(of: name)
        if own.isEmpty, InodeMode.backing(visible, kind) == visible { return }
        try withPath(name) { descriptor throws(ControlError) in
            do throws(Errno) {
                let mode = try Self.trueMode(descriptor, status, kind)
                let backing = InodeMode.backing(mode, kind)
                let stray = own.filter { $0 != Array(ExtendedAttributes.mode.utf8) }
                guard backing != visible || backing != mode || !own.isEmpty else { return }
                // The owner of a 0444 file may not set its attributes: the mode comes first.
                _ = clinux_chmod(descriptor, UInt32(backing))
                for attribute in stray {
                    try ExtendedAttributes.remove(descriptor, attribute.map { CChar(bitPattern: $0) } + [0])
                }
                do throws(Errno) {
                    try InodeMode.set(descriptor, mode, kind)
                } catch .notSupported {
                    // A filesystem that keeps no attributes, from which things are copied: the mode would be lost.
                    _ = clinux_chmod(descriptor, UInt32(visible))
                }
            } catch {
                throw ControlError("\(path(of: name))", "\(error)")
            }
        }
    }

    /// The mode that an item had before an import, perhaps one that was killed, adopted it. An attribute counts only while the mode is
    /// still the one behind which it was hidden.
    static func trueMode(_ descriptor: Int32, _ status: clinux_status, _ kind: LocalKind) throws(Errno) -> UInt16 {
        let visible = UInt16(status.mode & 0o7777)
        let hidden: UInt16
        // Without the permission to read there is none: what we have adopted can be read.
        do throws(Errno) { hidden = try InodeMode.get(descriptor, status: status.mode) } catch .permissionDenied {
            return visible
        }
        return InodeMode.backing(hidden, kind, privileged: false) == visible ? hidden : visible
    }

    /// 0 or -errno. Never replaces anything.
    func rename(_ name: Name, to target: LocalFolder, as new: Name) throws(ControlError) -> Int32 {
        let targetDescriptor = target.raw
        return name.withCString { old in
            new.withCString { clinux_rename_at(raw, old, targetDescriptor, $0, UInt32(CLINUX_RENAME_NOREPLACE)) }
        }
    }

    func remove(_ name: Name, isFolder: Bool) throws(ControlError) {
        let code = name.withCString { unlinkat(raw, $0, isFolder ? AT_REMOVEDIR : 0) < 0 ? errno : 0 }
        if code == ENOTEMPTY || code == EEXIST { throw .changedWhileImported(path(of: name)) }
        guard code == 0 || code == ENOENT else { throw failure(name, code) }
    }

    /// Removes what is still as it was seen, and is not about to be written to.
    func remove(_ name: Name, ifStill seen: clinux_status) throws(ControlError) {
        // First: of who has closed it before, the next look shows what he wrote.
        if seen.mode & S_IFMT == S_IFREG { try refuseWriter(of: name) }
        guard let status = try status(of: name) else { return }
        guard status.isUnchanged(since: seen) else { throw .changedWhileImported(path(of: name)) }
        try remove(name, isFolder: false)
    }

    /// Another user's folder gets no new parent, and is not emptied, by who may not write to it; his file may not be readable.
    /// - Parameter isCopied: and removed then. Else it is renamed.
    func refuseForeign(_ name: Name, _ status: clinux_status, isCopied: Bool) throws(ControlError) {
        guard geteuid() != 0, status.user != geteuid() else { return }
        let needed: Int32
        switch status.mode & S_IFMT {
        case S_IFDIR: needed = R_OK | W_OK | X_OK
        case S_IFREG where isCopied: needed = R_OK
        default: return
        }
        let code = name.withCString { faccessat(raw, $0, needed, 0) < 0 ? errno : 0 }
        guard code != 0 else { return }
        throw ControlError(
            "\(path(of: name))",
            "it belongs to another user and cannot be moved: \(systemMessage(code))",
            remedy: "as root, `chown -R` it to you, or move it elsewhere"
        )
    }

    /// A copy would be no device, or another one.
    func refuseDevice(_ name: Name, _ status: clinux_status) throws(ControlError) {
        guard [S_IFCHR, S_IFBLK].contains(status.mode & S_IFMT) else { return }
        throw ControlError("\(path(of: name))", "a device cannot be copied", remedy: "move it elsewhere")
    }

    /// A program that has a file open for writing, or mapped so, would go on writing to what has no name any more. Call
    /// `clinux_ignore_leases` before.
    func refuseWriter(of name: Name) throws(ControlError) {
        let descriptor = name.withCString { clinux_open_at(raw, $0, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0) }
        // Somebody has a lease that admits nobody else, as file servers take it for who writes.
        if descriptor == -EAGAIN { throw .openForWriting(path(of: name)) }
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        if Self.hasWriter(descriptor) { throw .openForWriting(path(of: name)) }
    }

    /// Of a file that is open here for reading alone. What cannot be told counts as unused: another user's file, or one on a filesystem
    /// without leases.
    static func hasWriter(_ descriptor: Int32) -> Bool { clinux_check_unused(descriptor, 0) == -EAGAIN }

    /// - Parameter goOn: asked between two pieces.
    static func haveEqualContents(
        _ name: Name,
        of folder: LocalFolder,
        _ other: Name,
        of otherFolder: LocalFolder,
        _ goOn: () throws(ControlError) -> Void
    ) throws(ControlError) -> Bool {
        let first = try folder.openFile(name)
        defer { close(first) }
        let second = try otherFolder.openFile(other)
        defer { close(second) }
        var buffers = ([UInt8](repeating: 0, count: 1 << 17), [UInt8](repeating: 0, count: 1 << 17))
        var offset: Int64 = 0
        while true {
            try goOn()
            let count = clinux_pread(first, &buffers.0, buffers.0.count, offset)
            guard count >= 0 else { throw folder.failure(name, Int32(count)) }
            let otherCount = clinux_pread(second, &buffers.1, max(1, Int(count)), offset)
            guard otherCount >= 0 else { throw otherFolder.failure(other, Int32(otherCount)) }
            guard count == otherCount, buffers.0[..<Int(count)] == buffers.1[..<Int(count)] else { return false }
            if count == 0 { return true }
            offset += count
        }
    }

    /// For reading; does not hang on what has become a fifo.
    func openFile(_ name: Name) throws(ControlError) -> Int32 {
        let descriptor = name.withCString { clinux_open_at(raw, $0, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0) }
        guard descriptor >= 0 else { throw failure(name, descriptor) }
        return descriptor
    }

    private func withPath<Value>(
        _ name: Name,
        _ body: (Int32) throws(ControlError) -> Value
    ) throws(ControlError) -> Value {
        let descriptor = name.withCString { clinux_open_at(raw, $0, Int32(CLINUX_O_PATH) | O_NOFOLLOW, 0) }
        guard descriptor >= 0 else { throw failure(name, descriptor) }
        defer { close(descriptor) }
        return try body(descriptor)
    }
}

extension ControlError {
    static func changedWhileImported(_ path: ControlPath) -> ControlError {
        ControlError(
            .tryAgain,
            "\(path)",
            "it was changed while it was imported",
            remedy: "run the command again"
        )
    }

    static func openForWriting(_ path: ControlPath) -> ControlError {
        ControlError(
            .tryAgain,
            "\(path)",
            "a program has it open for writing",
            remedy: "close it, and run the command again"
        )
    }
}

extension clinux_status {
    func isSameInode(as other: clinux_status) -> Bool { (device, inode) == (other.device, other.inode) }

    /// Whether it is the same inode, and nobody has written to it or changed its attributes.
    func isUnchanged(since seen: clinux_status) -> Bool {
        (device, inode, size) == (seen.device, seen.inode, seen.size)
            && (modified_seconds, modified_nanoseconds) == (seen.modified_seconds, seen.modified_nanoseconds)
            && (changed_seconds, changed_nanoseconds) == (seen.changed_seconds, seen.changed_nanoseconds)
    }
}
