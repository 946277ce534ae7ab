/// What a device asks the server to commit. Each names what it was based on (architecture section 5).
package struct ItemOperation: Hashable, Sendable {
    package var id: OperationID
    package var item: ItemID
    package var action: Action
    /// Of an edit: nobody saw it being made. What was found here when the service started, after it had ended with everything sent, may be
    /// an old state that somebody has restored.
    package var isUnwitnessed: Bool
    /// Of an edit or a change of attributes: those that its author had seen. What is still as it was there is no change: if others have
    /// changed it since, theirs stays. `nil`: all of them are set.
    package var formerAttributes: ItemAttributes?
    /// Of an edit or a deletion: the target that its author had seen, if the item was a symlink. What links lead to has no versions: one that
    /// its author has not seen stays.
    package var formerTarget: [UInt8]?

    package init(
        id: OperationID,
        item: ItemID,
        action: Action,
        isUnwitnessed: Bool = false,
        formerAttributes: ItemAttributes? = nil,
        formerTarget: [UInt8]? = nil
    ) {
        self.id = id
        self.item = item
        self.action = action
        self.isUnwitnessed = isUnwitnessed
        self.formerAttributes = formerAttributes
        self.formerTarget = formerTarget
    }

    package enum Action: Hashable, Sendable {
        /// A new item. A file's content must be in the cloud; the answer is `missingChunks` otherwise.
        case create(
            place: Place,
            content: ItemContent,
            attributes: ItemAttributes,
            manifest: Manifest,
            edited: Timestamp
        )
        /// Name, size and times of a new file whose content comes later, by `create` with the same item and revision.
        case announce(place: Place, content: FileContent, attributes: ItemAttributes)
        /// New content for an item: a file's, or a symlink's target. `base` is the revision that its author had seen.
        case edit(
            base: RevisionID?,
            content: ItemContent,
            attributes: ItemAttributes,
            manifest: Manifest,
            edited: Timestamp
        )
        case move(to: Place)
        /// Attributes that are nil stay. `extended` replaces the whole set.
        case setAttributes(modified: Timestamp?, mode: UInt16?, extended: [[UInt8]: [UInt8]]?)
        /// `base` is the file's revision that was deleted, `nil` for folders and symlinks; `conflicts` are the conflict versions that its
        /// author knew. A newer revision survives, and so does what has got another conflict version since.
        case delete(base: RevisionID?, conflicts: [RevisionID] = [])
        /// Brings a deleted folder or symlink back (a file comes back by an `edit`), for a new item that lies in it.
        case revive(place: Place, attributes: ItemAttributes)
        /// Marks conflict versions as resolved. `winner`, if not the current revision, becomes the file's content. `base` is the
        /// current revision that the author saw: another one that the winner displaces becomes a conflict version, not a saved one.
        case resolve(versions: [RevisionID], winner: RevisionID?, base: RevisionID?)
        /// A version (saved or conflict) becomes the content; what was in the file becomes a saved version, or a conflict version
        /// if it is not `base`, the current revision that the author saw.
        case restore(version: RevisionID, as: RevisionID, base: RevisionID?, edited: Timestamp)
        /// Brings an item back from recently deleted, at its old place or, if that is taken or gone, where the server says.
        case undelete
        /// Nobody wants these saved versions any more. Conflict versions stay: they are resolved.
        case discard(versions: [RevisionID])
    }
}

/// The server's answer to one operation.
package enum OperationOutcome: Hashable, Sendable {
    /// The item's state after the commit. With a conflict it shows the winner, whoever that is.
    case committed(RemoteItem)
    /// Nothing was committed: these chunks of the manifest are not in the cloud.
    case missingChunks([ChunkID])
    /// Another item has that name: propose the next.
    case nameTaken(by: ItemID)
    /// The folder of the place does not exist (any more): revive it first.
    case parentMissing
    /// A folder that still has live items in it is not deleted.
    case notEmpty
    /// The move would put a folder into itself.
    case cycle
    /// The item is not known, or an announcement or a version is of one that is deleted.
    case noSuchItem
    /// The deletion was based on an older revision, or there is a conflict version that its author did not know: the edit survives. Or what was
    /// to get another name or attributes is deleted. Carries the item as it is.
    case superseded(RemoteItem)
    /// The account's quota is used up: nothing was committed.
    case quotaExceeded
    /// The operation makes no sense (a name that is none, a target that is too long): never sent again.
    case invalid(String)
    /// An earlier operation of the batch, on which this one depends, was not committed.
    case skipped
}
