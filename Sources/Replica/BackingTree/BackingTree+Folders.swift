internal import CLinux
internal import Glibc
package import SystemPackage
package import UbiquityModel

extension BackingTree {
    private static let openFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW

    /// Opens a folder for listing and as a base of other calls. ELOOP for a link on the way, EXDEV for another
    /// filesystem.
    package func openFolder(at path: ItemPath) throws(Errno) -> OwnedDescriptor {
        var rest = path.names[...]
        var folder = try Self.openFolder(beneath: rootDescriptor, &rest)
        while !rest.isEmpty { folder = try Self.openFolder(beneath: folder.raw, &rest) }
        return folder
    }

    /// One call for all that fits into PATH_MAX; deep trees take more.
    private static func openFolder(
        beneath folder: Int32,
        _ rest: inout ArraySlice<Name>
    ) throws(Errno) -> OwnedDescriptor {
        var part = [UInt8(ascii: "."), UInt8(ascii: "/")]
        while let name = rest.first, part.count + 2 + name.bytes.count < 4096 {
            part += name.bytes
            part.append(UInt8(ascii: "/"))
            rest.removeFirst()
        }
        part[part.count - 1] = 0
        let raw = part.withUnsafeBytes { bytes in
            // It is not empty, and a byte is a byte.
            bytes.assumingMemoryBound(to: CChar.self).baseAddress.map { clinux_open_beneath(folder, $0, openFlags) }
                ?? -EINVAL
        }
        return OwnedDescriptor(try checked(raw))
    }

    /// Opens a folder by its inode. ESTALE if the index does not know it, or something else is where it should be.
    package func openFolder(key: InodeKey) throws(Errno) -> OwnedDescriptor {
        // A folder above may be renamed between looking its path up and walking it: look once more.
        for _ in 0..<2 {
            guard let path = folders.path(of: key) else { throw .stale }
            do throws(Errno) {
                let folder = try openFolder(at: path)
                if try InodeKey(descriptor: folder.raw) == key { return folder }
            } catch .noSuchFileOrDirectory, .notDirectory, .tooManySymbolicLinkLevels {
                // Something else is there now.
            }
        }
        throw .stale
    }

    /// The names in a folder, without `.` and `..`, in the disk's order.
    package func names(in directory: Int32) throws(Errno) -> [Name] { try folderNames(directory) }

    /// The same with what each is; `nil` where the filesystem does not say that in passing.
    package func entries(in directory: Int32) throws(Errno) -> [(name: Name, kind: LocalKind?)] {
        try folderEntries(directory)
    }
}

/// The names in a folder, without `.` and `..`, in the disk's order.
func folderNames(_ directory: Int32) throws(Errno) -> [Name] { try folderEntries(directory).map(\.name) }

private func folderEntries(_ directory: Int32) throws(Errno) -> [(name: Name, kind: LocalKind?)] {
    // Its own open file description: it has its own position, and `directory` may be an `O_PATH` descriptor.
    let folder = try OwnedDescriptor(in: directory, ".", flags: O_RDONLY | O_DIRECTORY)
    var entries = [(name: Name, kind: LocalKind?)]()
    let capacity = 64 * 1024
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: capacity, alignment: 8)
    defer { buffer.deallocate() }
    while true {
        let count = try checked(clinux_getdents(folder.raw, buffer.baseAddress, capacity))
        if count == 0 { return entries }
        append(UnsafeRawBufferPointer(rebasing: buffer[..<count]), to: &entries)
    }
}

/// linux_dirent64: inode (8 bytes), offset (8), length of the record (2), type (1), name and NUL.
private func append(_ records: UnsafeRawBufferPointer, to entries: inout [(name: Name, kind: LocalKind?)]) {
    var offset = 0
    while offset + 19 < records.count {
        let length = Int(records.loadUnaligned(fromByteOffset: offset + 16, as: UInt16.self))
        let name = records[(offset + 19)..<(offset + length)].prefix { $0 != 0 }
        // `.` and `..` are no names, and the only ones that the kernel gives which are none (longer than 255 bytes
        // exist on foreign filesystems only, on which the driver can make none either).
        if let name = try? Name(bytes: UnsafeRawBufferPointer(rebasing: name)) {
            let type = UInt32(records[offset + 18])
            // The bits of `st_mode` that say what it is; 0 is DT_UNKNOWN.
            entries.append((name, type == 0 ? nil : LocalKind(mode: type << 12)))
        }
        offset += length
    }
}
