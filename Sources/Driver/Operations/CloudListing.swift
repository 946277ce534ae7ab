import CFuse3
import Glibc
import Replica
import SystemPackage
import UbiquityModel

/// What one open folder shows of an unpopulated folder: first the items that were only in the cloud when the listing began, then the
/// disk's entries, without those that came from the cloud since then.
///
/// Disks use all of an offset's bits, so offsets here are numbers of entries, and the disk's are remembered.
struct CloudListing {
    private var entries: [CloudEntry] = []
    /// The disk's offset after each of its entries that were given.
    private var diskOffsets: [Int64] = []

    mutating func begin(_ entries: [CloudEntry]) {
        self.entries = entries
        diskOffsets = []
    }

    /// False if there was no room for all.
    func fill(_ listing: inout Listing, from offset: Int64) -> Bool {
        var index = Int(offset)
        while index < entries.count {
            let entry = entries[index]
            var status = stat()
            // No number of an inode: it has none. Never 0, which programs skip.
            status.st_ino = ino_t(entry.id.low | 1 << 63)
            status.st_mode = entry.kind.fileType
            let isAdded = entry.name.withCString { listing.add($0, status, next: Int64(index) + 1) }
            guard isAdded else { return false }
            index += 1
        }
        return true
    }

    /// Which of the disk's entries comes at an offset.
    func place(of offset: Int64) -> Int { max(0, Int(offset) - entries.count) }

    func offset(after place: Int) -> Int64 { Int64(entries.count + place + 1) }

    /// EINVAL for an offset that was never given.
    func diskOffset(_ place: Int) throws(Errno) -> Int64 {
        if place == 0 { return 0 }
        guard place <= diskOffsets.count else { throw .invalidArgument }
        return diskOffsets[place - 1]
    }

    mutating func noteDisk(_ place: Int, _ next: Int64) {
        if place == diskOffsets.count { diskOffsets.append(next) }
    }

    /// Entries are in order of their names.
    func contains(_ name: UnsafePointer<CChar>) -> Bool {
        guard !entries.isEmpty else { return false }
        var (low, high) = (0, entries.count)
        while low < high {
            let middle = (low + high) / 2
            let order = entries[middle].name.withCString { strcmp($0, name) }
            if order == 0 { return true }
            if order < 0 { low = middle + 1 } else { high = middle }
        }
        return false
    }
}

extension ItemKind {
    fileprivate var fileType: mode_t {
        switch self {
        case .file: S_IFREG
        case .folder: S_IFDIR
        case .symlink: S_IFLNK
        }
    }
}
