import CFuse3
import CLinux
import Glibc
import Replica
import SystemPackage
import UbiquityModel

extension Filesystem {
    func lookup(_ request: Request, _ parent: fuse_ino_t, _ name: UnsafePointer<CChar>) {
        if VersionTree.owns(parent) { return lookupVersion(request, parent, name) }
        request.attempt { () throws(Errno) in
            let folder = try node(parent)
            if isVersions(folder, name) { return replyVersionsRoot(request) }
            let isEngine = applier.acting(request.thread) != nil
            if folder.id == NodeTable.stagingID, !isEngine { throw .noSuchFileOrDirectory }
            if folder.id == NodeTable.rootID, isEngine, strcmp(name, stagingName) == 0 {
                return try replyStaging(request)
            }
            try requireAccess(request, folder, X_OK)
            try lookup(request, folder, name)
        }
    }

    /// In a folder that is not all here; the engine itself is told what is here.
    private func lookupInCloud(_ request: Request, _ folder: Node, _ name: Name) throws(Errno) {
        guard applier.acting(request.thread) == nil else { throw .noSuchFileOrDirectory }
        guard host.isListed(folder.key) else {
            return whenListed(request, folder) { [self] () throws(Errno) in try lookupInCloud(request, folder, name) }
        }
        if try host.populate(folder.key, name) { foldedNames?.came(name, in: folder.key) }
        try name.withCString { text throws(Errno) in try lookup(request, folder, text, asksCloud: false) }
    }

    /// Goes on when what lies in a folder is known, which the request waits for as a read waits for content.
    func whenListed(_ request: Request, _ folder: Node, _ body: @escaping @Sendable () throws(Errno) -> Void) {
        deferrals.wait(
            request,
            begin: { completion in
                host.listingWaits(folder: folder.key) { error in
                    completion(error.map { .failure($0) } ?? .success(()))
                }
            },
            nothing: (),
            resume: { result in
                request.attempt { () throws(Errno) in
                    try result.get()
                    try body()
                }
            }
        )
    }

    private func lookup(
        _ request: Request,
        _ folder: Node,
        _ name: UnsafePointer<CChar>,
        asksCloud: Bool = true
    ) throws(Errno) {
        let descriptor = try descriptor(of: folder)
        let itemName = try self.name(name)
        switch try enter(folder, descriptor, itemName, name) {
        case .entry(var entry):
            reply(request, &entry)
        case .absent:
            if asksCloud, folder.id != NodeTable.stagingID, host.isUnpopulated(folder.key) {
                return try lookupInCloud(request, folder, itemName)
            }
            var entry = fuse_entry_param()
            // Node 0: the kernel remembers that there is no such name. In the staging folder there soon is.
            guard folder.id != NodeTable.stagingID else { throw .noSuchFileOrDirectory }
            entry.entry_timeout = Self.forever
            fuse_reply_entry(request.raw, &entry)
        case .reserved(let key):
            let again: @Sendable () -> Void = { [self] in
                request.attempt { () throws(Errno) in
                    try itemName.withCString { name throws(Errno) in try lookup(request, folder, name) }
                }
            }
            if !table.whenUnreserved(key, { [worker] in worker.run(again) }) { worker.run(again) }
        }
    }

    enum Entered {
        /// Counted as a lookup: `reply` it, or `forget` it.
        case entry(fuse_entry_param)
        case absent
        /// The engine is working in that folder.
        case reserved(InodeKey)
    }

    /// Looks at a name and gives its inode to the kernel.
    func enter(
        _ folder: Node,
        _ descriptor: SharedDescriptor,
        _ itemName: Name,
        _ name: UnsafePointer<CChar>
    ) throws(Errno) -> Entered {
        try enter(folder, itemName) { () throws(Errno) in try observe(in: descriptor, name) }
    }

    /// - Parameter look: how the inode is at this moment; nil if nothing is there.
    func enter(
        _ folder: Node,
        _ itemName: Name,
        _ look: () throws(Errno) -> Observation?
    ) throws(Errno) -> Entered {
        while true {
            let epoch = table.epoch
            guard let seen = try look() else { return .absent }
            let entered = table.enter(
                seen.key,
                kind: seen.kind,
                parent: folder.key,
                name: itemName,
                facts: seen.facts,
                asOf: epoch
            )
            switch entered {
            case .observeAgain: continue
            case .reserved: return .reserved(seen.key)
            case .node(let node):
                node.setLink(folder.key, itemName, isOneOfMany: !seen.hasOneName)
                if seen.kind == .folder, folder.id != NodeTable.stagingID {
                    replica.folders.insert(seen.key, parent: folder.key, name: itemName)
                }
                let isStaged = folder.id == NodeTable.stagingID
                // Whole since it was looked at: what was seen then is of a file that was being filled.
                if seen.facts.placeholder != nil, !node.isDataless {
                    return .entry(entry(node, try status(of: node), isStaged: isStaged))
                }
                return .entry(entry(node, seen.status, isStaged: isStaged))
            }
        }
    }

    private func entry(_ node: Node, _ status: stat, isStaged: Bool = false) -> fuse_entry_param {
        var entry = fuse_entry_param()
        entry.ino = fuse_ino_t(node.id)
        entry.attr = node.facts.applied(to: status)
        entry.attr_timeout = isStaged ? 0 : Self.forever
        entry.entry_timeout = isStaged ? 0 : Self.forever
        return entry
    }

    /// Answers with an entry that was counted; takes the count back if the kernel did not get it.
    func reply(_ request: Request, _ entry: inout fuse_entry_param) {
        if fuse_reply_entry(request.raw, &entry) != 0 { forget(entry.ino, 1) }
    }

    private func replyStaging(_ request: Request) throws(Errno) {
        var status = try Observation(descriptor: stagingDescriptor.raw).status
        status.st_mode = FileMode.folder | 0o700
        var entry = entry(table.staging, status, isStaged: true)
        fuse_reply_entry(request.raw, &entry)
    }

    func forget(_ id: fuse_ino_t, _ count: UInt64) {
        if VersionTree.owns(id) { return versions.forget(id, count) }
        guard let node = table.forget(UInt64(id), count), !forgotten.keep(node) else { return }
        dropped(node)
    }

    /// Closes what one node keeps that the kernel has forgotten. False: there is none.
    func dropForgotten() -> Bool {
        guard let node = forgotten.take() else { return false }
        dropped(node)
        return true
    }
}
