internal import CLinux
internal import Glibc
package import SystemPackage
package import UbiquityModel

/// The container's files on the local disk, at their own paths. Every access is relative to a descriptor, follows no
/// link and leaves neither the tree nor its filesystem.
package final class BackingTree: Sendable {
    private let root: OwnedDescriptor
    package let unsettled: UnsettledFiles
    package let rootKey: InodeKey
    package let folders: FolderIndex

    package init(path: String) throws(Errno) {
        root = OwnedDescriptor(try checked(clinux_open_at(AT_FDCWD, path, Int32(CLINUX_O_PATH) | O_DIRECTORY, 0)))
        // `syncfs` refuses an `O_PATH` descriptor.
        unsettled = UnsettledFiles(filesystem: try OwnedDescriptor(reopening: root.raw, flags: O_RDONLY | O_DIRECTORY))
        rootKey = try InodeKey(descriptor: root.raw)
        folders = FolderIndex(root: rootKey)
    }

    /// `O_PATH | O_DIRECTORY`, as long as this object lives.
    package var rootDescriptor: Int32 { root.raw }

    /// Bytes that are free on the tree's filesystem for this user.
    package func freeBytes() throws(Errno) -> Int64 {
        var status = statvfs()
        try called(fstatvfs(root.raw, &status))
        return Int64(
            clamping: UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize)).partialValue
        )
    }

    /// Bytes that the tree's filesystem has in all.
    package func diskBytes() throws(Errno) -> Int64 {
        var status = statvfs()
        try called(fstatvfs(root.raw, &status))
        return Int64(
            clamping: UInt64(status.f_blocks).multipliedReportingOverflow(by: UInt64(status.f_frsize)).partialValue
        )
    }

    /// What a name stands for, or `nil` if there is no such name. All of it is of one inode, even while names change.
    package func observe(in directory: Int32, _ name: Name) throws(Errno) -> LocalState? {
        let descriptor: Int32
        do throws(Errno) {
            descriptor = try openPath(in: directory, name)
        } catch .noSuchFileOrDirectory {
            return nil
        }
        let item = OwnedDescriptor(descriptor)
        return try observe(descriptor: item.raw)
    }

    package func observe(descriptor: Int32) throws(Errno) -> LocalState { try Self.observe(descriptor: descriptor) }

    package static func observe(descriptor: Int32) throws(Errno) -> LocalState {
        let status = try status(of: descriptor)
        let kind = LocalKind(mode: status.mode)
        var placeholder: Placeholder?
        var mode = UInt16(status.mode & 0o777)
        var mayHaveAttributes = false
        // One call for the inodes that carry nothing of ours, which are most.
        if kind == .file || kind == .folder {
            let names = try ExtendedAttributes.names(descriptor)
            if kind == .file, names.contains(placeholderName) {
                placeholder = try PlaceholderOperations.read(descriptor)
            }
            mayHaveAttributes = names.contains(where: ExtendedAttributes.isSynced)
            if names.contains(modeName) { mode = try InodeMode.get(descriptor, status: status.mode) & 0o777 }
        }
        return LocalState(
            key: try InodeKey(descriptor: descriptor),
            kind: kind,
            size: placeholder?.size ?? status.size,
            modified: placeholder?.modified
                ?? Timestamp(seconds: status.modified_seconds, nanoseconds: status.modified_nanoseconds),
            changed: Timestamp(seconds: status.changed_seconds, nanoseconds: status.changed_nanoseconds),
            mode: placeholder?.mode ?? mode,
            linkCount: status.links,
            placeholder: placeholder,
            mayHaveAttributes: mayHaveAttributes
        )
    }

    private static let placeholderName = Array(ExtendedAttributes.placeholder.utf8)
    private static let modeName = Array(ExtendedAttributes.mode.utf8)

    /// Opens a regular file for reading if the name still stands for that inode: ESTALE otherwise, ENOENT if there is
    /// none. Never waits for a fifo nor wakes a device.
    package func openFile(
        in directory: Int32,
        _ name: Name,
        expecting key: InodeKey,
        flags: Int32 = O_RDONLY
    ) throws(Errno) -> OwnedDescriptor {
        let item = OwnedDescriptor(try openPath(in: directory, name))
        guard LocalKind(mode: try status(of: item.raw).mode) == .file, try InodeKey(descriptor: item.raw) == key else {
            throw .stale
        }
        return try OwnedDescriptor(reopening: item.raw, flags: flags)
    }

    /// Opens a regular file for reading; ESTALE if the name stands for something else. Which inode it is, is for the caller to find out.
    /// Should a fifo take the name at this moment, nobody waits for it.
    package func openRegular(in directory: Int32, _ name: Name) throws(Errno) -> OwnedDescriptor {
        let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK
        return OwnedDescriptor(
            try name.withCString { name throws(Errno) in
                var status = clinux_status()
                try checked(clinux_status_at(directory, name, &status))
                guard LocalKind(mode: status.mode) == .file else { throw .stale }
                do throws(Errno) { return try checked(clinux_open_at(directory, name, flags, 0)) } catch {
                    throw error == .tooManySymbolicLinkLevels ? .stale : error
                }
            }
        )
    }

    /// Synced extended attributes (`user.*` but ours; `user.ubiquity.package` is ordinary), through any descriptor.
    package func extendedAttributes(descriptor: Int32) throws(Errno) -> [[UInt8]: [UInt8]] {
        try ExtendedAttributes.synced(descriptor)
    }

    /// A symbolic link's target.
    package func readLink(in directory: Int32, _ name: Name) throws(Errno) -> [UInt8] {
        try name.withCString { name throws(Errno) in try Self.target(directory, name) }
    }

    /// The target of the link behind an `O_PATH` descriptor.
    package func readLink(descriptor: Int32) throws(Errno) -> [UInt8] { try Self.target(descriptor: descriptor) }

    static func target(descriptor: Int32) throws(Errno) -> [UInt8] { try target(descriptor, "") }

    private static func target(_ directory: Int32, _ name: UnsafePointer<CChar>) throws(Errno) -> [UInt8] {
        var result: Int64 = 0
        // PATH_MAX: Linux makes no longer link.
        let target = [UInt8](unsafeUninitializedCapacity: 4096) { room, count in
            let base = UnsafeMutableRawPointer(room.baseAddress)?.assumingMemoryBound(to: CChar.self)
            result = clinux_readlink_at(directory, name, base, room.count)
            count = max(0, Int(result))
        }
        try checked(result)
        return target
    }

    /// `O_PATH | O_NOFOLLOW` on whatever a name stands for.
    package func openPath(in directory: Int32, _ name: Name) throws(Errno) -> Int32 {
        try name.withCString { name throws(Errno) in
            try checked(clinux_open_at(directory, name, Int32(CLINUX_O_PATH) | O_NOFOLLOW, 0))
        }
    }

    /// Opens whatever a name stands for, for reading; ELOOP for a symbolic link. Never waits for a fifo.
    package func openAny(in directory: Int32, _ name: Name) throws(Errno) -> OwnedDescriptor {
        let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK
        return OwnedDescriptor(
            try name.withCString { name throws(Errno) in try checked(clinux_open_at(directory, name, flags, 0)) }
        )
    }

    /// Everything written to the tree's filesystem so far is durable when this returns (one syncfs).
    package func synchronize() throws(Errno) { try unsettled.synchronize() }
}
