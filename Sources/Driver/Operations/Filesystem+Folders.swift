import CFuse3
import CLinux
import Glibc
import Replica
import Synchronization
import SystemPackage
import UbiquityModel

/// A folder that a program lists.
///
/// Unchecked: `entries` is lent to one request at a time, by `state`.
final class FolderHandle: @unchecked Sendable {
    let node: Node
    /// `O_PATH`.
    private let path: SharedDescriptor
    /// Opened when the kernel first asks for entries: mostly it has them all. A leaf: memory work only.
    private let opened = Mutex<SharedDescriptor?>(nil)
    /// Whether it shows items that are only in the cloud.
    let isUnpopulated: Bool
    private var entries = DirectoryEntries()
    private var cloud = CloudListing()
    /// Whether a request has `entries`. A leaf: memory work only.
    private let isLent = Mutex(false)

    init(node: Node, path: SharedDescriptor, isUnpopulated: Bool = false) {
        self.node = node
        self.path = path
        self.isUnpopulated = isUnpopulated
    }

    /// Open for reading.
    func descriptor(_ filesystem: Filesystem) throws(Errno) -> SharedDescriptor {
        if let known = opened.withLock({ $0 }) { return known }
        let new = try filesystem.makingRoom { () throws(Errno) in try Self.open(path) }
        return opened.withLock { opened in
            if let opened { return opened }
            opened = new
            return new
        }
    }

    /// For reading.
    static func open(_ path: SharedDescriptor) throws(Errno) -> SharedDescriptor {
        let flags = O_RDONLY | O_DIRECTORY
        do throws(Errno) {
            return SharedDescriptor(try checked(clinux_open_at(path.raw, ".", flags, 0)))
        } catch .permissionDenied {
            // That asks for permission to enter it, too. The way through /proc does not, and takes longer.
            return SharedDescriptor(try checked(clinux_reopen(path.raw, flags)))
        }
    }

    /// EAGAIN for a second reader at the same moment; the kernel lets only one in.
    func withEntries<Result>(
        _ body: (inout DirectoryEntries, inout CloudListing) throws(Errno) -> Result
    ) throws(Errno) -> Result {
        let isMine = isLent.withLock { lent in
            defer { lent = true }
            return !lent
        }
        guard isMine else { throw .resourceTemporarilyUnavailable }
        defer { isLent.withLock { $0 = false } }
        return try body(&entries, &cloud)
    }

    deinit { entries.deallocate() }
}

extension Filesystem {
    /// The offset after `.versions`, which comes last in the root. No disk has an entry there.
    private static let endOfRoot: Int64 = .max - 1

    func openFolder(_ request: Request, _ id: fuse_ino_t) {
        if VersionTree.owns(id) { return openVersionFolder(request, id) }
        request.attempt { () throws(Errno) in
            let node = try node(id)
            try requireAccess(request, node, R_OK)
            guard host.isUnpopulated(node.key) else { return try openFolder(request, node, isUnpopulated: false) }
            if host.isListed(node.key) { return try openFolder(request, node, isUnpopulated: true) }
            whenListed(request, node) { [self] () throws(Errno) in
                try openFolder(request, node, isUnpopulated: true)
            }
        }
    }

    private func openFolder(_ request: Request, _ node: Node, isUnpopulated: Bool) throws(Errno) {
        let handle = FolderHandle(node: node, path: try descriptor(of: node), isUnpopulated: isUnpopulated)
        // What changes names goes through the mount, happens where the kernel knows no folder, or is told: it may keep what it has read.
        reply(request, opened: .folder(handle), isKept: node.id != NodeTable.stagingID)
    }

    func reply(_ request: Request, opened object: OpenObject, isKept: Bool = false) {
        var info = fuse_file_info()
        info.cache_readdir = isKept ? 1 : 0
        info.keep_cache = isKept ? 1 : 0
        let number = open.insert(object)
        info.fh = number
        if fuse_reply_open(request.raw, &info) != 0 { _ = open.remove(number) }
    }

    func releaseFolder(_ request: Request, _ number: UInt64) {
        _ = open.remove(number)
        request.succeed()
    }

    /// - Parameter withAttributes: whether each entry is also looked up (READDIRPLUS).
    func list(_ request: Request, _ number: UInt64, _ size: Int, _ offset: Int64, withAttributes: Bool) {
        request.attempt { () throws(Errno) in
            switch open[number] {
            case .versionFolder(let handle): listVersions(request, handle, size, offset, withAttributes: withAttributes)
            case .folder(let handle):
                var listing = Listing(request: request, room: size, withAttributes: withAttributes)
                do throws(Errno) {
                    try fill(&listing, handle, offset)
                } catch  where listing.count > 0 {
                    // What was read is given; the error comes with the next request.
                }
                listing.reply { forget($0, 1) }
            case .file, .version, nil: throw .badFileDescriptor
            }
        }
    }

    private func fill(_ listing: inout Listing, _ handle: FolderHandle, _ offset: Int64) throws(Errno) {
        guard offset != Self.endOfRoot else { return }
        let isRoot = handle.node.id == NodeTable.rootID
        let folder = listing.withAttributes ? try descriptor(of: handle.node) : nil
        let isComplete = try handle.withEntries { entries, cloud throws(Errno) -> Bool in
            if handle.isUnpopulated { return try fill(&listing, handle, folder, &entries, &cloud, offset) }
            let descriptor = try handle.descriptor(self)
            try entries.seek(descriptor.raw, to: offset)
            while let entry = try entries.current(descriptor.raw) {
                let isHidden = isRoot && isVersions(handle.node, entry.name)
                if !isHidden, try !add(entry, to: &listing, handle.node, folder) { return false }
                entries.advance(past: entry)
            }
            return true
        }
        guard isComplete, isRoot, configuration.showVersions else { return }
        var status = stat()
        status.st_ino = ino_t(VersionTree.rootID)
        status.st_mode = FileMode.folder
        Self.versionsName.withUTF8Buffer { name in
            let text = String(decoding: name, as: UTF8.self)
            _ = listing.add(text, status, next: Self.endOfRoot)
        }
    }

    /// Of a folder with items that are only in the cloud. False if there was no room for all.
    private func fill(
        _ listing: inout Listing,
        _ handle: FolderHandle,
        _ folder: SharedDescriptor?,
        _ entries: inout DirectoryEntries,
        _ cloud: inout CloudListing,
        _ offset: Int64
    ) throws(Errno) -> Bool {
        if offset == 0 || !cloud.hasBegun {
            // The cloud's first: what comes from there to the disk meanwhile is in both, and shown once.
            let inCloud = try host.cloudEntries(of: handle.node.key)
            cloud.begin(cloud: inCloud, disk: try diskEntries(handle, &entries))
        }
        for (index, name) in [".", ".."].enumerated() where offset <= index {
            var status = stat()
            status.st_ino = ino_t(handle.node.id)
            status.st_mode = FileMode.folder
            guard listing.add(name, status, next: Int64(index) + 1) else { return false }
        }
        for entry in cloud.rest(after: offset) {
            let isAdded = try entry.name.withCString { name throws(Errno) in
                if entry.isOnDisk {
                    let onDisk = DirectoryEntries.Entry(
                        inode: entry.inode,
                        next: entry.next,
                        type: entry.type,
                        name: name
                    )
                    return try add(onDisk, to: &listing, handle.node, folder)
                }
                var status = stat()
                status.st_ino = ino_t(entry.inode)
                status.st_mode = mode_t(entry.type) << 12
                return listing.add(name, status, next: entry.next)
            }
            guard isAdded else { return false }
        }
        return true
    }

    private func diskEntries(
        _ handle: FolderHandle,
        _ entries: inout DirectoryEntries
    ) throws(Errno) -> [(inode: UInt64, type: UInt8, name: Name)] {
        var result: [(inode: UInt64, type: UInt8, name: Name)] = []
        let descriptor = try handle.descriptor(self)
        try entries.seek(descriptor.raw, to: 0)
        while let entry = try entries.current(descriptor.raw) {
            if !entry.isSelfOrParent, !isVersions(handle.node, entry.name) {
                result.append((entry.inode, entry.type, try name(entry.name)))
            }
            entries.advance(past: entry)
        }
        return result
    }

    /// False if there is no room for it.
    private func add(
        _ entry: DirectoryEntries.Entry,
        to listing: inout Listing,
        _ node: Node,
        _ folder: SharedDescriptor?
    ) throws(Errno) -> Bool {
        var status = stat()
        status.st_ino = ino_t(entry.inode)
        status.st_mode = mode_t(entry.type) << 12
        guard let folder, !entry.isSelfOrParent else { return listing.add(entry.name, status, next: entry.next) }
        guard listing.hasRoom(for: entry.name) else { return false }
        let entered: Entered
        do throws(Errno) {
            entered = try enter(node, folder, name(entry.name), entry.name)
        } catch {
            // It is there, and whoever looks closer is told what is wrong.
            return listing.add(entry.name, status, next: entry.next)
        }
        switch entered {
        case .entry(let param): return listing.add(entry.name, param, next: entry.next)
        // Gone since; the listing just goes on.
        case .absent: return true
        case .reserved: return listing.add(entry.name, status, next: entry.next)
        }
    }
}

/// The answer to one READDIR or READDIRPLUS.
struct Listing {
    let request: Request
    let withAttributes: Bool
    private(set) var count = 0
    private var bytes: [CChar]
    private var entered: [fuse_ino_t] = []

    init(request: Request, room: Int, withAttributes: Bool) {
        self.request = request
        self.withAttributes = withAttributes
        bytes = [CChar](repeating: 0, count: room)
    }

    func hasRoom(for name: UnsafePointer<CChar>) -> Bool {
        var empty = fuse_entry_param()
        // Without a buffer libfuse tells the size.
        return fuse_add_direntry_plus(request.raw, nil, 0, name, &empty, 0) <= bytes.count - count
    }

    /// An entry without a lookup.
    mutating func add(_ name: UnsafePointer<CChar>, _ status: stat, next: Int64) -> Bool {
        guard withAttributes else {
            var status = status
            return take { [request] in fuse_add_direntry(request.raw, $0, $1, name, &status, off_t(next)) }
        }
        var entry = fuse_entry_param()
        entry.attr = status
        return take { [request] in fuse_add_direntry_plus(request.raw, $0, $1, name, &entry, off_t(next)) }
    }

    /// An entry that was counted as a lookup; `hasRoom` was asked before.
    mutating func add(_ name: UnsafePointer<CChar>, _ entry: fuse_entry_param, next: Int64) -> Bool {
        entered.append(entry.ino)
        var entry = entry
        return take { [request] in fuse_add_direntry_plus(request.raw, $0, $1, name, &entry, off_t(next)) }
    }

    private mutating func take(_ encode: (UnsafeMutablePointer<CChar>?, Int) -> Int) -> Bool {
        let room = bytes.count - count
        let needed = bytes.withUnsafeMutableBufferPointer { buffer in
            encode(buffer.baseAddress.map { $0 + count }, room)
        }
        guard needed <= room else { return false }
        count += needed
        return true
    }

    /// - Parameter undo: takes the lookups back if the kernel did not get them.
    func reply(undo: (fuse_ino_t) -> Void) {
        let result = bytes.withUnsafeBufferPointer { fuse_reply_buf(request.raw, $0.baseAddress, count) }
        if result != 0 { for id in entered { undo(id) } }
    }
}
