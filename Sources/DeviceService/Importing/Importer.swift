internal import CLinux
internal import Glibc
internal import Replica
internal import UbiquityControl
internal import UbiquityModel

/// Moves what lies at a mount point into the backing tree, before the first plan: `--import`.
///
/// 1. `check` looks at everything and moves nothing: what cannot be imported is an error while all is still in its place.
/// 2. The caller notes durably that the import has begun.
/// 3. `run` moves entry by entry: by a rename, or from another filesystem by copying, syncing and unlinking. Killed at any moment,
///    it goes on when it is run again: what it finds at both places, equal, it has been at before.
/// 4. The caller notes durably that the import is done.
///
/// The engine then finds new files without a synced row. It sends nothing before its first listing is complete, and where the cloud
/// has an item of that name, equal contents become one item and different ones keep both.
struct Importer {
    var source: ControlPath
    let replica: Replica
    /// The container's, with which contents are named.
    let key: [UInt8]
    let stop: ImportStop
    let progress: @Sendable (ControlProgress) -> Void

    /// What `check` has seen.
    struct Found {
        /// The entries of the folder that can be moved as they are, with all that lies in them: half of what an import takes is to look at
        /// each item.
        var fine: Set<Name> = []
        /// How many items each entry is, with all that lies in it.
        var counts: [Name: Int] = [:]
    }

    // MARK: - Looking

    func check(home: HomeDirectories) throws(ControlError) -> Found {
        let own = try OwnFolders(home, replica)
        try own.refuse(source)
        // The signal by which the kernel tells that a lease is broken would end the process.
        let code = clinux_ignore_leases()
        guard code == 0 else { throw ControlError("\(source)", systemMessage(code)) }
        try refuseMounts()
        let root = try LocalFolder(opening: source)
        let status = try root.status()
        try own.refuse(source, status)
        let tree = LocalFolder(borrowing: replica.tree.rootDescriptor, path: ControlPath(replica.treePath))
        let isCopied = try tree.status().device != status.device
        var found = Found()
        for name in try root.names() {
            var count = 0
            if try check(name, of: root, device: status.device, isMoved: true, isCopied: isCopied, own, &count) {
                found.fine.insert(name)
            }
            found.counts[name] = count
        }
        return found
    }

    /// A bind mount may be of the same device. It would go into the tree with its folder, and what it shows is not there.
    private func refuseMounts() throws(ControlError) {
        for mount in MountInfo.all() {
            let point = ControlPath(bytes: mount.mountPoint)
            if let names = point.relative(to: source), !names.isEmpty { throw .mounted(point) }
        }
    }

    /// - Parameters:
    ///   - isMoved: it gets another folder by itself. What lies in a folder that is renamed as a whole goes with it.
    ///   - isCopied: from another disk.
    /// - Returns: whether nothing has to be done to it, nor to anything in it, for the backing tree.
    private func check(
        _ name: Name,
        of folder: LocalFolder,
        device: UInt64,
        isMoved: Bool,
        isCopied: Bool,
        _ own: OwnFolders,
        _ count: inout Int
    ) throws(ControlError) -> Bool {
        try goOn()
        guard let status = try folder.status(of: name) else { return false }
        count += 1
        guard status.device == device else { throw .mounted(folder.path(of: name)) }
        if isMoved { try folder.refuseForeign(name, status, isCopied: isCopied) }
        if isCopied { try folder.refuseDevice(name, status) }
        let shape = try folder.shape(of: name, status)
        if status.mode & S_IFMT == S_IFREG {
            if shape == .placeholder {
                throw ControlError(
                    "\(folder.path(of: name))",
                    "it is a placeholder of another container: its content is not here",
                    remedy: "remove it, or download it where it comes from"
                )
            }
            try folder.refuseWriter(of: name)
        }
        var isFine = shape == .fine
        guard status.mode & S_IFMT == S_IFDIR else { return isFine }
        try own.refuse(folder.path(of: name), status)
        let inner = try LocalFolder(opening: name, in: folder)
        for entry in try inner.names() {
            isFine =
                try check(entry, of: inner, device: device, isMoved: isCopied, isCopied: isCopied, own, &count)
                && isFine
        }
        return isFine
    }

    // MARK: - Moving

    /// - Returns: how many entries of the folder were moved.
    func run(_ found: Found) throws(ControlError) -> Int {
        let folder = try LocalFolder(opening: source)
        let names = try folder.names()
        let moving = Moving(self, total: found.counts.values.reduce(0, +))
        do throws(ControlError) {
            for name in names {
                moving.shown.begin(found.counts[name] ?? 1)
                try moving.place(name, of: folder, isFine: found.fine.contains(name))
            }
            try moving.pending.settle()
        } catch {
            moving.pending.discard()
            throw error
        }
        try moving.pending.synchronizeTree()
        let status = clinux_syncfs(folder.raw)
        guard status == 0 else { throw ControlError("\(source)", "cannot be synced: \(systemMessage(status))") }
        return names.count
    }

    fileprivate func goOn() throws(ControlError) {
        guard stop.isAsked(for: source) else { return }
        throw ControlError(
            .tryAgain,
            "\(source)",
            "the import was stopped",
            remedy: "run the command again: it goes on where it stopped"
        )
    }
}

/// An import that runs.
private final class Moving {
    let importer: Importer
    let tree: LocalFolder
    let staging: LocalFolder
    let pending: PendingItems
    /// Whether the replica was used before.
    private let hasSynced: Bool
    /// Folders that this run has put into the tree: whatever else in the source has their names is another one.
    private var placed: Set<UInt64> = []
    var shown: ImportProgress

    init(_ importer: Importer, total: Int) {
        self.importer = importer
        let replica = importer.replica
        tree = LocalFolder(borrowing: replica.tree.rootDescriptor, path: ControlPath(replica.treePath))
        staging = LocalFolder(borrowing: replica.staging.descriptor, path: ControlPath(replica.stagingPath))
        pending = PendingItems(replica, staging: staging)
        hasSynced = (try? replica.database.hasSynced()) ?? true
        shown = ImportProgress(total: total, show: importer.progress)
    }

    /// An entry of the folder that is imported.
    func place(_ name: Name, of folder: LocalFolder, isFine: Bool) throws(ControlError) {
        let isReserved = name.bytes == Array(".versions".utf8)
        try place(name, of: folder, in: tree, as: isReserved ? name.numbered(2) : name, isFine: isFine)
    }

    private func place(
        _ name: Name,
        of folder: LocalFolder,
        in target: LocalFolder,
        as wanted: Name,
        isFine: Bool
    ) throws(ControlError) {
        try importer.goOn()
        guard let status = try folder.status(of: name) else { return }
        var free = wanted
        var number = 1
        while let present = try target.status(of: free) {
            if try mayMerge(name, status, of: folder, in: target, with: free, present, isNumbered: number > 1),
                try merge(name, status, of: folder, in: target, with: free, present, isFine: isFine)
            {
                return
            }
            number += 1
            free = wanted.numbered(number)
        }
        let isCopied = try target.status().device != status.device
        if !isFine { try folder.adopt(name, status, isCopied: isCopied) }
        let failure = try folder.rename(name, to: target, as: free)
        switch failure {
        case 0:
            if status.mode & S_IFMT == S_IFDIR { placed.insert(status.inode) }
            shown.countItem()
        case -EXDEV where status.mode & S_IFMT == S_IFDIR:
            try copyFolder(name, status, of: folder, in: target, as: free)
        case -EXDEV: try copy(name, of: folder, in: target, as: wanted, number: number)
        default: throw .notMoved(folder.path(of: name), failure)
        }
    }

    /// Whether a folder may be merged with what the tree has under that name; of anything else `merge` finds out. A package is one
    /// document: one that differs keeps a name of its own, and is not mixed with the other.
    ///
    /// What is numbered may be the copy of an import that was killed before it removed the source.
    private func mayMerge(
        _ name: Name,
        _ status: clinux_status,
        of folder: LocalFolder,
        in target: LocalFolder,
        with wanted: Name,
        _ present: clinux_status,
        isNumbered: Bool
    ) throws(ControlError) -> Bool {
        guard status.mode & S_IFMT == S_IFDIR, present.mode & S_IFMT == S_IFDIR else { return true }
        guard !placed.contains(present.inode) else { return false }
        let rows = try rows(target, wanted)
        if isNumbered {
            // One that was renamed has left nothing to go on with, and what has a row was there before.
            guard rows.isEmpty, try target.status().device != status.device else { return false }
        } else if !rows.contains(where: { $0.content.kind == .package }) {
            return true
        }
        let inner = try LocalFolder(opening: name, in: folder)
        return try isIn(try LocalFolder(opening: wanted, in: target), allOf: inner, orLacks: isNumbered)
    }

    /// Whether all that lies in a folder lies in one of the tree too, equal.
    /// - Parameter mayLack: what the tree has not at all does not count.
    private func isIn(
        _ target: LocalFolder,
        allOf folder: LocalFolder,
        orLacks mayLack: Bool
    ) throws(ControlError) -> Bool {
        for name in try folder.names() {
            try importer.goOn()
            guard let status = try folder.status(of: name) else { continue }
            guard let present = try target.status(of: name) else {
                if mayLack { continue }
                return false
            }
            guard status.mode & S_IFMT == present.mode & S_IFMT else { return false }
            let isEqual: Bool
            switch status.mode & S_IFMT {
            case S_IFDIR:
                let inner = try LocalFolder(opening: name, in: folder)
                isEqual = try isIn(try LocalFolder(opening: name, in: target), allOf: inner, orLacks: mayLack)
            case S_IFREG:
                guard status.size == present.size, try !target.isPlaceholder(name) else { return false }
                isEqual = try LocalFolder.haveEqualContents(name, of: folder, name, of: target) {
                    () throws(ControlError) in try importer.goOn()
                }
            case S_IFLNK: isEqual = try folder.linkTarget(name) == target.linkTarget(name)
            default: isEqual = false
            }
            guard isEqual else { return false }
        }
        return true
    }

    /// `true`: the tree has this already, and the source goes. Folders are merged entry by entry.
    private func merge(
        _ name: Name,
        _ status: clinux_status,
        of folder: LocalFolder,
        in target: LocalFolder,
        with wanted: Name,
        _ present: clinux_status,
        isFine: Bool
    ) throws(ControlError) -> Bool {
        guard status.mode & S_IFMT == present.mode & S_IFMT else { return false }
        let rest: PendingItems.Rest
        switch status.mode & S_IFMT {
        case S_IFDIR:
            let inner = try LocalFolder(opening: name, in: folder)
            let innerTarget = try LocalFolder(opening: wanted, in: target)
            guard try !inner.status().isSameInode(as: innerTarget.status()) else {
                throw ControlError("\(inner.path)", "it is in the container already", remedy: "choose another folder")
            }
            for entry in try inner.names() {
                try place(entry, of: inner, in: innerTarget, as: entry, isFine: isFine)
            }
            rest = .mergedFolder(try items(target, wanted))
        case S_IFREG:
            guard status.size == present.size else { return false }
            let isEqual =
                try target.isPlaceholder(wanted)
                ? fill(wanted, in: target, from: name, of: folder)
                : LocalFolder.haveEqualContents(name, of: folder, wanted, of: target) { () throws(ControlError) in
                    try importer.goOn()
                }
            guard isEqual else { return false }
            rest = .source(try items(target, wanted))
        case S_IFLNK:
            guard try folder.linkTarget(name) == target.linkTarget(wanted) else { return false }
            rest = .source(try items(target, wanted))
        default: return false
        }
        try pending.add(PendingItems.Item(name: name, folder: folder, status: status, rest: rest))
        shown.countItem()
        return true
    }

    private func items(_ target: LocalFolder, _ name: Name) throws(ControlError) -> [ItemID] {
        try rows(target, name).map(\.id)
    }

    /// What the tree has under that name was synced as.
    private func rows(_ target: LocalFolder, _ name: Name) throws(ControlError) -> [SyncedItem] {
        guard hasSynced else { return [] }
        let replica = importer.replica
        do {
            guard let state = try replica.tree.observe(in: target.raw, name) else { return [] }
            return try replica.database.synced(key: state.key)
        } catch {
            throw ControlError("\(target.path(of: name))", "\(error)")
        }
    }

    /// What is dataless here becomes whole if the source has its content.
    private func fill(
        _ wanted: Name,
        in target: LocalFolder,
        from name: Name,
        of folder: LocalFolder
    ) throws(ControlError) -> Bool {
        let path = "\(folder.path(of: name))"
        let source = try folder.openFile(name)
        defer { close(source) }
        let targetDescriptor = target.raw
        do {
            guard let state = try importer.replica.tree.observe(in: targetDescriptor, wanted),
                let placeholder = state.placeholder
            else { return false }
            let rows = try importer.replica.database.synced(key: state.key)
            for row in rows {
                guard case .file(let file) = row.content, file.revision == placeholder.revision,
                    let content = file.content
                else { continue }
                let dataless = PlaceholderFile(
                    descriptor: try importer.replica.tree.openFile(
                        in: targetDescriptor,
                        wanted,
                        expecting: state.key,
                        flags: O_RDWR
                    ),
                    placeholder: placeholder,
                    present: try importer.replica.database.ranges(row.id, placeholder) ?? ByteRangeSet(),
                    key: state.key
                )
                guard try dataless.fill(from: source, content: content, key: importer.key) else { return false }
                _ = try dataless.finish()
                return true
            }
            return false
        } catch ContentReadError.changed {
            throw ControlError(
                .tryAgain,
                path,
                "a program keeps changing it",
                remedy: "close it, and run the command again"
            )
        } catch ContentReadError.system(let error) {
            throw ControlError(path, "\(error)")
        } catch ContentReadError.stopped(let error) {
            throw ControlError(path, "\(error)")
        } catch {
            throw ControlError(path, "\(error)")
        }
    }

    // MARK: From another filesystem

    /// The copy is whole, and on the disk, before it has a name in the tree; the source goes last.
    private func copy(
        _ name: Name,
        of folder: LocalFolder,
        in target: LocalFolder,
        as wanted: Name,
        number: Int
    ) throws(ControlError) {
        let staged = try Name.staged()
        let seen: clinux_status
        do throws(ControlError) {
            seen = try ItemCopy.copy(name, of: folder, to: staging, as: staged) { () throws(ControlError) in
                try importer.goOn()
            }
        } catch {
            try? importer.replica.staging.remove(staged.description)
            throw error
        }
        let rest = PendingItems.Rest.copy(staged: staged, target: target, wanted: wanted, number: number)
        try pending.add(PendingItems.Item(name: name, folder: folder, status: seen, rest: rest))
        shown.countItem()
    }

    /// Entry by entry: killed in the middle, the import goes on there.
    private func copyFolder(
        _ name: Name,
        _ status: clinux_status,
        of folder: LocalFolder,
        in target: LocalFolder,
        as free: Name
    ) throws(ControlError) {
        let inner = try LocalFolder(opening: name, in: folder)
        let staged = try Name.staged()
        do throws(ControlError) {
            // It has its attributes before it has its name: an import that goes on, and finds it there, gives it none.
            try ItemCopy.makeFolder(like: inner, status, in: staging, as: staged)
            let failure = try staging.rename(staged, to: target, as: free)
            guard failure == 0 else { throw .notMoved(inner.path, failure) }
        } catch {
            try? importer.replica.staging.remove(staged.description)
            throw error
        }
        let made = try LocalFolder(opening: free, in: target)
        placed.insert(try made.status().inode)
        // Adopted with the folder.
        for entry in try inner.names() { try place(entry, of: inner, in: made, as: entry, isFine: true) }
        try pending.add(PendingItems.Item(name: name, folder: folder, status: status, rest: .folder(made: made)))
        shown.countItem()
    }
}

extension ControlError {
    fileprivate static func mounted(_ path: ControlPath) -> ControlError {
        ControlError("\(path)", "another filesystem is mounted there", remedy: "unmount it first")
    }
}

extension Name {
    /// A name for something in the staging folder that nobody guesses and that meets no other.
    fileprivate static func staged() throws(ControlError) -> Name {
        do throws(NameError) { return try Name(RevisionID.random().description) } catch {
            throw ControlError("staging", "\(error)")
        }
    }
}
