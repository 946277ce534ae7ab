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
    let source: ControlPath
    let replica: Replica
    /// The container's, with which contents are named.
    let key: [UInt8]
    let progress: @Sendable (ControlProgress) -> Void

    // MARK: - Looking

    /// - Returns: the entries of the folder that can be moved as they are, with all that lies in them: half of what an import takes is to
    ///   look at each item.
    func check(home: HomeDirectories) throws(ControlError) -> Set<Name> {
        for own in Set([home.configuration, home.data, home.state]).sorted()
        where ControlPath(own).relative(to: source) != nil {
            throw ControlError(
                "\(source)",
                "it contains \(own), where ubiquity keeps its own files",
                remedy: "choose another folder"
            )
        }
        let root = try LocalFolder(opening: source)
        let device = try LocalFolder.status(of: root.raw, path: source).device
        var fine: Set<Name> = []
        for name in try root.names() where try check(name, of: root, device: device) { fine.insert(name) }
        return fine
    }

    /// - Returns: whether nothing has to be done to it, nor to anything in it, for the backing tree.
    private func check(
        _ name: Name,
        of folder: borrowing LocalFolder,
        device: UInt64
    ) throws(ControlError) -> Bool {
        guard let status = try folder.status(of: name) else { return false }
        if status.device != device {
            throw ControlError(
                "\(folder.path(of: name))",
                "another filesystem is mounted there",
                remedy: "unmount it first"
            )
        }
        let shape = try folder.shape(of: name, status)
        if shape == .placeholder, status.mode & S_IFMT == S_IFREG {
            throw ControlError(
                "\(folder.path(of: name))",
                "it is a placeholder of another container: its content is not here",
                remedy: "remove it, or download it where it comes from"
            )
        }
        var isFine = shape == .fine
        guard status.mode & S_IFMT == S_IFDIR else { return isFine }
        let inner = try LocalFolder(opening: name, in: folder)
        for entry in try inner.names() where try !check(entry, of: inner, device: device) { isFine = false }
        return isFine
    }

    // MARK: - Moving

    /// - Parameter fine: what `check` has just found.
    /// - Returns: how many entries of the folder were moved.
    func run(fine: Set<Name>) throws(ControlError) -> Int {
        let folder = try LocalFolder(opening: source)
        let tree = LocalFolder(borrowing: replica.tree.rootDescriptor, path: ControlPath(replica.treePath))
        let names = try folder.names()
        for (index, name) in names.enumerated() {
            progress(ControlProgress("importing", done: Int64(index), total: Int64(names.count), unit: .files))
            let isReserved = name.bytes == Array(".versions".utf8)
            let wanted = isReserved ? name.numbered(2) : name
            try place(name, of: folder, in: tree, as: wanted, isFine: fine.contains(name))
        }
        try synchronizeTree()
        let status = clinux_syncfs(folder.raw)
        guard status == 0 else { throw ControlError("\(source)", "cannot be synced: \(systemMessage(status))") }
        return names.count
    }

    private func place(
        _ name: Name,
        of folder: borrowing LocalFolder,
        in target: borrowing LocalFolder,
        as wanted: Name,
        isFine: Bool
    ) throws(ControlError) {
        guard let status = try folder.status(of: name) else { return }
        var free = wanted
        var number = 1
        while let present = try target.status(of: free) {
            // A numbered file may be the copy of an import that was killed before it removed the source.
            if number == 1 || status.mode & S_IFMT != S_IFDIR,
                try merge(name, status, of: folder, in: target, with: free, present, isFine: isFine)
            {
                return
            }
            number += 1
            free = wanted.numbered(number)
        }
        let isCopied = try LocalFolder.status(of: target.raw, path: target.path).device != status.device
        if !isFine { try folder.adopt(name, status, isCopied: isCopied) }
        let failure = try folder.rename(name, to: target, as: free)
        switch failure {
        case 0: return
        case -EXDEV: try copy(name, of: folder, in: target, as: free)
        default:
            throw ControlError(
                "\(folder.path(of: name))",
                "cannot be moved into the container: \(systemMessage(failure))"
            )
        }
    }

    /// `true`: the tree has this already, and the source is gone. Folders are merged entry by entry.
    private func merge(
        _ name: Name,
        _ status: clinux_status,
        of folder: borrowing LocalFolder,
        in target: borrowing LocalFolder,
        with wanted: Name,
        _ present: clinux_status,
        isFine: Bool
    ) throws(ControlError) -> Bool {
        guard status.mode & S_IFMT == present.mode & S_IFMT else { return false }
        switch status.mode & S_IFMT {
        case S_IFDIR:
            let inner = try LocalFolder(opening: name, in: folder)
            let innerTarget = try LocalFolder(opening: wanted, in: target)
            for entry in try inner.names() {
                try place(entry, of: inner, in: innerTarget, as: entry, isFine: isFine)
            }
            try folder.remove(name, isFolder: true)
            return true
        case S_IFREG:
            guard status.size == present.size else { return false }
            let isEqual =
                try target.isPlaceholder(wanted)
                ? fill(wanted, in: target, from: name, of: folder)
                : LocalFolder.haveEqualContents(name, of: folder, wanted, of: target)
            guard isEqual else { return false }
        case S_IFLNK:
            guard try folder.linkTarget(name) == target.linkTarget(wanted) else { return false }
        default: return false
        }
        try synchronizeTree()
        // Syncing takes a while, and a program may have saved meanwhile.
        try folder.remove(name, ifStill: status)
        return true
    }

    /// What is dataless here becomes whole if the source has its content.
    private func fill(
        _ wanted: Name,
        in target: borrowing LocalFolder,
        from name: Name,
        of folder: borrowing LocalFolder
    ) throws(ControlError) -> Bool {
        let path = "\(folder.path(of: name))"
        let source = try folder.openFile(name)
        defer { close(source) }
        let targetDescriptor = target.raw
        do {
            guard let state = try replica.tree.observe(in: targetDescriptor, wanted),
                let placeholder = state.placeholder
            else { return false }
            let rows = try replica.database.synced(key: state.key)
            for row in rows {
                guard case .file(let file) = row.content, file.revision == placeholder.revision,
                    let content = file.content
                else { continue }
                let dataless = PlaceholderFile(
                    descriptor: try replica.tree.openFile(
                        in: targetDescriptor,
                        wanted,
                        expecting: state.key,
                        flags: O_RDWR
                    ),
                    placeholder: placeholder,
                    present: try replica.database.ranges(row.id, placeholder) ?? ByteRangeSet(),
                    key: state.key
                )
                guard try dataless.fill(from: source, content: content, key: key) else { return false }
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

    /// From another filesystem: the copy is whole, and on the disk, before it has a name in the tree; the source goes last.
    private func copy(
        _ name: Name,
        of folder: borrowing LocalFolder,
        in target: borrowing LocalFolder,
        as wanted: Name
    ) throws(ControlError) {
        let staging = LocalFolder(borrowing: replica.staging.descriptor, path: ControlPath(replica.stagingPath))
        let staged = try Name.staged()
        let copied: CopiedItem
        do throws(ControlError) {
            copied = try TreeCopy.copy(name, of: folder, to: staging, as: staged)
            try synchronizeTree()
        } catch {
            try? replica.staging.remove(staged.description)
            throw error
        }
        let failure = try staging.rename(staged, to: target, as: wanted)
        guard failure == 0 else {
            throw ControlError(
                "\(folder.path(of: name))",
                "cannot be moved into the container: \(systemMessage(failure))"
            )
        }
        try synchronizeTree()
        try TreeCopy.remove(copied, of: folder)
    }

    /// Staging and tree are on one filesystem.
    private func synchronizeTree() throws(ControlError) {
        let status = clinux_syncfs(replica.staging.descriptor)
        guard status == 0 else { throw ControlError(replica.directory, "cannot be synced: \(systemMessage(status))") }
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
