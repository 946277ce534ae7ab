package enum LocalKind: UInt8, Sendable, Hashable {
    case file, folder, symlink
    /// A folder that is one document: nothing in it is an item of its own.
    case package
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
    /// It is one of several names of a file or symlink: each is an item of its own.
    package var hasOtherNames: Bool { linkCount > 1 && (kind == .file || kind == .symlink) }
    package var placeholder: Placeholder?
    /// False: it has no attributes that are sent, as nearly all have none. Nobody need ask for them.
    package var mayHaveAttributes: Bool
    /// Of a package.
    package var facts: PackageFacts?

    package init(
        key: InodeKey,
        kind: LocalKind,
        size: Int64,
        modified: Timestamp,
        changed: Timestamp,
        mode: UInt16,
        linkCount: UInt64,
        placeholder: Placeholder?,
        mayHaveAttributes: Bool = true,
        facts: PackageFacts? = nil
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
        self.facts = facts
    }

    /// Of a package, false: what of it is not here is part of what is known of it.
    package var isDataless: Bool { placeholder != nil }
    /// Not all of its content is here.
    package var lacksContent: Bool { isDataless || (facts?.datalessElements ?? 0) > 0 }
}

/// What was seen of all that lies in a package.
package struct PackageFacts: Hashable, Sendable {
    /// Of names, inodes, sizes, times, modes and attributes: it is another as soon as anything in the package is. In the place of a change
    /// time. Nothing of the folder itself is in it.
    package var fingerprint: Timestamp
    /// Files whose content is not here.
    package var datalessElements: Int
    /// Bytes of the files, and of those whose content is here.
    package var bytes: Int64
    package var localBytes: Int64
    /// When something in it last changed: any of its inodes, the folder's own among them.
    package var newestChange: Timestamp

    package init(
        fingerprint: Timestamp,
        datalessElements: Int,
        bytes: Int64,
        localBytes: Int64,
        newestChange: Timestamp
    ) {
        self.fingerprint = fingerprint
        self.datalessElements = datalessElements
        self.bytes = bytes
        self.localBytes = localBytes
        self.newestChange = newestChange
    }
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
            changed: state.facts?.fingerprint ?? state.changed,
            isDataless: state.facts.map { $0.datalessElements > 0 } ?? state.isDataless
        )
    }

    /// Of what was just made here, and whose changes nobody may hear of before this process ends: one in the same tick of the clock does not show
    /// in its times. The change time of what is whole, or a package, says that the cloud has it, and is kept.
    package init(unheard state: LocalState) {
        self.init(state)
        if state.kind == .folder || state.kind == .file && state.isDataless { self = untrusted }
    }

    /// The same, but that the next scan does not go by the times: it looks at the file whatever has become of it, and compares all that a
    /// placeholder tells.
    package var untrusted: LocalEvidence {
        LocalEvidence(
            key: key,
            size: size,
            modified: modified,
            changed: Timestamp(nanoseconds: 0),
            isDataless: isDataless
        )
    }
}
