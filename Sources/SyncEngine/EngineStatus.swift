package import UbiquityModel

/// What `ubiquity status` tells of a container.
package struct EngineStatus: Sendable {
    package enum Connection: String, Sendable {
        case connected, connecting, offline, unreachable, revoked
        case signedOut = "signed-out"
    }

    package var connection: Connection
    /// Why it is unreachable, in words.
    package var connectionProblem: String?
    /// Items agreed on, without the root.
    package var itemCount: Int
    /// Pieces of work that wait or run; after signing out, changes that have not been sent.
    package var pendingCount: Int
    package var conflictCount: Int
    /// Of the unresolved versions of all items.
    package var conflictBytes: Int64 = 0
    /// Whose unresolved versions take most, first.
    package var largestConflicts: [ConflictSize] = []
    package var transfers: [TransferStatus]
    /// What cannot sync, and why.
    package var problems: [ItemProblem]
    /// Deletions that wait for `deleted confirm` or `deleted undo`.
    package var heldDeletionCount: Int
    package var bytesSent: Int64
    package var bytesReceived: Int64
    /// `nil`: nothing was set.
    package var keeping: KeepingStatus?
}

/// What the unresolved versions of an item take in the cloud.
package struct ConflictSize: Sendable {
    package var path: ItemPath
    package var count: Int
    package var bytes: Int64
}

/// What of the content is here, where something comes or goes by itself.
package struct KeepingStatus: Sendable {
    package var localBytes: Int64 = 0
    package var limitBytes: Int64?
    package var unusedLimit: Duration?
    package var isGreedy: Bool
    /// What is to come by itself, and has not.
    package var missingCount = 0
    package var missingBytes: Int64 = 0
    /// Why it does not, in words.
    package var obstacle: String?
}

package struct ItemProblem: Hashable, Sendable {
    package var path: String
    package var reason: String
}

/// One item's state, for people and scripts (semantics section 2).
package struct ItemStatus: Sendable {
    package enum State: String, Sendable {
        case current, downloaded, dataless, downloading, uploading, waiting
        case localOnly = "local-only"
    }

    package var path: ItemPath
    package var kind: ItemKind?
    package var state: State
    package var conflictCount: Int
    /// 0 to 100: how much of a transfer is done, or of the content here.
    package var percent: Int
    package var sizeBytes: Int64
    package var localBytes: Int64
    package var revision: RevisionID?
    package var isPinned: Bool
    package var error: String?
    package var reason: String?
    /// The device that has told of it, and has not sent its content yet; `nil` if the content is in the cloud, or is to be sent from here.
    package var awaitedFrom: String?
}

package struct TransferStatus: Sendable {
    package enum Direction: String, Sendable { case upload, download }
    package var path: String
    package var direction: Direction
    package var bytesDone: Int64
    package var bytesTotal: Int64
}

package struct TransferProgress: Sendable {
    package var bytesDone: Int64
    package var bytesTotal: Int64
    package var filesDone: Int
    package var filesTotal: Int
}

/// What came of evicting one file.
package struct EvictOutcome: Sendable {
    package var path: ItemPath
    /// `nil`: its content is not here any more.
    package var refusal: String?
    /// The refusal may pass: offline, open, not sent yet.
    package var isTemporary: Bool
}

/// What `versions resolve` keeps.
package enum Keep: Hashable, Sendable {
    case current
    case version(RevisionID)
    case both
}
