/// How the service is, and what it does.
package struct StatusRequest: ControlRequest {
    package typealias Answer = ServiceReport
    package static var verb: String { "status" }
    package init() {}
}

package struct ServiceReport: Codable, Sendable {
    package var pid: Int32
    package var log: String
    package var account: String
    package var device: String
    package var server: String
    package var serverIsEmbedded: Bool
    /// Airplane mode.
    package var isOffline: Bool
    package var mounts: [MountReport]

    package init(
        pid: Int32,
        log: String,
        account: String,
        device: String,
        server: String,
        serverIsEmbedded: Bool,
        isOffline: Bool,
        mounts: [MountReport]
    ) {
        self.pid = pid
        self.log = log
        self.account = account
        self.device = device
        self.server = server
        self.serverIsEmbedded = serverIsEmbedded
        self.isOffline = isOffline
        self.mounts = mounts
    }
}

package struct MountReport: Codable, Sendable {
    package enum State: String, Codable, Sendable {
        case mounted, starting, failed
        /// Mounted, for what programs had open when this device was signed out.
        case signedOut = "signed-out"
    }

    package var container: String
    package var mountPoint: ControlPath
    package var state: State
    /// Why it failed.
    package var failure: String?
    /// How the driver runs, and what would enable the better mode.
    package var mode: String
    /// `nil` while it is not mounted.
    package var engine: EngineReport?

    package init(
        container: String,
        mountPoint: ControlPath,
        state: State,
        failure: String? = nil,
        mode: String = "",
        engine: EngineReport? = nil
    ) {
        self.container = container
        self.mountPoint = mountPoint
        self.state = state
        self.failure = failure
        self.mode = mode
        self.engine = engine
    }
}

package struct EngineReport: Codable, Sendable {
    package var connection: String
    package var connectionProblem: String?
    package var items: Int
    package var pending: Int
    package var conflicts: Int
    /// Of the unresolved versions of all items.
    package var conflictBytes: Int64?
    /// Whose unresolved versions take most, first.
    package var largestConflicts: [ConflictSizeReport]?
    package var heldDeletions: Int
    package var bytesSent: Int64
    package var bytesReceived: Int64
    package var transfers: [TransferReport]
    package var problems: [ProblemReport]
    /// `nil` where no content comes or goes by itself but what is pinned.
    package var keeping: KeepingReport?

    package init(
        connection: String,
        connectionProblem: String?,
        items: Int,
        pending: Int,
        conflicts: Int,
        conflictBytes: Int64 = 0,
        largestConflicts: [ConflictSizeReport] = [],
        heldDeletions: Int,
        bytesSent: Int64,
        bytesReceived: Int64,
        transfers: [TransferReport],
        problems: [ProblemReport],
        keeping: KeepingReport? = nil
    ) {
        self.connection = connection
        self.connectionProblem = connectionProblem
        self.items = items
        self.pending = pending
        self.conflicts = conflicts
        self.conflictBytes = conflictBytes
        self.largestConflicts = largestConflicts
        self.heldDeletions = heldDeletions
        self.bytesSent = bytesSent
        self.bytesReceived = bytesReceived
        self.transfers = transfers
        self.problems = problems
        self.keeping = keeping
    }
}

/// What the unresolved versions of an item take.
package struct ConflictSizeReport: Codable, Sendable {
    package var path: ControlPath
    package var versions: Int
    package var bytes: Int64

    package init(path: ControlPath, versions: Int, bytes: Int64) {
        self.path = path
        self.versions = versions
        self.bytes = bytes
    }
}

/// How much content is here, and what comes and goes by itself.
package struct KeepingReport: Codable, Sendable {
    package var localBytes: Int64
    package var localLimit: Int64?
    /// As `ubiquity config` shows it.
    package var evictAfter: String?
    package var isGreedy: Bool
    /// What is to come by itself, and is not here.
    package var missingFiles: Int
    package var missingBytes: Int64
    /// Why it does not come, in words.
    package var obstacle: String?

    package init(
        localBytes: Int64,
        localLimit: Int64?,
        evictAfter: String?,
        isGreedy: Bool,
        missingFiles: Int,
        missingBytes: Int64,
        obstacle: String?
    ) {
        self.localBytes = localBytes
        self.localLimit = localLimit
        self.evictAfter = evictAfter
        self.isGreedy = isGreedy
        self.missingFiles = missingFiles
        self.missingBytes = missingBytes
        self.obstacle = obstacle
    }
}

/// What cannot sync, and why.
package struct ProblemReport: Codable, Sendable {
    package var path: ControlPath
    package var reason: String

    package init(path: ControlPath, reason: String) {
        self.path = path
        self.reason = reason
    }
}

/// Live transfers.
package struct ActivityRequest: ControlRequest {
    package typealias Answer = [TransferReport]
    package static var verb: String { "activity" }
    package init() {}
}

package struct TransferReport: Codable, Sendable {
    package var path: ControlPath
    /// `upload` or `download`.
    package var direction: String
    package var bytesDone: Int64
    package var bytesTotal: Int64

    package init(path: ControlPath, direction: String, bytesDone: Int64, bytesTotal: Int64) {
        self.path = path
        self.direction = direction
        self.bytesDone = bytesDone
        self.bytesTotal = bytesTotal
    }
}
