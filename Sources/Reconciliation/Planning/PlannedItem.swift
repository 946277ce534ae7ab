package import UbiquityModel

/// The synced tree's row of an item: the last state on which this device and the server agreed.
package struct AgreedItem: Hashable, Sendable {
    package var place: Place
    package var content: ItemContent
    package var attributes: ItemAttributes

    package init(place: Place, content: ItemContent, attributes: ItemAttributes) {
        self.place = place
        self.content = content
        self.attributes = attributes
    }

    package init(_ remote: RemoteItem) {
        self.init(place: remote.place, content: remote.content, attributes: remote.attributes)
    }
}

/// An item as it was found in the backing tree.
package struct LocalItem: Hashable, Sendable {
    package var place: Place
    package var content: LocalContent
    package var attributes: ItemAttributes
    /// A folder's mtime follows its entries; it counts only when a program has set it (semantics section 3).
    package var timeWasSet: Bool
    /// The extended attributes were read. They are only when something says that they may have changed.
    package var extendedKnown: Bool

    package init(
        place: Place,
        content: LocalContent,
        attributes: ItemAttributes,
        timeWasSet: Bool = true,
        extendedKnown: Bool = true
    ) {
        self.place = place
        self.content = content
        self.attributes = attributes
        self.timeWasSet = timeWasSet
        self.extendedKnown = extendedKnown
    }
}

/// What is known of a local item's content, from the least to the most expensive way to know it.
package enum LocalContent: Hashable, Sendable {
    case folder
    case symlink(target: [UInt8])
    /// A file whose evidence (inode, size, times) is that of the synced row: its bytes are the agreed ones, here or not.
    case unchanged
    /// A placeholder: the bytes of this revision, not here.
    case dataless(RevisionID, size: Int64)
    /// A file whose evidence differs and whose bytes have not been read.
    case unread(size: Int64)
    /// A file that was read.
    case read(ContentID, size: Int64)

    package var kind: ItemKind {
        switch self {
        case .folder: .folder
        case .symlink: .symlink
        case .unchanged, .dataless, .unread, .read: .file
        }
    }
}
