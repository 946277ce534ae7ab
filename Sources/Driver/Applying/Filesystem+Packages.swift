import CFuse3
import CLinux
import Glibc
import Replica
import Synchronization
import SystemPackage
import UbiquityModel

/// What the engine does to a whole package: one exchange, so that whoever walks to it sees the old state or the new one, and whoever holds a
/// descriptor of its folder goes on in the old one (semantics section 5).
extension Filesystem {
    /// Since something in a package was last opened: a program that reads several of its files opens one after the other.
    private static let quietTime: Int64 = 2_000_000_000
    /// Folders on the longest path that a system call takes.
    private static let deepest = 2048

    func replacePackage(
        _ staged: Name,
        _ folder: InodeKey,
        _ descriptor: SharedDescriptor,
        _ name: Name,
        _ evidence: LocalEvidence,
        isPatient: Bool
    ) throws(MutationFailure) -> MutationResult {
        let origin = try stagedOrigin(staged)
        let exchange = UInt32(CLINUX_RENAME_EXCHANGE)
        try withPackage(evidence, folder, descriptor, name, isPatient: isPatient) {
            seen,
            opened,
            tree throws(MutationFailure) in
            let place = Destination(folder: folder, descriptor: descriptor, name: name, seen: seen)
            let old = Origin(folder: table.staging.key, descriptor: stagingDescriptor, name: staged, seen: seen)
            try withRecord(of: tree, staged, folder) { () throws(Errno) in
                try move(origin, place, exchange)
            } isExpected: {
                isAsExpected(opened, evidence)
            } undo: { () throws(Errno) in
                let new = Destination(folder: folder, descriptor: descriptor, name: name, seen: origin.seen)
                try move(old, new, exchange)
            }
            synchronize(descriptor)
        }
        return MutationResult(
            state: try failing { () throws(Errno) in try replica.tree.observe(in: descriptor.raw, name) }
        )
    }

    func removePackage(
        _ staged: Name,
        _ folder: InodeKey,
        _ descriptor: SharedDescriptor,
        _ name: Name,
        _ evidence: LocalEvidence,
        isPatient: Bool
    ) throws(MutationFailure) -> MutationResult {
        let flags = UInt32(CLINUX_RENAME_NOREPLACE)
        try withPackage(evidence, folder, descriptor, name, isPatient: isPatient) {
            seen,
            opened,
            tree throws(MutationFailure) in
            let here = Origin(folder: folder, descriptor: descriptor, name: name, seen: seen)
            let old = Origin(folder: table.staging.key, descriptor: stagingDescriptor, name: staged, seen: seen)
            try withRecord(of: tree, staged, folder) { () throws(Errno) in
                let away = Destination(
                    folder: table.staging.key,
                    descriptor: stagingDescriptor,
                    name: staged,
                    seen: nil
                )
                try move(here, away, flags)
            } isExpected: {
                isAsExpected(opened, evidence)
            } undo: { () throws(Errno) in
                try move(old, Destination(folder: folder, descriptor: descriptor, name: name, seen: nil), flags)
            }
        }
        return MutationResult(state: nil)
    }

    /// Takes a package out of the tree and into the staging folder, where it stays with what it was like.
    ///
    /// What somebody wrote between the look and the act is in it: then it comes back, and is sent. If it cannot, it stays recorded, and the
    /// engine keeps what was written.
    private func withRecord(
        of tree: PackageTree,
        _ staged: Name,
        _ folder: InodeKey,
        _ act: () throws(Errno) -> Void,
        isExpected: () -> Bool,
        undo: () throws(Errno) -> Void
    ) throws(MutationFailure) {
        let staged = staged.description
        try failing { () throws(Errno) in
            try replica.staging.note(replaced: tree, as: staged, from: folder)
            do throws(Errno) { try act() } catch {
                replica.staging.forget(replaced: staged)
                throw error
            }
        }
        if isExpected() { return }
        try failing { () throws(Errno) in try undo() }
        replica.staging.forget(replaced: staged)
        throw .stale
    }

    /// A power loss would take the exchange back otherwise, with what programs write to the new state until then.
    private func synchronize(_ folder: SharedDescriptor) {
        guard let opened = try? OwnedDescriptor(reopening: folder.raw, flags: O_RDONLY | O_DIRECTORY) else { return }
        _ = clinux_fsync(opened.raw)
    }

    /// Runs `act` with the package's folder open, and all that lies in it, if it is as expected and nobody uses it.
    private func withPackage(
        _ evidence: LocalEvidence,
        _ folder: InodeKey,
        _ descriptor: SharedDescriptor,
        _ name: Name,
        isPatient: Bool,
        _ act: (Sighting, Int32, PackageTree) throws(MutationFailure) -> Void
    ) throws(MutationFailure) {
        try withHeld(evidence, folder, descriptor, name, alone: false, afterwards: .free) {
            seen throws(MutationFailure) in
            guard seen.kind == .folder else { throw .stale }
            let node = table.node(seen.key)
            let opened = try failing { () throws(Errno) in
                SharedDescriptor(
                    try OwnedDescriptor(in: descriptor.raw, name, flags: O_RDONLY | O_DIRECTORY).release()
                )
            }
            let tree = try failing { () throws(Errno) in try PackageTree(folder: opened.raw) }
            guard evidence.describes(tree.state) else { throw .stale }
            guard !isUsed(tree, opened.raw, isPatient: isPatient) else { throw .busy }
            try act(seen.sighting, opened.raw, tree)
            node?.state.withLock { $0.wasPackage = (folder, name) }
        }
    }

    /// Where the package was in which an inode lies, if the engine has replaced or removed it. Whoever has something in it open makes the
    /// kernel know the folders above.
    func replacedPackage(around node: Node) -> (parent: InodeKey, name: Name)? {
        var folder = node.state.withLock { $0.parent }
        // Folders that are being moved could close a circle for a moment.
        for _ in 0..<Self.deepest {
            guard folder != table.root.key, let above = table.node(folder) else { return nil }
            let (place, next) = above.state.withLock { ($0.wasPackage, $0.parent) }
            if let place { return place }
            folder = next
        }
        return nil
    }

    private func isAsExpected(_ folder: Int32, _ evidence: LocalEvidence) -> Bool {
        // One that cannot be looked at any more was changed.
        guard let tree = try? PackageTree(folder: folder), evidence.describes(tree.state) else { return false }
        return !isUsed(tree, folder, isPatient: false)
    }

    private func isUsed(_ tree: PackageTree, _ folder: Int32, isPatient: Bool) -> Bool {
        let now = Node.coarseTime()
        return tree.entries.contains { entry in
            guard entry.state.kind == .file else { return false }
            guard let node = table.node(entry.state.key) else {
                // Nobody has it open by this mount. By one before, whose service was killed, somebody may.
                return mayPass && PackageFolder.isWritten(entry.element.path, in: folder)
            }
            if isMapped(node, reads: false) { return true }
            return node.state.withLock { state in
                if state.writers > 0 { return true }
                return isPatient && (state.handles > 0 || now - state.lastUse < Self.quietTime)
            }
        }
    }
}

extension Node {
    /// Nanoseconds of a clock that only goes forward, some milliseconds exact; without a system call.
    static func coarseTime() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC_COARSE, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}
