import CFuse3
import CLinux
import Glibc
import Replica
import Synchronization
import SystemPackage
import UbiquityModel

/// What the engine does to the tree. Each act checks, at the moment of acting and with programs kept out of the inode, that it finds what
/// the engine expected (architecture section 3.5): in the handler of its own request where the kernel knows the folder, else directly in
/// the backing tree while the folder is kept unknown.
extension Filesystem {
    func publish(
        _ staged: Name,
        _ folder: InodeKey,
        _ descriptor: SharedDescriptor,
        _ name: Name,
        _ expecting: Expectation
    ) throws(MutationFailure) -> MutationResult {
        let origin = try stagedOrigin(staged)
        defer { replica.tree.unsettled.acted(origin.seen.key) }
        switch expecting {
        case .absent:
            try failing { () throws(Errno) in
                let place = Destination(folder: folder, descriptor: descriptor, name: name, seen: nil)
                try move(origin, place, UInt32(CLINUX_RENAME_NOREPLACE))
            }
        case .inode(let evidence):
            try withHeld(evidence, folder, descriptor, name, alone: false) { seen throws(MutationFailure) in
                keepOwner(of: seen.status, for: origin)
                try failing { () throws(Errno) in
                    let place = Destination(folder: folder, descriptor: descriptor, name: name, seen: seen.sighting)
                    try move(origin, place, 0)
                }
            }
        }
        return try result(descriptor, name)
    }

    /// Owner and group are nobody's but this machine's: a new revision has those of the one that it replaces, as far as we may give them.
    private func keepOwner(of former: stat, for origin: Origin) {
        var staged = stat()
        origin.name.withCString { name in
            guard fstatat(origin.descriptor.raw, name, &staged, AT_SYMLINK_NOFOLLOW) == 0,
                staged.st_uid != former.st_uid || staged.st_gid != former.st_gid
            else { return }
            _ = fchownat(origin.descriptor.raw, name, former.st_uid, former.st_gid, AT_SYMLINK_NOFOLLOW)
        }
    }

    func stagedOrigin(_ staged: Name) throws(MutationFailure) -> Origin {
        try failing { () throws(Errno) in
            guard let seen = try look(stagingDescriptor, staged) else { throw .noSuchFileOrDirectory }
            if seen.kind == .file, seen.facts.placeholder == nil { replica.tree.unsettled.add(seen.key) }
            return Origin(folder: table.staging.key, descriptor: stagingDescriptor, name: staged, seen: seen.sighting)
        }
    }

    func removal(
        _ folder: InodeKey,
        _ descriptor: SharedDescriptor,
        _ name: Name,
        _ evidence: LocalEvidence,
        isFolder: Bool
    ) throws(MutationFailure) -> MutationResult {
        try withHeld(evidence, folder, descriptor, name, alone: false) { seen throws(MutationFailure) in
            guard isFolder == (seen.kind == .folder) else { throw .stale }
            try failing { () throws(Errno) in try takeAway(folder, descriptor, name, seen.sighting) }
        }
        return MutationResult(state: nil)
    }

    /// Whoever has the file open goes on, so only its identity counts for the act. The result says whether anybody wrote.
    func relocation(
        _ from: (folder: InodeKey, descriptor: SharedDescriptor, name: Name),
        _ to: (folder: InodeKey, descriptor: SharedDescriptor, name: Name),
        _ evidence: LocalEvidence
    ) throws(MutationFailure) -> MutationResult {
        try failing { () throws(Errno) -> MutationResult in
            // A writer is looked for before the file and after it: whenever one comes or goes between, it is seen, or its writing is.
            let hadWriters = table.node(evidence.key)?.hasWriters == true
            guard let before = try replica.tree.observe(in: from.descriptor.raw, from.name), before.key == evidence.key,
                let seen = try look(from.descriptor, from.name), seen.key == evidence.key
            else { throw .stale }
            try move(
                Origin(folder: from.folder, descriptor: from.descriptor, name: from.name, seen: seen.sighting),
                Destination(folder: to.folder, descriptor: to.descriptor, name: to.name, seen: nil),
                UInt32(CLINUX_RENAME_NOREPLACE)
            )
            let after = try replica.tree.observe(in: to.descriptor.raw, to.name)
            let hasWriters = hadWriters || table.node(evidence.key)?.hasWriters == true
            let isUnchanged =
                before.kind == .folder || !hasWriters && evidence.describes(before) && after?.isMoved(before) == true
            return MutationResult(state: after, isUnchanged: isUnchanged)
        }
    }

    /// A file that nobody has open becomes dataless; one that is gives up what of it is here.
    func eviction(
        _ folder: InodeKey,
        _ name: Name,
        _ evidence: LocalEvidence,
        _ placeholder: Placeholder
    ) throws(MutationFailure) -> MutationResult {
        let descriptor = try failing { () throws(Errno) in try folderDescriptor(folder) }
        var after: LocalState?
        try withHeld(evidence, folder, descriptor, name, alone: true, afterwards: .free) {
            seen throws(MutationFailure) in
            guard seen.kind == .file else { throw .stale }
            guard let node = table.node(seen.key) else { throw .stale }
            // Before the disk's size and times are those of a file that is being emptied.
            node.becomesDataless(placeholder)
            var isEvicted = false
            defer { if !isEvicted { believeDisk(node) } }
            after = try failing { () throws(Errno) in
                // Programs may come by another name, and a change to it is sent for each.
                guard seen.status.st_nlink == 1 else { throw .tooManyLinks }
                if seen.facts.placeholder != nil {
                    // A transfer that nobody waits for any more may still be at it, and an open that is about to wait for content is
                    // not counted yet: both use this object.
                    guard let file = try placeholderFile(of: node) else { throw .stale }
                    return try file.evict(as: placeholder)
                }
                let file = try replica.tree.openFile(in: descriptor.raw, name, expecting: seen.key, flags: O_RDWR)
                return try PlaceholderOperations.evict(file.raw, as: placeholder)
            }
            isEvicted = true
            table.advanceEpoch()
            // Once more: somebody may have read it from the disk meanwhile, before it was there. What a program has set of it since counts.
            let now = (try? self.descriptor(of: node)).flatMap { try? PlaceholderOperations.read($0.raw) }
            node.becomesDataless((now ?? nil) ?? placeholder)
            notices.push(.attributes(node: node.id))
        }
        return MutationResult(state: after)
    }

    /// After something failed half-way.
    private func believeDisk(_ node: Node) {
        table.advanceEpoch()
        guard let descriptor = try? descriptor(of: node), let seen = try? Observation(descriptor: descriptor.raw) else {
            return
        }
        node.state.withLock { $0.facts = seen.facts }
        notices.push(.attributes(node: node.id))
    }

    // MARK: Checking

    /// Runs `act` on an item that is as expected and stays where it is.
    func withUnchanged(
        _ evidence: LocalEvidence,
        _ folder: InodeKey,
        _ descriptor: SharedDescriptor,
        _ name: Name,
        _ act: (Node, SharedDescriptor) throws(Errno) -> Void
    ) throws(MutationFailure) {
        try withHeld(evidence, folder, descriptor, name, alone: false, afterwards: .free) {
            seen throws(MutationFailure) in
            try failing { () throws(Errno) in
                let item = try openPath(in: descriptor, name)
                guard let node = table.node(seen.key), try InodeKey(descriptor: item.raw) == seen.key else {
                    throw .stale
                }
                try act(node, item)
            }
        }
    }

    /// Runs `act` while programs are kept out of the inode at a name, if that is what was expected.
    /// - Parameters:
    ///   - alone: whether readers hinder too.
    ///   - afterwards: what becomes of the inode; by default it has lost this name.
    func withHeld(
        _ evidence: LocalEvidence,
        _ folder: InodeKey,
        _ descriptor: SharedDescriptor,
        _ name: Name,
        alone: Bool,
        afterwards: Node.Phase = .replaced,
        _ act: (Observation) throws(MutationFailure) -> Void
    ) throws(MutationFailure) {
        let node = try used(evidence, folder, descriptor, name)
        defer { dropped(table.release(node)) }
        if let failure = node.beginHold(alone: alone) { throw failure }
        var phase = Node.Phase.free
        defer { for waiting in node.endHold(phase) { worker.run(waiting) } }
        if alone { unbind(node) }
        if isMapped(node, reads: alone) { throw .busy }
        // Only now nobody writes: what was seen before counts for nothing.
        let seen = try failing { () throws(Errno) in try look(descriptor, name) }
        let state = try failing { () throws(Errno) in try replica.tree.observe(in: descriptor.raw, name) }
        guard let seen, let state, seen.key == state.key, evidence.describes(state) else { throw .stale }
        try act(seen)
        // An inode with further names lives on under them.
        if afterwards == .free || seen.kind == .folder || seen.status.st_nlink <= 1 { phase = afterwards }
    }

    /// The node of the inode that is expected at a name.
    private func used(
        _ evidence: LocalEvidence,
        _ folder: InodeKey,
        _ descriptor: SharedDescriptor,
        _ name: Name
    ) throws(MutationFailure) -> Node {
        while true {
            let epoch = table.epoch
            let seen = try failing { () throws(Errno) in try look(descriptor, name) }
            guard let seen, seen.key == evidence.key else { throw .stale }
            if let node = table.use(
                seen.key,
                kind: seen.kind,
                parent: folder,
                name: name,
                facts: seen.facts,
                asOf: epoch
            ) {
                return node
            }
        }
    }

    private func result(_ descriptor: SharedDescriptor, _ name: Name) throws(MutationFailure) -> MutationResult {
        MutationResult(state: try failing { () throws(Errno) in try replica.tree.observe(in: descriptor.raw, name) })
    }

    private func look(_ descriptor: SharedDescriptor, _ name: Name) throws(Errno) -> Observation? {
        try name.withCString { name throws(Errno) in try observe(in: descriptor, name) }
    }

    func failing<Value>(_ body: () throws(Errno) -> Value) throws(MutationFailure) -> Value {
        do throws(Errno) { return try body() } catch { throw MutationFailure(error) }
    }
}

extension Node {
    fileprivate func becomesDataless(_ placeholder: Placeholder) {
        state.withLock { state in
            state.facts.placeholder = placeholder
            state.evictions += 1
        }
    }
}

extension LocalState {
    /// Whether nothing but the name differs. A rename moves the change time, so that it tells nothing.
    fileprivate func isMoved(_ before: LocalState) -> Bool {
        var before = before
        before.changed = changed
        return self == before
    }
}
