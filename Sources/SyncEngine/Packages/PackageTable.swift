import Reconciliation
import Replica
import Synchronization
import SystemPackage
import UbiquityModel

/// Which folders of a container are packages (semantics section 5).
///
/// A folder that is an item stays what it was when that began, unless it gets a name or the attribute of a package, which it had not; so that
/// nothing changes for what was in the cloud before its extension was declared.
final class PackageTable: Sendable {
    private struct State: Sendable {
        var declaration = PackageDeclaration()
        var rules = PackageRules()
        /// Folders that may be packages whatever their names: items that are, those with the attribute, and those that were taken for one.
        var marked: Set<InodeKey> = []
        /// Packages of the cloud that were made here: what they are does not depend on what this device takes for one, also before their
        /// rows are written.
        var made: Set<InodeKey> = []
    }

    private let replica: Replica
    /// Memory work only; a leaf in the order of locks.
    private let state = Mutex(State())

    init(replica: Replica) { self.replica = replica }

    /// Blocks on the database.
    func load() throws(ReplicaError) {
        let keys = try replica.database.syncedPackages().compactMap { $0.local?.key }
        state.withLock { $0.marked.formUnion(keys) }
    }

    var rules: PackageRules { state.withLock { $0.rules } }

    /// What the container declares, as far as this device has been told.
    var declaration: PackageDeclaration { state.withLock { $0.declaration } }

    func declare(_ change: (PackageDeclaration) -> PackageDeclaration) {
        state.withLock { state in
            state.declaration = change(state.declaration)
            state.rules = PackageRules(state.declaration)
        }
    }

    /// A package of the cloud is about to appear.
    func noteMade(_ key: InodeKey) {
        state.withLock { state in
            state.made.insert(key)
            state.marked.insert(key)
        }
    }

    /// The outermost package that a folder is, or lies in.
    func package(around folder: InodeKey) throws -> LocalPlace? {
        guard folder != replica.tree.rootKey else { return nil }
        var suspects: [(key: InodeKey, place: LocalPlace)] = []
        var next = folder
        // A stale entry could close a circle: no folder is deeper than there are folders.
        for _ in 0...replica.folders.count {
            guard let entry = replica.folders.entry(next) else { break }
            if maybe(next, entry.name) {
                suspects.append((next, LocalPlace(folder: entry.parent, name: entry.name)))
            }
            next = entry.parent
        }
        for (key, place) in suspects.reversed() {
            let isMarked = state.withLock { $0.marked.contains(key) }
            guard try isPackage(key, place.name, hasAttribute: isMarked) else { continue }
            // What changes in it is told of as the package's: should it be none when it is looked at, that is known.
            _ = state.withLock { $0.marked.insert(key) }
            return place
        }
        return nil
    }

    /// Whether a folder of that name may be a package.
    func maybePackage(_ name: Name) -> Bool { state.withLock { !$0.marked.isEmpty || $0.rules.isPackage(name) } }

    private func maybe(_ key: InodeKey, _ name: Name) -> Bool {
        state.withLock { $0.rules.isPackage(name) || $0.marked.contains(key) }
    }

    /// The folder at a name as a package; `nil` if it is none.
    /// - Parameters:
    ///   - directory: in which the name is.
    ///   - ceased: called if it was taken for one before, by a name or by rules that it has no more: of what lies in it nobody has told.
    ///   - files: gets the inodes of the files in it.
    func state(
        of folder: LocalState,
        in directory: Int32,
        _ name: Name,
        ceased: () -> Void,
        files: ([InodeKey]) -> Void
    ) throws -> LocalState? {
        guard folder.kind == .folder, folder.key != replica.tree.rootKey else { return nil }
        var hasAttribute = false
        var opened: OwnedDescriptor?
        if folder.mayHaveAttributes {
            let descriptor = try replica.tree.openAny(in: directory, name)
            hasAttribute = try ExtendedAttributes.get(descriptor.raw, ExtendedAttributes.package) != nil
            opened = consume descriptor
        }
        guard hasAttribute || maybe(folder.key, name),
            try isPackage(folder.key, name, hasAttribute: hasAttribute)
        else {
            if state.withLock({ $0.marked.remove(folder.key) }) != nil { ceased() }
            return nil
        }
        _ = state.withLock { $0.marked.insert(folder.key) }
        let descriptor: OwnedDescriptor
        if let opened = opened.take() {
            descriptor = opened
        } else {
            descriptor = try replica.tree.openAny(in: directory, name)
        }
        guard try InodeKey(descriptor: descriptor.raw) == folder.key else { throw Errno.stale }
        let tree = try PackageTree(folder: descriptor.raw, root: folder)
        files(tree.entries.lazy.filter { $0.state.kind == .file }.map(\.state.key))
        return tree.state
    }

    private func isPackage(_ key: InodeKey, _ name: Name, hasAttribute: Bool) throws -> Bool {
        let rules = rules
        let isSaid = hasAttribute || rules.isPackage(name)
        for row in try replica.database.synced(key: key) {
            switch row.content.kind {
            case .package: return true
            case .folder:
                let wasSaid =
                    rules.isPackage(row.place.name)
                    || row.attributes.extended[Array(ExtendedAttributes.package.utf8)] != nil
                return isSaid && !wasSaid
            case .file, .symlink: break
            }
        }
        return isSaid || state.withLock { $0.made.contains(key) }
    }
}
