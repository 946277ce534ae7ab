import CFuse3
import Glibc
import Replica
import SystemPackage
package import UbiquityModel

/// What an open folder that is unpopulated shows: the disk's entries, and the items that are only in the cloud.
///
/// The kernel keeps listings, and may go on with one in a handle that has not begun it, or after an item has moved from the cloud to
/// the disk. So an entry's offset depends on its name alone: entries come in the order of their names' hashes.
package struct CloudListing {
    struct Entry {
        let offset: Int64
        /// Where the listing goes on after it.
        fileprivate(set) var next: Int64
        let inode: UInt64
        /// As in linux_dirent64.
        let type: UInt8
        let isOnDisk: Bool
        let name: Name
    }

    private(set) var hasBegun = false
    private var entries: [Entry] = []

    /// - Parameter disk: without `.` and `..`.
    mutating func begin(cloud: [CloudEntry], disk: [(inode: UInt64, type: UInt8, name: Name)]) {
        hasBegun = true
        var here = Set<Name>()
        entries.removeAll(keepingCapacity: true)
        entries.reserveCapacity(cloud.count + disk.count)
        for entry in disk {
            if !cloud.isEmpty { here.insert(entry.name) }
            append(entry.inode, entry.type, isOnDisk: true, entry.name)
        }
        for entry in cloud where here.isEmpty || !here.contains(entry.name) {
            // No number of an inode: it has none. Never 0, which programs skip.
            append(entry.id.low | 1 << 63, UInt8(entry.kind.fileType >> 12), isOnDisk: false, entry.name)
        }
        entries.sort { $0.offset == $1.offset ? $0.name < $1.name : $0.offset < $1.offset }
        // Of several with one hash all come again, if they do not fit into one answer.
        for index in entries.indices.dropLast().reversed() where entries[index].offset == entries[index + 1].offset {
            entries[index].next = entries[index].offset - 1
        }
    }

    private mutating func append(_ inode: UInt64, _ type: UInt8, isOnDisk: Bool, _ name: Name) {
        let offset = Self.offset(of: name)
        entries.append(Entry(offset: offset, next: offset, inode: inode, type: type, isOnDisk: isOnDisk, name: name))
    }

    /// What comes after an offset.
    func rest(after offset: Int64) -> ArraySlice<Entry> {
        var (low, high) = (0, entries.count)
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].offset > offset { high = middle } else { low = middle + 1 }
        }
        return entries[low...]
    }

    /// After those of `.` and `..`, below those of `.versions`. (FNV-1a, mixed once more.)
    package static func offset(of name: Name) -> Int64 {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in name.bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        hash ^= hash >> 32
        hash = hash &* 0xd6e8_feb8_6659_fd93
        hash ^= hash >> 32
        return Int64(hash >> 2) + 16
    }
}

extension ItemKind {
    fileprivate var fileType: mode_t {
        switch self {
        case .file: S_IFREG
        case .folder, .package: S_IFDIR
        case .symlink: S_IFLNK
        }
    }
}
