package import Reconciliation
package import UbiquityModel

/// A batch of operations, with the chunks that came along and are durable in the chunk store by now.
package struct CommitRequest: Sendable {
    package typealias Entry = CommitBatch.Entry

    package var chunks: [ChunkRecord]
    package var entries: [Entry]
    package var deviceClock: Timestamp
    /// What the device replaces becomes no saved version.
    package var discardsFormer: Bool
    /// That of the device's session, as far as it knows: that one has arrived. Empty: the present one has.
    package var nonce: [UInt8]
    package var now: Timestamp
    /// Chunks that came along were not stored, since they would pass the quota.
    package var isQuotaExceeded: Bool

    package init(
        chunks: [ChunkRecord] = [],
        entries: [Entry],
        deviceClock: Timestamp,
        discardsFormer: Bool = false,
        nonce: [UInt8] = [],
        now: Timestamp,
        isQuotaExceeded: Bool = false
    ) {
        self.chunks = chunks
        self.entries = entries
        self.deviceClock = deviceClock
        self.discardsFormer = discardsFormer
        self.nonce = nonce
        self.now = now
        self.isQuotaExceeded = isQuotaExceeded
    }
}

package struct CommitAnswer: Hashable, Sendable {
    /// One for each entry, in order.
    package var outcomes: [OperationOutcome]
    /// The container's newest position.
    package var position: LogPosition
    /// The container's number in the catalogue, for whoever tells its other devices.
    package var container: Int64
    /// Whether anything was committed.
    package var isChanged: Bool

    package init(outcomes: [OperationOutcome], position: LogPosition, container: Int64, isChanged: Bool) {
        self.outcomes = outcomes
        self.position = position
        self.container = container
        self.isChanged = isChanged
    }
}

/// Where a listing of deleted items stands: at the last item told of.
package struct DeletedPosition: Hashable, Sendable {
    package var deleted: Timestamp
    /// The item's log position, which tells items apart that were deleted at one time.
    package var position: UInt64

    package init(deleted: Timestamp, position: UInt64) {
        self.deleted = deleted
        self.position = position
    }
}

package struct DeletedPage: Hashable, Sendable {
    package var items: [DeletedItem] = []
    /// Further items follow.
    package var hasMore = false

    package init() {}
}

/// A page of the change feed.
package struct CatalogPage: Hashable, Sendable {
    package struct Entry: Hashable, Sendable {
        package var item: RemoteItem
        /// Of the current content, if it is short enough to go along.
        package var manifest: Manifest?

        package init(item: RemoteItem, manifest: Manifest?) {
            self.item = item
            self.manifest = manifest
        }
    }

    package var entries: [Entry] = []
    /// After this page.
    package var position: LogPosition
    /// Further items follow.
    package var hasMore = false
    /// The catalogue does not know the position that was asked from; nothing else is told.
    package var isUnknownPosition = false
    package var head: LogPosition
    /// The container's number in the catalogue.
    package var container: Int64
    /// What the container declares now.
    package var packages = PackageDeclaration()

    package init(position: LogPosition, isUnknownPosition: Bool = false, head: LogPosition, container: Int64) {
        self.position = position
        self.isUnknownPosition = isUnknownPosition
        self.head = head
        self.container = container
    }
}

/// What lies in some folders.
package struct ChildrenPage: Hashable, Sendable {
    package var entries: [CatalogPage.Entry] = []
    /// So many of the folders that were asked for are told whole.
    package var completeCount = 0
    /// Up to which name the folder after them is told; `nil`: nothing of it.
    package var last: Name?

    package init() {}
}
