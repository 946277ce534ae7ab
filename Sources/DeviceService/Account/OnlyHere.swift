internal import Glibc
internal import Replica
package import UbiquityControl
internal import UbiquityModel

/// What the cloud does not have of a container whose service has ended: asked before the local copy is deleted.
///
/// The running engine is asked first, and brings things to the cloud. But until the last mount is gone programs go on saving, so what
/// counts is a look at the disk after that.
package struct OnlyHere {
    /// Relative to the container.
    package private(set) var first: String?
    package private(set) var count = 0
    /// With changes of which sizes and times say nothing.
    private var changedPackages: Set<InodeKey> = []

    /// Looks through the whole tree. The replica is nobody's again afterwards.
    package init(in folder: ContainerFolder) throws(ControlError) {
        do {
            let replica = try Replica(directory: folder.path, isCaseInsensitive: folder.info.isCaseInsensitive)
            changedPackages = try replica.database.changedPackages()
            try look(replica.tree.openFolder(at: .root), .root, [], replica)
            try lookAtReplaced(replica)
        } catch let error as ReplicaError {
            throw ControlError(folder.info.id.text, error)
        } catch {
            throw ControlError(folder.info.id.text, "cannot be looked through: \(error)")
        }
    }

    private mutating func look(
        _ folder: borrowing OwnedDescriptor,
        _ item: ItemID,
        _ path: [Name],
        _ replica: Replica
    ) throws {
        for name in try replica.tree.names(in: folder.raw).sorted() {
            guard let state = try replica.tree.observe(in: folder.raw, name) else { continue }
            let place = Place(parent: item, name: name)
            let row = try replica.database.synced(key: state.key).first { $0.place == place }
            guard let row, try isInCloud(state, row, in: folder.raw, name) else {
                note(path + [name])
                continue
            }
            guard row.content == .folder else { continue }
            let inner = OwnedDescriptor(try replica.tree.openPath(in: folder.raw, name))
            try look(inner, row.id, path + [name], replica)
        }
    }

    /// What programs wrote in packages after those were replaced, and nobody has put beside them yet.
    private mutating func lookAtReplaced(_ replica: Replica) throws {
        for staged in try replica.staging.replacedPackages() {
            for written in try replica.staging.replacedPackage(staged)?.written ?? [] { note(written.path.names) }
        }
    }

    private mutating func note(_ path: [Name]) {
        if first == nil { first = path.map(\.description).joined(separator: "/") }
        count += 1
    }

    /// Whether an item is as it was agreed on, and its content has reached the cloud.
    private func isInCloud(
        _ state: LocalState,
        _ row: SyncedItem,
        in folder: Int32,
        _ name: Name
    ) throws -> Bool {
        guard let local = row.local, local.key == state.key else { return false }
        switch row.content {
        case .folder: return state.kind == .folder
        case .symlink: return state.kind == .symlink
        case .file(let file) where file.isPackage:
            guard state.kind == .folder, file.content != nil, !changedPackages.contains(state.key) else { return false }
            let opened = try OwnedDescriptor(in: folder, name, flags: O_RDONLY | O_DIRECTORY)
            return local.describes(try PackageTree(folder: opened.raw, root: state).state)
        case .file(let file):
            guard state.kind == .file else { return false }
            if state.isDataless { return true }
            guard file.content != nil, local.size == state.size, local.modified == state.modified else { return false }
            // Filled by reading since: only then the change time is another one.
            return local.isDataless || local.changed == state.changed
        }
    }
}
