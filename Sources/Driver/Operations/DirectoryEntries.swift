import CLinux
import Glibc
import SystemPackage

/// Reads a folder's entries as the kernel gives them (linux_dirent64), and begins again at any entry.
struct DirectoryEntries {
    struct Entry {
        let inode: UInt64
        /// Where the entry after this one begins.
        let next: Int64
        let type: UInt8
        /// Ends with a NUL; valid until the next one is read.
        let name: UnsafePointer<CChar>

        var isSelfOrParent: Bool { strcmp(name, ".") == 0 || strcmp(name, "..") == 0 }
    }

    private static let capacity = 32 * 1024
    private let buffer = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 8)
    private var filled = 0
    private var position = 0
    /// Of the entry at `position`.
    private var offset: Int64 = 0
    /// The descriptor's own position is this; the buffer's end.
    private var descriptorOffset: Int64 = 0

    func deallocate() { buffer.deallocate() }

    /// Goes to an offset that an entry named as `next`, or to 0.
    mutating func seek(_ descriptor: Int32, to wanted: Int64) throws(Errno) {
        guard wanted != offset || wanted == 0 else { return }
        filled = 0
        position = 0
        offset = wanted
        guard lseek(descriptor, off_t(wanted), SEEK_SET) >= 0 else { throw Errno(rawValue: errno) }
    }

    /// The entry here; `advance` goes on to the next one. nil at the end.
    mutating func current(_ descriptor: Int32) throws(Errno) -> Entry? {
        if position >= filled {
            filled = try checked(clinux_getdents(descriptor, buffer, Self.capacity))
            position = 0
            if filled == 0 { return nil }
        }
        let record = buffer + position
        return Entry(
            inode: record.loadUnaligned(as: UInt64.self),
            next: record.loadUnaligned(fromByteOffset: 8, as: Int64.self),
            type: record.load(fromByteOffset: 18, as: UInt8.self),
            name: UnsafePointer((record + 19).assumingMemoryBound(to: CChar.self))
        )
    }

    mutating func advance(past entry: Entry) {
        position += Int((buffer + position).loadUnaligned(fromByteOffset: 16, as: UInt16.self))
        offset = entry.next
    }

    static func isEmpty(_ descriptor: Int32) throws(Errno) -> Bool {
        var entries = DirectoryEntries()
        defer { entries.deallocate() }
        while let entry = try entries.current(descriptor) {
            if !entry.isSelfOrParent { return false }
            entries.advance(past: entry)
        }
        return true
    }
}
