package enum LocalKind: UInt8, Sendable, Hashable {
    case file, folder, symlink
    /// A fifo, socket or device: never synced.
    case other
}

/// What is in the backing tree at one moment: one inode's status, its key, and its placeholder if it is dataless.
package struct LocalState: Hashable, Sendable {
    package var key: InodeKey
    package var kind: LocalKind
    /// Bytes. For a dataless file this, `modified` and `mode` are the placeholder's: the inode's own are no evidence of
    /// anything.
    package var size: Int64
    package var modified: Timestamp
    /// The inode's change time.
    package var changed: Timestamp
    /// The true permission bits, 0o777 at most, also where the inode keeps more (`InodeMode`).
    package var mode: UInt16
    package var linkCount: UInt64
    package var placeholder: Placeholder?
    /// False: it has no attributes that are sent, as nearly all have none. Nobody need ask for them.
    package var mayHaveAttributes: Bool

    package init(
        key: InodeKey,
        kind: LocalKind,
        size: Int64,
        modified: Timestamp,
        changed: Timestamp,
        mode: UInt16,
        linkCount: UInt64,
        placeholder: Placeholder?,
        mayHaveAttributes: Bool = true
    ) {
        self.key = key
        self.kind = kind
        self.size = size
        self.modified = modified
        self.changed = changed
        self.mode = mode
        self.linkCount = linkCount
        self.placeholder = placeholder
        self.mayHaveAttributes = mayHaveAttributes
    }

    package var isDataless: Bool { placeholder != nil }
}

/// What the state database remembers of an inode, to tell later whether it is still as it was when it was agreed on.
package struct LocalEvidence: Hashable, Sendable {
    package var key: InodeKey
    package var size: Int64
    package var modified: Timestamp
    package var changed: Timestamp
    package var isDataless: Bool

    package init(key: InodeKey, size: Int64, modified: Timestamp, changed: Timestamp, isDataless: Bool) {
        self.key = key
        self.size = size
        self.modified = modified
        self.changed = changed
        self.isDataless = isDataless
    }

    package init(_ state: LocalState) {
        self.init(
            key: state.key,
            size: state.size,
            modified: state.modified,
            changed: state.changed,
            isDataless: state.isDataless
        )
    }
}
