internal import struct Synchronization.Mutex

/// Where each local folder is: from its inode to its parent's inode and its name there. In memory only.
///
/// The driver keeps it right as programs make, move and remove folders; the engine, where it scans or acts without a
/// mount.
package final class FolderIndex: Sendable {
    package struct Entry: Hashable, Sendable {
        package var parent: InodeKey
        package var name: Name
    }

    package let root: InodeKey
    /// A leaf: memory work only.
    private let entries = Mutex<[InodeKey: Entry]>([:])

    package init(root: InodeKey) { self.root = root }

    package var count: Int { entries.withLock { $0.count } }

    /// Adds a folder, or says anew where it is.
    package func insert(_ key: InodeKey, parent: InodeKey, name: Name) {
        guard key != root else { return }
        entries.withLock { $0[key] = Entry(parent: parent, name: name) }
    }

    /// Adds a folder that was found, unless it is known: then it may have moved since it was looked at.
    package func add(_ key: InodeKey, parent: InodeKey, name: Name) {
        guard key != root else { return }
        entries.withLock { entries in
            if entries[key] == nil { entries[key] = Entry(parent: parent, name: name) }
        }
    }

    /// A folder has moved; what lies below moves with it.
    package func move(_ key: InodeKey, parent: InodeKey, name: Name) { insert(key, parent: parent, name: name) }

    /// A folder is gone. What was below it has no path from now on.
    package func remove(_ key: InodeKey) { entries.withLock { _ = $0.removeValue(forKey: key) } }

    /// Says where a folder was found to be, or that it is nowhere, unless the driver has said something else since it was asked.
    /// - Parameters:
    ///   - former: where it was before it was looked for; `nil` if that was not known.
    ///   - place: `nil`: it is gone.
    /// - Returns: false if what has been said since stays.
    @discardableResult
    package func note(_ key: InodeKey, at place: LocalPlace?, unlessMovedFrom former: LocalPlace?) -> Bool {
        guard key != root else { return false }
        return entries.withLock { entries in
            guard entries[key] == former.map({ Entry(parent: $0.folder, name: $0.name) }) else { return false }
            entries[key] = place.map { Entry(parent: $0.folder, name: $0.name) }
            return true
        }
    }

    package func contains(_ key: InodeKey) -> Bool { key == root || entries.withLock { $0[key] != nil } }

    /// Where a folder is; `nil` for the root and for folders that are not known.
    package func entry(_ key: InodeKey) -> Entry? { entries.withLock { $0[key] } }

    /// The path of a folder, empty for the root; `nil` if it, or a folder above it, is not known.
    package func path(of key: InodeKey) -> ItemPath? {
        var names = [Name]()
        let known = entries.withLock { entries in
            var next = key
            while next != root {
                // A stale entry could close a circle: no path is longer than there are folders.
                guard let entry = entries[next], names.count <= entries.count else { return false }
                names.append(entry.name)
                next = entry.parent
            }
            return true
        }
        return known ? ItemPath(names.reversed()) : nil
    }
}
