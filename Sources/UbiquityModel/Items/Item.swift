package enum ItemKind: UInt8, Sendable, Hashable {
    case file = 1
    case folder = 2
    case symlink = 3
    /// A folder that is one document (semantics section 5).
    case package = 4
}

/// What is sent of an item besides its content and its place. "Per attribute the last change wins" (semantics section 3).
package struct ItemAttributes: Hashable, Sendable {
    package var modified: Timestamp
    /// Permission bits, 0o777 at most: setuid, setgid and sticky are not sent.
    package var mode: UInt16
    /// `user.*` attributes other than our own (`user.ubiquity.package` is synced), by full name.
    package var extended: [[UInt8]: [UInt8]]

    /// Of one item together, names and values (semantics section 3). What is more stays on its device, and its owner is told.
    package static let longestExtended = 64 * 1024
    /// Names and values together.
    package var extendedBytes: Int { extended.reduce(0) { $0 + $1.key.count + $1.value.count } }

    package init(modified: Timestamp, mode: UInt16, extended: [[UInt8]: [UInt8]] = [:]) {
        self.modified = modified
        self.mode = mode & 0o777
        self.extended = extended
    }

    /// Mode and attributes as their author changed them, and the rest as others have it by now (semantics section 3: per attribute the last
    /// change wins). The time is that of the content.
    package func merged(since former: ItemAttributes, into current: ItemAttributes) -> ItemAttributes {
        var merged = self
        if mode == former.mode { merged.mode = current.mode }
        merged.extended = current.extended
        for name in Set(extended.keys).union(former.extended.keys) where extended[name] != former.extended[name] {
            merged.extended[name] = extended[name]
        }
        return merged
    }
}

/// The content of an item at one revision.
package enum ItemContent: Hashable, Sendable {
    case folder
    /// The link's target, 1 to 4095 bytes without NUL.
    case symlink(target: [UInt8])
    /// A file, or a package: that is one content too, of which only devices know what it is made of.
    case file(FileContent)

    package var kind: ItemKind {
        switch self {
        case .folder: .folder
        case .symlink: .symlink
        case .file(let file): file.isPackage ? .package : .file
        }
    }

    /// A file's or package's revision; `nil` for anything else.
    package var revision: RevisionID? {
        if case .file(let file) = self { return file.revision }
        return nil
    }

    package var size: Int64 {
        switch self {
        case .folder: 0
        case .symlink(let target): Int64(target.count)
        case .file(let content): content.size
        }
    }
}

package struct FileContent: Hashable, Sendable {
    package var revision: RevisionID
    /// `nil` while only announced: the content has not reached the cloud.
    package var content: ContentID?
    /// Bytes. Of a package, those of its index and of all that lies in it.
    package var size: Int64
    /// The content is that of a package: an index, and what lies in it.
    package var isPackage: Bool

    package init(revision: RevisionID, content: ContentID?, size: Int64, isPackage: Bool = false) {
        self.revision = revision
        self.content = content
        self.size = size
        self.isPackage = isPackage
    }
}

/// A name in a folder.
package struct Place: Hashable, Sendable {
    package var parent: ItemID
    package var name: Name

    package init(parent: ItemID, name: Name) {
        self.parent = parent
        self.name = name
    }
}

/// An item as the server last said: a row of the *remote* tree, an entry of the change feed.
package struct RemoteItem: Hashable, Sendable {
    package var id: ItemID
    package var place: Place
    package var content: ItemContent
    package var attributes: ItemAttributes
    /// The log position of its last change. Grows in the container, never repeats.
    package var position: UInt64
    /// A tombstone: the other fields are those at its deletion.
    package var isDeleted: Bool
    /// The device that last changed the content, for people.
    package var author: String
    /// When the content was changed (not the file's mtime).
    package var edited: Timestamp
    /// Unresolved conflict versions, oldest first.
    package var conflicts: [ItemVersion]

    package init(
        id: ItemID,
        place: Place,
        content: ItemContent,
        attributes: ItemAttributes,
        position: UInt64,
        isDeleted: Bool = false,
        author: String = "",
        edited: Timestamp = Timestamp(nanoseconds: 0),
        conflicts: [ItemVersion] = []
    ) {
        self.id = id
        self.place = place
        self.content = content
        self.attributes = attributes
        self.position = position
        self.isDeleted = isDeleted
        self.author = author
        self.edited = edited
        self.conflicts = conflicts
    }

    /// A file of which only name, size and times are known in the cloud yet.
    package var isAnnounced: Bool {
        if case .file(let file) = content { return file.content == nil }
        return false
    }
}

/// Another content of an item: a conflict's loser or an earlier one [NSFileVersion].
package struct ItemVersion: Hashable, Sendable {
    package enum Kind: UInt8, Sendable, Hashable {
        case current = 0
        case conflict = 1
        case saved = 2
    }

    package var revision: RevisionID
    package var kind: Kind
    package var content: ContentID
    package var size: Int64
    /// The time of the change on its device, corrected by the server's clock.
    package var edited: Timestamp
    package var modified: Timestamp
    /// The name of the device that wrote it [localizedNameOfSavingComputer].
    package var device: String
    /// The item's name at that time [localizedName].
    package var name: Name

    package init(
        revision: RevisionID,
        kind: Kind,
        content: ContentID,
        size: Int64,
        edited: Timestamp,
        modified: Timestamp,
        device: String,
        name: Name
    ) {
        self.revision = revision
        self.kind = kind
        self.content = content
        self.size = size
        self.edited = edited
        self.modified = modified
        self.device = device
        self.name = name
    }
}
