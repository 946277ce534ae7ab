package import UbiquityModel

/// What the commit rules look up in a container, inside the transaction that they decide about.
package protocol CommitView {
    associatedtype Failure: Error

    /// The item as it is, tombstones included, with its unresolved conflict versions (those of tombstones too).
    func item(_ id: ItemID) throws(Failure) -> RemoteItem?
    /// A revision of any item of the container, whatever became of it. Announced contents are no revisions yet.
    func revision(_ id: RevisionID) throws(Failure) -> StoredRevision?
    /// Whether a content is one that an item has, or had and has kept as a version. What is discarded, or about to be, does not count: whoever
    /// brings it may have the last copy of it.
    func keeps(_ content: ContentID, _ item: ItemID) throws(Failure) -> Bool
    /// The live item of that name in that folder; in a case-insensitive container of a name that differs in case only. Announced items claim
    /// no name.
    func holder(of place: Place) throws(Failure) -> ItemID?
    /// Whether anything lives in the folder, announced items included.
    func hasLiveChildren(_ folder: ItemID) throws(Failure) -> Bool
    /// Whether the cloud has all chunks of the content, with the lengths that the manifest claims.
    func presence(of manifest: Manifest, content: ContentID) throws(Failure) -> ContentPresence
}

/// How much of a content is in the cloud.
package enum ContentPresence: Hashable, Sendable {
    /// Every chunk is durable.
    case whole
    /// These are not, each once, in the order of the manifest.
    case missing([ChunkID])
    /// A chunk is not as long as the manifest says, or the content is known with another manifest: readers would get other bytes
    /// than the size promises.
    case contradicted
}

/// One content that an item has or had. Nothing that was committed is ever forgotten by a commit: what is kept no longer
/// (`RetentionRules`) stays as an ancestor, without its content.
package struct StoredRevision: Hashable, Sendable {
    package var item: ItemID
    /// Its kind says what became of it: current, unresolved conflict, or saved.
    package var version: ItemVersion
    /// The revision that its author had seen.
    package var base: RevisionID?
    /// A saved version that lost a conflict, which somebody has resolved.
    package var isResolved: Bool
    /// A saved version that nobody wants to be kept: whoever replaced it did not, or it was removed.
    package var isUnwanted: Bool
    /// It can only be compared with: its content is not kept any more.
    package var isDiscarded: Bool

    package init(
        item: ItemID,
        version: ItemVersion,
        base: RevisionID?,
        isResolved: Bool = false,
        isUnwanted: Bool = false,
        isDiscarded: Bool = false
    ) {
        self.item = item
        self.version = version
        self.base = base
        self.isResolved = isResolved
        self.isUnwanted = isUnwanted
        self.isDiscarded = isDiscarded
    }
}

/// Everything besides the catalogue that a decision depends on: who commits, and when.
package struct CommitContext: Hashable, Sendable {
    /// The device's name, for people.
    package var device: String
    /// The server's clock.
    package var now: Timestamp
    /// The device's clock when it sent the batch; zero if it did not say.
    package var deviceClock: Timestamp
    /// The account's quota is used up: what needs new chunks is refused.
    package var isQuotaExceeded: Bool
    /// What the device replaces, having seen it, is not wanted as a saved version.
    package var discardsFormer: Bool

    package init(
        device: String,
        now: Timestamp,
        deviceClock: Timestamp,
        isQuotaExceeded: Bool = false,
        discardsFormer: Bool = false
    ) {
        self.device = device
        self.now = now
        self.deviceClock = deviceClock
        self.discardsFormer = discardsFormer
        self.isQuotaExceeded = isQuotaExceeded
    }

    /// The time of a change on its device, corrected by the difference of the clocks and never later than now.
    package func corrected(_ edited: Timestamp) -> Timestamp {
        guard deviceClock.nanoseconds != 0 else { return min(edited, now) }
        let (offset, offsetOverflow) = now.nanoseconds.subtractingReportingOverflow(deviceClock.nanoseconds)
        let (time, overflow) = edited.nanoseconds.addingReportingOverflow(offset)
        guard !offsetOverflow, !overflow else { return min(edited, now) }
        return min(Timestamp(nanoseconds: time), now)
    }
}

/// What is to be done about one operation.
package enum CommitDecision: Hashable, Sendable {
    /// Nothing changes.
    case answer(OperationOutcome)
    /// The answer is `committed` with the changed item.
    case change(CommitChange)
}

/// What a commit writes: always exactly one item, which gets the next log position.
package struct CommitChange: Hashable, Sendable {
    /// The item as it will be, but for its position.
    package var item: RemoteItem
    /// Revisions to insert, or to write over by their id.
    package var revisions: [StoredRevision]
    /// A content that may be new to the container. Kept as long as any version needs it.
    package var content: NewContent?

    package struct NewContent: Hashable, Sendable {
        package var id: ContentID
        package var manifest: Manifest

        package init(id: ContentID, manifest: Manifest) {
            self.id = id
            self.manifest = manifest
        }
    }

    package init(item: RemoteItem, revisions: [StoredRevision] = [], content: NewContent? = nil) {
        self.item = item
        self.revisions = revisions
        self.content = content
    }
}
