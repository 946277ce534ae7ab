import CFuse3
import CLinux
import Glibc
import Replica
import Synchronization
import SystemPackage
import UbiquityModel

extension Filesystem {
    /// An `O_PATH` descriptor of a node's inode: a cached one, or opened anew by where the node was last seen.
    func descriptor(of node: Node) throws(Errno) -> SharedDescriptor {
        if let known = knownDescriptor(of: node) { return known }
        do throws(Errno) {
            return try reopen(node, isExclusive: false)
        } catch .stale, .noSuchFileOrDirectory, .notDirectory {
            // Perhaps it, or a folder above it, is just being renamed: once more, while nothing is.
            return try names.exclusive { () throws(Errno) in
                do throws(Errno) { return try reopen(node, isExclusive: true) } catch { throw .stale }
            }
        }
    }

    /// One that is open already; without any system call.
    func knownDescriptor(of node: Node) -> SharedDescriptor? {
        switch node.id {
        case NodeTable.rootID: rootDescriptor
        case NodeTable.stagingID: stagingDescriptor
        default: node.state.withLock { $0.pinned } ?? descriptors.descriptor(of: node.id)
        }
    }

    /// - Parameter isExclusive: whether the lock of names is held exclusively already.
    private func reopen(_ node: Node, isExclusive: Bool) throws(Errno) -> SharedDescriptor {
        if isExclusive, let known = knownDescriptor(of: node) { return known }
        guard let link = node.link else { throw .stale }
        let folder = try folderDescriptor(link.parent, isExclusive: isExclusive)
        let opened = try openPath(in: folder, link.name)
        guard try InodeKey(descriptor: opened.raw) == node.key else { throw .stale }
        return descriptors.insert(opened, for: node.id)
    }

    /// A descriptor of a folder by its inode, whether the kernel knows it or not. `O_PATH`, or at least good for `*at` calls.
    func folderDescriptor(_ key: InodeKey, isExclusive: Bool = false) throws(Errno) -> SharedDescriptor {
        if let node = table.node(key) {
            if let known = knownDescriptor(of: node) { return known }
            return isExclusive ? try reopen(node, isExclusive: true) : try descriptor(of: node)
        }
        return SharedDescriptor(try replica.tree.openFolder(key: key).release())
    }

    func openPath(in folder: SharedDescriptor, _ name: Name) throws(Errno) -> SharedDescriptor {
        try name.withCString { name throws(Errno) in try openPath(in: folder, name) }
    }

    func openPath(in folder: SharedDescriptor, _ name: UnsafePointer<CChar>) throws(Errno) -> SharedDescriptor {
        try makingRoom { () throws(Errno) in
            SharedDescriptor(try checked(clinux_open_at(folder.raw, name, Int32(CLINUX_O_PATH) | O_NOFOLLOW, 0)))
        }
    }

    /// Tries again, with half of the cached descriptors given up, when the process has none left.
    func makingRoom<Result>(_ body: () throws(Errno) -> Result) throws(Errno) -> Result {
        do throws(Errno) {
            return try body()
        } catch .descriptorsExhausted {
            descriptors.shrink()
            return try body()
        }
    }

    /// What is at a name, read so that the table may believe it; nil if nothing is.
    func observe(in folder: SharedDescriptor, _ name: UnsafePointer<CChar>) throws(Errno) -> Observation? {
        do throws(Errno) {
            return try Observation(in: folder.raw, name)
        } catch .noSuchFileOrDirectory {
            return nil
        }
    }

    /// The same without what our attributes say.
    func sight(in folder: SharedDescriptor, _ name: UnsafePointer<CChar>) throws(Errno) -> Sighting? {
        do throws(Errno) {
            let key = try InodeKey(in: folder.raw, name: name)
            if let known = table.node(key).flatMap({ Sighting($0) }) { return known }
            var status = stat()
            try called(fstatat(folder.raw, name, &status, AT_SYMLINK_NOFOLLOW))
            return Sighting(key, status)
        } catch .noSuchFileOrDirectory {
            return nil
        }
    }

    /// The path of a folder or file; nil if it has none, or one outside the tree (the staging folder).
    func path(of key: InodeKey) -> ItemPath? {
        if key == table.root.key { return .root }
        if let path = replica.folders.path(of: key) { return path }
        guard let link = table.node(key)?.link, link.parent != table.staging.key else { return nil }
        return replica.folders.path(of: link.parent)?.appending(link.name)
    }

    func path(of node: Node) -> ItemPath? {
        if node.id == NodeTable.rootID { return .root }
        return node.link.flatMap { replica.folders.path(of: $0.parent)?.appending($0.name) }
    }

    /// The kernel, or the engine, has no more use for a node.
    func dropped(_ node: Node?) {
        guard let node else { return }
        descriptors.remove(node.id)
        unbind(node)
        let pinned: SharedDescriptor? = node.state.withLock { state in
            // A handle that a mapping had kept is still to be looked at, and what was written by it may have no name.
            guard state.direct == 0 else { return nil }
            defer { state.pinned = nil }
            return state.pinned
        }
        withExtendedLifetime(pinned) {}
    }
}
