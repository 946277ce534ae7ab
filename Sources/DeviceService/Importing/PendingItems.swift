internal import CLinux
internal import Glibc
internal import Replica
internal import UbiquityControl
internal import UbiquityModel

/// What an import has yet to do with the items that it has looked at: a few hundred of them share what takes long, the syncs.
///
/// 1. `add` takes a source that the tree has already, a copy that waits in the staging folder, or a folder that has been gone through.
/// 2. `settle`: all contents are on the disk; the copies get their names in the tree; these are on the disk; only then the sources go.
///    Each goes only where it is still what was copied or compared, and no program is about to write to it.
/// 3. `discard`, if the import ends before that: the sources are all in their places.
///
/// Killed at any moment, an import finds each item at one place, or at both and equal.
final class PendingItems {
    struct Item {
        /// The source's.
        let name: Name
        let folder: LocalFolder
        /// As what it was copied or compared.
        let status: clinux_status
        let rest: Rest
    }

    enum Rest {
        /// The tree has it, as these items.
        case source([ItemID])
        /// Its copy in the staging folder is to be in the tree, as `wanted`, or with the first number from this one on that is free there.
        case copy(staged: Name, target: LocalFolder, wanted: Name, number: Int)
        /// All of its entries were added before it.
        /// - Parameter made: the tree's, which the import has made: it is to have the source's times.
        case folder(made: LocalFolder)
        /// The same of one that the tree had, as these items.
        case mergedFolder([ItemID])

        fileprivate var isFolder: Bool {
            switch self {
            case .folder, .mergedFolder: true
            case .source, .copy: false
            }
        }

        fileprivate var items: [ItemID] {
            switch self {
            case .source(let items), .mergedFolder(let items): items
            case .folder, .copy: []
            }
        }
    }

    /// Each item keeps up to two folders open.
    private static let itemLimit = 400
    /// What is lost of the work if it ends early.
    private static let byteLimit: Int64 = 64 << 20

    private let replica: Replica
    private let staging: LocalFolder
    private var items: [Item] = []
    private var stagedBytes: Int64 = 0

    init(_ replica: Replica, staging: LocalFolder) {
        self.replica = replica
        self.staging = staging
    }

    func add(_ item: Item) throws(ControlError) {
        items.append(item)
        if case .copy = item.rest { stagedBytes += item.status.size }
        if items.count >= Self.itemLimit || stagedBytes >= Self.byteLimit { try settle() }
    }

    func settle() throws(ControlError) {
        guard !items.isEmpty else { return }
        try noteImported(items.flatMap(\.rest.items))
        try synchronizeTree()
        var isChanged = false
        for item in items where try complete(item) { isChanged = true }
        if isChanged { try synchronizeTree() }
        for item in items {
            if item.rest.isFolder {
                try item.folder.remove(item.name, isFolder: true)
            } else {
                try item.folder.remove(item.name, ifStill: item.status)
            }
        }
        items = []
        stagedBytes = 0
    }

    func discard() {
        for item in items {
            // What has got its name in the tree is not there any more, which is no error.
            if case .copy(let staged, _, _, _) = item.rest { try? replica.staging.remove(staged.description) }
        }
        items = []
        stagedBytes = 0
    }

    /// Others may have deleted them, and this device has not heard of it: then what is imported is not what they have deleted.
    private func noteImported(_ ids: [ItemID]) throws(ControlError) {
        guard !ids.isEmpty else { return }
        do throws(ReplicaError) { try replica.database.setImported(true, ids) } catch {
            throw ControlError(replica.directory, "\(error)")
        }
    }

    /// Staging and tree are on one filesystem, and so is the database.
    func synchronizeTree() throws(ControlError) {
        let status = clinux_syncfs(staging.raw)
        guard status == 0 else { throw ControlError(replica.directory, "cannot be synced: \(systemMessage(status))") }
    }

    /// Whether there was something to be done in the tree.
    private func complete(_ item: Item) throws(ControlError) -> Bool {
        switch item.rest {
        case .source, .mergedFolder: return false
        case .folder(let made):
            try ItemCopy.setTimes(of: made, item.status)
            return true
        case .copy(let staged, let target, let wanted, var number):
            while true {
                let failure = try staging.rename(staged, to: target, as: number == 1 ? wanted : wanted.numbered(number))
                if failure == 0 { return true }
                guard failure == -EEXIST else {
                    throw .notMoved(item.folder.path(of: item.name), failure)
                }
                // An item that was added before it has got the name.
                number += 1
            }
        }
    }
}

extension ControlError {
    static func notMoved(_ path: ControlPath, _ code: Int32) -> ControlError {
        ControlError("\(path)", "cannot be moved into the container: \(systemMessage(code))")
    }
}
