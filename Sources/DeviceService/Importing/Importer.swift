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
    let progress: @Sendable (ControlProgress) -> Void

    // MARK: - Looking

    func check(home: HomeDirectories) throws(ControlError) {
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
        try check(root, device: device)
    }

    private func check(_ folder: borrowing LocalFolder, device: UInt64) throws(ControlError) {
        for name in try folder.names() {
            let path = folder.path(of: name)
            guard let status = try folder.status(of: name) else { continue }
            if status.device != device {
                throw ControlError("\(path)", "another filesystem is mounted there", remedy: "unmount it first")
            }
            switch status.mode & S_IFMT {
            case S_IFREG:
                if try folder.isPlaceholder(name) {
                    throw ControlError(
                        "\(path)",
                        "it is a placeholder of another container: its content is not here",
                        remedy: "remove it, or download it where it comes from"
                    )
                }
            case S_IFDIR: try check(try LocalFolder(opening: name, in: folder), device: device)
            default: break
            }
        }
    }

    // MARK: - Moving

    /// - Returns: how many entries of the folder were moved.
    func run() throws(ControlError) -> Int {
        let folder = try LocalFolder(opening: source)
        let tree = LocalFolder(borrowing: replica.tree.rootDescriptor, path: ControlPath(replica.treePath))
        let names = try folder.names()
        for (index, name) in names.enumerated() {
            progress(ControlProgress("importing", done: Int64(index), total: Int64(names.count), unit: .files))
            let isReserved = name.bytes == Array(".versions".utf8)
            try place(name, of: folder, in: tree, as: isReserved ? name.numbered(2) : name)
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
        as wanted: Name
    ) throws(ControlError) {
        guard let status = try folder.status(of: name) else { return }
        if let present = try target.status(of: wanted) {
            if try merge(name, status, of: folder, in: target, with: wanted, present) { return }
            var number = 2
            while try target.status(of: wanted.numbered(number)) != nil { number += 1 }
            return try place(name, of: folder, in: target, as: wanted.numbered(number))
        }
        try folder.adopt(name, status)
        let failure = try folder.rename(name, to: target, as: wanted)
        switch failure {
        case 0: return
        case -EXDEV: try copy(name, of: folder, in: target, as: wanted)
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
        _ present: clinux_status
    ) throws(ControlError) -> Bool {
        guard status.mode & S_IFMT == present.mode & S_IFMT else { return false }
        switch status.mode & S_IFMT {
        case S_IFDIR:
            let inner = try LocalFolder(opening: name, in: folder)
            let innerTarget = try LocalFolder(opening: wanted, in: target)
            for entry in try inner.names() { try place(entry, of: inner, in: innerTarget, as: entry) }
            try folder.remove(name, isFolder: true)
            return true
        case S_IFREG:
            guard status.size == present.size, try !target.isPlaceholder(wanted),
                try LocalFolder.haveEqualContents(name, of: folder, wanted, of: target)
            else { return false }
        case S_IFLNK:
            guard try folder.linkTarget(name) == target.linkTarget(wanted) else { return false }
        default: return false
        }
        try synchronizeTree()
        try folder.remove(name, isFolder: false)
        return true
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
