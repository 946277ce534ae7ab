/// The state of items; of a folder also of everything in it: each folder before what lies in it, and names in their order.
///
/// The answer ends at the limit. If the last outcome in it has a `next`, that path has more items, which come when it is asked for first,
/// `after` that one; paths without an outcome are to be asked for as well.
package struct ItemStatusRequest: ControlRequest {
    package typealias Answer = [PathOutcome<[ItemReport]>]
    package static var verb: String { "item-status" }

    package var paths: [ItemArgument]
    /// Of the first path: the item that was told last.
    package var after: ControlPath?
    /// How many items are told at most; `nil`: all.
    package var limit: Int?

    package init(paths: [ItemArgument], after: ControlPath? = nil, limit: Int? = nil) {
        self.paths = paths
        self.after = after
        self.limit = limit
    }
}

package struct ItemReport: Codable, Sendable {
    package var path: ControlPath
    /// `file`, `folder`, `symlink`; `nil` for what is never synced.
    package var kind: String?
    /// The one word of semantics section 2.
    package var state: String
    package var conflicts: Int
    package var percent: Int
    package var size: Int64
    package var localBytes: Int64
    package var revision: String?
    package var isPinned: Bool
    package var error: String?
    /// Why it is not sent.
    package var reason: String?
    /// Another device has told of it, and has not sent its content yet; `nil` from a service that was started before there was this.
    package var isAwaited: Bool?

    package init(
        path: ControlPath,
        kind: String?,
        state: String,
        conflicts: Int,
        percent: Int,
        size: Int64,
        localBytes: Int64,
        revision: String?,
        isPinned: Bool,
        error: String?,
        reason: String?,
        isAwaited: Bool
    ) {
        self.path = path
        self.kind = kind
        self.state = state
        self.conflicts = conflicts
        self.percent = percent
        self.size = size
        self.localBytes = localBytes
        self.revision = revision
        self.isPinned = isPinned
        self.error = error
        self.reason = reason
        self.isAwaited = isAwaited
    }
}

/// Fetches the content of items, and of everything in folders.
package struct DownloadRequest: ControlRequest {
    package typealias Answer = [PathOutcome<Nothing>]
    package static var verb: String { "download" }

    package var paths: [ItemArgument]
    /// Otherwise the answer comes at once, and what fails later is in the log and in the item's state.
    package var waits: Bool

    package init(paths: [ItemArgument], waits: Bool) {
        self.paths = paths
        self.waits = waits
    }
}

/// Removes the local content of items that are in the cloud.
package struct EvictRequest: ControlRequest {
    package typealias Answer = [PathOutcome<[Outcome]>]
    package static var verb: String { "evict" }

    package var paths: [ItemArgument]

    /// One file's that was refused, or that of all others under the path.
    package struct Outcome: Codable, Sendable {
        package var path: ControlPath
        package var refusal: ControlError?
        /// Of how many files; `nil` from a service that was started before there was this, which tells of each.
        package var count: Int?

        package init(path: ControlPath, refusal: ControlError) {
            self.path = path
            self.refusal = refusal
            count = 1
        }

        package init(path: ControlPath, evicted count: Int) {
            self.path = path
            self.count = count
        }
    }

    package init(paths: [ItemArgument]) { self.paths = paths }
}

/// Keeps the content of items always here, or no longer.
package struct PinRequest: ControlRequest {
    package typealias Answer = [PathOutcome<Nothing>]
    package static var verb: String { "pin" }

    package var paths: [ItemArgument]
    package var isPinned: Bool

    package init(paths: [ItemArgument], isPinned: Bool) {
        self.paths = paths
        self.isPinned = isPinned
    }
}

/// Answered when everything local is in the cloud and everything known from the cloud is here, in all mounted containers.
package struct SyncRequest: ControlRequest {
    package typealias Answer = Nothing
    package static var verb: String { "sync" }

    /// `nil`: no time limit.
    package var timeoutSeconds: Double?

    package init(timeoutSeconds: Double?) { self.timeoutSeconds = timeoutSeconds }
}
