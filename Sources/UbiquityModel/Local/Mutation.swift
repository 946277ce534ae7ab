package import struct SystemPackage.Errno

/// A change that the engine makes to the tree: one act, checked in the handler of that very act (architecture section 3.5).
package enum Mutation: Sendable {
    /// One rename from the staging folder.
    case publish(staged: String, parent: InodeKey, name: Name, expecting: Expectation)
    /// One exchange with the staging folder: the package of before lies there then, under the name of the new one. Nobody may have anything
    /// in it open for writing; while it is patient, nor for reading, now or a moment ago.
    case replacePackage(staged: String, parent: InodeKey, name: Name, expecting: LocalEvidence, isPatient: Bool)
    /// One rename into the staging folder, to a name that is free there.
    case removePackage(parent: InodeKey, name: Name, expecting: LocalEvidence, isPatient: Bool, staged: String)
    /// unlink or rmdir.
    case remove(parent: InodeKey, name: Name, expecting: LocalEvidence, isFolder: Bool)
    /// The target must be free. Files that are open go on under the new name.
    case move(fromParent: InodeKey, fromName: Name, toParent: InodeKey, toName: Name, expecting: LocalEvidence)
    /// What is nil stays. On a dataless item the placeholder changes too.
    case setAttributes(
        parent: InodeKey,
        name: Name,
        expecting: LocalEvidence,
        modified: Timestamp?,
        mode: UInt16?,
        extended: (set: [[UInt8]: [UInt8]], remove: [[UInt8]])?
    )
}

/// What a name must stand for when something is published there.
///
/// An inode is compared by key, size, modification and change time, and no writable handle may be open on it. Of a folder only the key
/// counts (its times change with its entries), of a dataless file the change time does not (filling moves it).
package enum Expectation: Hashable, Sendable {
    case absent
    case inode(LocalEvidence)
}

package struct MutationResult: Hashable, Sendable {
    /// The item after the act; nil after a removal.
    package let state: LocalState?
    /// False if the item may hold something that was not expected, so that `state` is no evidence of what was agreed on: a moved file
    /// that a program has written to, or is writing to.
    package var isUnchanged: Bool

    package init(state: LocalState?, isUnchanged: Bool = true) {
        self.state = state
        self.isUnchanged = isUnchanged
    }
}

package enum MutationFailure: Error, Hashable, Sendable {
    /// Something else is there: plan again.
    case stale
    /// A program has it open (for writing; for an eviction, at all), or is truncating it.
    case busy
    case notEmpty
    case system(Errno)
}

extension Errno {
    /// ESTALE: something else is there than was expected.
    package static var stale: Errno { .staleNFSFileHandle }
}

extension MutationFailure {
    /// What a failed system call of an act means.
    package init(_ error: Errno) {
        switch error {
        // The name, or a folder on the way, is not what it was.
        case .noSuchFileOrDirectory, .fileExists, .notDirectory, .isDirectory, .stale, .tooManySymbolicLinkLevels:
            self = .stale
        case .directoryNotEmpty: self = .notEmpty
        default: self = .system(error)
        }
    }
}

extension LocalEvidence {
    /// Whether an item is still as it was. Of a folder only the inode counts, since its times move with its entries; of a dataless file
    /// not the change time, since filling moves it.
    package func describes(_ state: LocalState) -> Bool {
        guard key == state.key else { return false }
        if state.kind == .folder { return true }
        // Whether files in it are here makes no difference.
        if let facts = state.facts { return size == state.size && changed == facts.fingerprint }
        guard size == state.size, modified == state.modified, isDataless == state.isDataless else { return false }
        return isDataless || changed == state.changed
    }
}
