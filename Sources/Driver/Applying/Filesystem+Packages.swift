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
        try withPackage(evidence, folder, descriptor, name, isPatient: isPatient) { seen, old throws(MutationFailure) in
            try failing { () throws(Errno) in
                let place = Destination(folder: folder, descriptor: descriptor, name: name, seen: seen)
                try move(origin, place, exchange)
            }
            // What somebody wrote between the look and the exchange is in the old one: that comes back, and is sent.
            guard !isAsExpected(old, evidence) else { return }
            try failing { () throws(Errno) in
                let back = Origin(folder: table.staging.key, descriptor: stagingDescriptor, name: staged, seen: seen)
                let place = Destination(folder: folder, descriptor: descriptor, name: name, seen: origin.seen)
                try move(back, place, exchange)
            }
            throw .stale
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
        try withPackage(evidence, folder, descriptor, name, isPatient: isPatient) { seen, old throws(MutationFailure) in
            let here = Origin(folder: folder, descriptor: descriptor, name: name, seen: seen)
            let away = Destination(folder: table.staging.key, descriptor: stagingDescriptor, name: staged, seen: nil)
            try failing { () throws(Errno) in try move(here, away, flags) }
            guard !isAsExpected(old, evidence) else { return }
            try failing { () throws(Errno) in
                let back = Origin(folder: table.staging.key, descriptor: stagingDescriptor, name: staged, seen: seen)
                try move(back, Destination(folder: folder, descriptor: descriptor, name: name, seen: nil), flags)
            }
            throw .stale
        }
        return MutationResult(state: nil)
    }

    /// Runs `act` with the package's folder open, if it is as expected and nobody uses it.
    private func withPackage(
        _ evidence: LocalEvidence,
        _ folder: InodeKey,
        _ descriptor: SharedDescriptor,
        _ name: Name,
        isPatient: Bool,
        _ act: (Sighting, Int32) throws(MutationFailure) -> Void
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
            guard !isUsed(tree, isPatient: isPatient) else { throw .busy }
            try act(seen.sighting, opened.raw)
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
        return !isUsed(tree, isPatient: false)
    }

    private func isUsed(_ tree: PackageTree, isPatient: Bool) -> Bool {
        let now = Node.coarseTime()
        return tree.entries.contains { entry in
            guard entry.state.kind == .file, let node = table.node(entry.state.key) else { return false }
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
