import CFuse3
import CLinux
import Glibc
import Replica
import SystemPackage
import UbiquityModel

extension Filesystem {
    func unlink(_ request: Request, _ parent: fuse_ino_t, _ name: UnsafePointer<CChar>) {
        if VersionTree.owns(parent) { return unlinkVersion(request, parent, name) }
        request.answer { () throws(Errno) in try remove(request, parent, name, isFolder: false) }
    }

    func removeFolder(_ request: Request, _ parent: fuse_ino_t, _ name: UnsafePointer<CChar>) {
        if VersionTree.owns(parent) { return removeVersionFolder(request, parent, name) }
        request.answer { () throws(Errno) in try remove(request, parent, name, isFolder: true) }
    }

    private func remove(
        _ request: Request,
        _ parent: fuse_ino_t,
        _ name: UnsafePointer<CChar>,
        isFolder: Bool
    ) throws(Errno) {
        let folder = try node(parent)
        if isVersions(folder, name) { throw .resourceBusy }
        if let acting = applier.acting(request.thread) { return try applyRemoval(folder, name, acting) }
        guard folder.id != NodeTable.stagingID else { throw .notPermitted }
        let itemName = try self.name(name)
        try requireAccess(request, folder, W_OK | X_OK)
        try checkClaims(request, [(folder, itemName)])
        let descriptor = try descriptor(of: folder)
        guard let seen = try sight(in: descriptor, name) else { throw .noSuchFileOrDirectory }
        guard isFolder == (seen.kind == .folder) else { throw isFolder ? .notDirectory : .isDirectory }
        // Before the deletion is announced: `rmdir` of a folder with something in it is everyday.
        if isFolder { try requireEmpty(descriptor, itemName, seen.key) }
        host.aboutToDelete(key: seen.key, parent: folder.key, name: itemName, isLastName: seen.hasOneName)
        do throws(Errno) { try takeAway(folder.key, descriptor, itemName, seen) } catch {
            noteFailedDeletion(descriptor, itemName, seen)
            throw error
        }
        report(.entry, folder.key, itemName, seen.key, mayHaveOtherNames: !seen.hasOneName, isFolder: isFolder)
    }

    private func noteFailedDeletion(_ folder: SharedDescriptor, _ name: Name, _ seen: Sighting) {
        // Unless somebody else has done it.
        guard let still = (try? sight(folder, name)) ?? nil, still.key == seen.key else { return }
        host.deletionFailed(key: seen.key)
    }

    /// Removes a name that was observed, and says so to the nodes and the index of folders.
    func takeAway(
        _ folder: InodeKey,
        _ descriptor: SharedDescriptor,
        _ name: Name,
        _ seen: Sighting
    ) throws(Errno) {
        let victim = table.node(seen.key)
        let pinned = try victim.map { (victim) throws(Errno) in try kept(victim, in: descriptor, name) }
        try names.shared { () throws(Errno) in
            _ = try name.withCString { name throws(Errno) in
                try called(unlinkat(descriptor.raw, name, seen.kind == .folder ? AT_REMOVEDIR : 0))
            }
            victim?.loseLink(folder, name, keeping: pinned)
            if seen.kind == .folder { replica.folders.remove(seen.key) }
            foldedNames?.went(name, from: folder)
            if seen.kind == .folder { foldedNames?.forget(seen.key) }
        }
        if let victim, seen.hasOneName { table.unname(victim) }
    }

    /// What keeps a node reachable that loses its name: programs may have it open, and what is bound for them stays so until the kernel
    /// forgets it.
    private func kept(_ victim: Node, in folder: SharedDescriptor, _ name: Name) throws(Errno) -> SharedDescriptor {
        if let known = knownDescriptor(of: victim) { return known }
        return try openPath(in: folder, name)
    }

    private func requireEmpty(_ parent: SharedDescriptor, _ name: Name, _ key: InodeKey) throws(Errno) {
        let folder = try name.withCString { name throws(Errno) in
            SharedDescriptor(try checked(clinux_open_at(parent.raw, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0)))
        }
        guard try DirectoryEntries.isEmpty(folder.raw) else { throw .directoryNotEmpty }
        if host.isUnpopulated(key), try host.hasCloudEntries(key) { throw .directoryNotEmpty }
    }

    // MARK: Renaming

    func rename(
        _ request: Request,
        _ parent: fuse_ino_t,
        _ name: UnsafePointer<CChar>,
        _ newParent: fuse_ino_t,
        _ newName: UnsafePointer<CChar>,
        _ flags: UInt32
    ) {
        // Not EXDEV: `mv` would remove what is there, which resolves it, before it sees that it cannot write here.
        if VersionTree.owns(newParent) { return request.fail(.readOnly) }
        if VersionTree.owns(parent) { return renameVersion(request, parent, name, newParent, newName, flags) }
        request.answer { () throws(Errno) in
            let source = try node(parent)
            let target = try node(newParent)
            if isVersions(source, name) { throw .resourceBusy }
            if isVersions(target, newName) { throw .fileExists }
            if let acting = applier.acting(request.thread) {
                return try applyRename(source, name, target, newName, acting)
            }
            guard source.id != NodeTable.stagingID, target.id != NodeTable.stagingID else { throw .notPermitted }
            let known = UInt32(CLINUX_RENAME_NOREPLACE | CLINUX_RENAME_EXCHANGE)
            guard flags & ~known == 0 else { throw .invalidArgument }
            let sourceName = try self.name(name)
            let targetName = try self.name(newName)
            try requireAccess(request, source, W_OK | X_OK)
            if target.id != source.id { try requireAccess(request, target, W_OK | X_OK) }
            try checkClaims(request, [(source, sourceName), (target, targetName)])
            // An exchange gives no folder a new name.
            if flags & UInt32(CLINUX_RENAME_EXCHANGE) == 0 {
                let leaving = source.id == target.id ? sourceName : nil
                try requireNoTwin(request, of: targetName, in: target, leaving: leaving)
            }
            try rename(request, Place(source, sourceName), Place(target, targetName), flags)
        }
    }

    private struct Place {
        let folder: Node
        let name: Name

        init(_ folder: Node, _ name: Name) {
            self.folder = folder
            self.name = name
        }
    }

    private func rename(_ request: Request, _ from: Place, _ to: Place, _ flags: UInt32) throws(Errno) {
        let source = try descriptor(of: from.folder)
        let target = try descriptor(of: to.folder)
        guard let moved = try sight(source, from.name) else { throw .noSuchFileOrDirectory }
        let origin = Origin(folder: from.folder.key, descriptor: source, name: from.name, seen: moved)
        let exchanges = flags & UInt32(CLINUX_RENAME_EXCHANGE) != 0
        host.beginMove()
        defer { host.endMove() }
        if from.folder.id != to.folder.id { try requireMovable(request, moved) }
        // Mostly nothing is there. The disk says so itself, in the same call.
        if !exchanges, try moveUnlessTaken(origin, target, to, isFinal: flags != 0) {
            return reportMove(from, to, moved, replacing: nil)
        }
        let other = try sight(target, to.name)
        if exchanges, from.folder.id != to.folder.id, let other { try requireMovable(request, other) }
        if let other, !exchanges {
            // Two names of one inode: POSIX does nothing.
            if other.key == moved.key { return }
            try requireReplaceable(target, to.name, other, by: moved)
            host.aboutToDelete(
                key: other.key,
                parent: to.folder.key,
                name: to.name,
                isLastName: other.hasOneName
            )
        }
        do throws(Errno) {
            try move(
                origin,
                Destination(folder: to.folder.key, descriptor: target, name: to.name, seen: other),
                flags
            )
        } catch {
            if let other, !exchanges { noteFailedDeletion(target, to.name, other) }
            throw error
        }
        reportMove(from, to, moved, replacing: other)
        if exchanges, let other { reportMove(to, from, other, replacing: moved) }
    }

    /// False: something is there, or the disk cannot tell.
    /// - Parameter isFinal: then it is an error instead (RENAME_NOREPLACE).
    private func moveUnlessTaken(
        _ origin: Origin,
        _ target: SharedDescriptor,
        _ to: Place,
        isFinal: Bool
    ) throws(Errno) -> Bool {
        let destination = Destination(folder: to.folder.key, descriptor: target, name: to.name, seen: nil)
        do throws(Errno) {
            try move(origin, destination, UInt32(CLINUX_RENAME_NOREPLACE))
            return true
        } catch {
            guard !isFinal, error == .fileExists || error == .invalidArgument else { throw error }
            return false
        }
    }

    private func reportMove(_ from: Place, _ to: Place, _ moved: Sighting, replacing other: Sighting?) {
        report(
            .entry,
            to.folder.key,
            to.name,
            moved.key,
            movedFrom: (from.folder.key, from.name),
            replaced: other?.key,
            isFolder: moved.kind == .folder
        )
    }

    /// A folder's entry for its parent changes when it is moved: that needs permission to write to it.
    private func requireMovable(_ request: Request, _ seen: Sighting) throws(Errno) {
        guard seen.kind == .folder, let node = table.node(seen.key) else { return }
        try requireAccess(request, node, W_OK)
    }

    /// Before the deletion is announced: what the disk would refuse.
    private func requireReplaceable(
        _ folder: SharedDescriptor,
        _ name: Name,
        _ other: Sighting,
        by moved: Sighting
    ) throws(Errno) {
        guard other.kind == .folder else {
            if moved.kind == .folder { throw .notDirectory }
            return
        }
        guard moved.kind == .folder else { throw .isDirectory }
        try requireEmpty(folder, name, other.key)
    }

    private func sight(_ folder: SharedDescriptor, _ name: Name) throws(Errno) -> Sighting? {
        try name.withCString { name throws(Errno) in try sight(in: folder, name) }
    }

    struct Origin {
        let folder: InodeKey
        let descriptor: SharedDescriptor
        let name: Name
        let seen: Sighting
    }

    struct Destination {
        let folder: InodeKey
        let descriptor: SharedDescriptor
        let name: Name
        /// What is there: replaced, or exchanged.
        let seen: Sighting?
    }

    /// One renameat2, and what it means for the nodes and the index of folders.
    func move(_ from: Origin, _ to: Destination, _ flags: UInt32) throws(Errno) {
        let exchanges = flags & UInt32(CLINUX_RENAME_EXCHANGE) != 0
        let victim = exchanges ? nil : to.seen.flatMap { table.node($0.key) }
        let pinned = try victim.map { (victim) throws(Errno) in try kept(victim, in: to.descriptor, to.name) }
        try names.shared { () throws(Errno) in
            _ = try from.name.withCString { source throws(Errno) in
                try to.name.withCString { target throws(Errno) in
                    try checked(clinux_rename_at(from.descriptor.raw, source, to.descriptor.raw, target, flags))
                }
            }
            if exchanges {
                if let other = to.seen { settle(other, from.folder, from.name, from: (to.folder, to.name)) }
            } else {
                victim?.loseLink(to.folder, to.name, keeping: pinned)
                if let other = to.seen, other.kind == .folder {
                    replica.folders.remove(other.key)
                    foldedNames?.forget(other.key)
                }
                foldedNames?.went(from.name, from: from.folder)
            }
            foldedNames?.came(to.name, in: to.folder)
            settle(from.seen, to.folder, to.name, from: (from.folder, from.name))
        }
        if let victim, let other = to.seen, other.hasOneName { table.unname(victim) }
    }

    /// An inode has a new place.
    private func settle(
        _ seen: Sighting,
        _ folder: InodeKey,
        _ name: Name,
        from former: (parent: InodeKey, name: Name)
    ) {
        table.node(seen.key)?.setLink(
            folder,
            name,
            movedFrom: Node.Link(parent: former.parent, name: former.name)
        )
        guard seen.kind == .folder else { return }
        if folder == table.staging.key {
            replica.folders.remove(seen.key)
        } else {
            replica.folders.move(seen.key, parent: folder, name: name)
        }
    }
}
