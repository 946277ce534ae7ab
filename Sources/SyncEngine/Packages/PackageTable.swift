import Reconciliation
import Replica
import Synchronization
import SystemPackage
import UbiquityModel

/// Which folders of a container are packages (semantics section 5).
final class PackageTable: Sendable {
    private struct State: Sendable {
        var declaration = PackageDeclaration()
        var marks = PackageMarks()
    }

    private let replica: Replica
    /// Memory work only; a leaf in the order of locks.
    private let state = Mutex(State())

    init(replica: Replica) { self.replica = replica }

    /// Blocks on the database.
    func load() throws(ReplicaError) {
        let keys = try replica.database.syncedPackages().compactMap { $0.local?.key }
        state.withLock { state in for key in keys { state.marks.mark(key) } }
    }

    var rules: PackageRules { state.withLock { $0.marks.rules } }

    /// What the container declares, as far as this device has been told.
    var declaration: PackageDeclaration { state.withLock { $0.declaration } }

    func declare(_ change: (PackageDeclaration) -> PackageDeclaration) {
        state.withLock { state in
            state.declaration = change(state.declaration)
            state.marks.rules = PackageRules(state.declaration)
        }
    }

    /// A package of the cloud is about to appear.
    func noteMade(_ key: InodeKey) { state.withLock { $0.marks.noteMade(key) } }

    /// The engine has given a folder another name.
    func noteMoved(_ key: InodeKey) { state.withLock { $0.marks.noteMoved(key) } }

    /// The outermost package that a folder is, or lies in.
    func package(around folder: InodeKey) throws -> LocalPlace? { try outermost(around: folder)?.place }

    /// The same by its inode.
    func packageKey(around folder: InodeKey) throws -> InodeKey? { try outermost(around: folder)?.key }

    private func outermost(around folder: InodeKey) throws -> (key: InodeKey, place: LocalPlace)? {
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
            let isMarked = state.withLock { $0.marks.isMarked(key) }
            guard try isPackage(key, place.name, hasAttribute: isMarked) else { continue }
            // What changes in it is told of as the package's: should it be none when it is looked at, that is known.
            state.withLock { $0.marks.mark(key) }
            return (key, place)
        }
        return nil
    }

    /// Whether a folder of that name may be a package.
    func maybePackage(_ name: Name) -> Bool { state.withLock { $0.marks.maybe(name) } }

    private func maybe(_ key: InodeKey, _ name: Name) -> Bool { state.withLock { $0.marks.maybe(key, name) } }

    /// The folder at a name as a package; `nil` if it is none.
    /// - Parameters:
    ///   - directory: in which the name is.
    ///   - ceased: called if it was taken for one before, by a name or by rules that it has no more: of what lies in it nobody has told.
    ///   - files: gets the inodes of the files in it, and of those that have further names.
    func state(
        of folder: LocalState,
        in directory: Int32,
        _ name: Name,
        ceased: () -> Void,
        files: (_ all: [InodeKey], _ linked: [InodeKey]) -> Void
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
            if state.withLock({ $0.marks.unmark(folder.key) }) { ceased() }
            return nil
        }
        state.withLock { $0.marks.mark(folder.key) }
        let descriptor: OwnedDescriptor
        if let opened = opened.take() {
            descriptor = opened
        } else {
            descriptor = try replica.tree.openAny(in: directory, name)
        }
        guard try InodeKey(descriptor: descriptor.raw) == folder.key else { throw Errno.stale }
        let tree = try PackageTree(folder: descriptor.raw, root: folder)
        tree.noteFolders(in: replica.folders)
        let found = tree.entries.lazy.map(\.state).filter { $0.kind == .file }
        files(found.map(\.key), found.filter { $0.linkCount > 1 }.map(\.key))
        return tree.state
    }

    private func isPackage(_ key: InodeKey, _ name: Name, hasAttribute: Bool) throws -> Bool {
        let rows = try replica.database.synced(key: key)
        return state.withLock { $0.marks.isPackage(key, name, hasAttribute: hasAttribute, rows: rows) }
    }
}
