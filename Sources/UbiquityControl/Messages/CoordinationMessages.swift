/// Asks for claims, all or none. They are held until ``ReleaseClaimsRequest`` or the connection's end.
package struct ClaimRequest: ControlRequest {
    package static var verb: String { "claim" }

    package struct Item: Codable, Sendable {
        package var path: ItemArgument
        package var isWrite: Bool

        package init(path: ItemArgument, isWrite: Bool) {
            self.path = path
            self.isWrite = isWrite
        }
    }

    /// In the order asked for.
    package var items: [Item]
    package var options: [String]
    /// `nil`: no time limit.
    package var timeoutSeconds: Double?
    /// The claim within which this one is asked for: neither waits for the other.
    package var outer: String?
    /// For `claims` and for those who wait: what asks.
    package var program: String

    package struct Answer: Codable, Sendable {
        /// The value of `UBIQUITY_CLAIM`.
        package var claim: String
        /// The items' absolute paths of this moment, in the order asked for.
        package var paths: [ControlPath]

        package init(claim: String, paths: [ControlPath]) {
            self.claim = claim
            self.paths = paths
        }
    }

    package init(items: [Item], options: [String], timeoutSeconds: Double?, outer: String?, program: String) {
        self.items = items
        self.options = options
        self.timeoutSeconds = timeoutSeconds
        self.outer = outer
        self.program = program
    }
}

/// Gives up what the connection holds: with the answer nothing waits for it any more. The end of the connection does as well,
/// but a moment after whoever held it is gone, and what is done next would still meet it.
package struct ReleaseClaimsRequest: ControlRequest {
    package typealias Answer = Nothing
    package static var verb: String { "release" }
    package init() {}
}

/// Who holds claims and who waits.
package struct ClaimsRequest: ControlRequest {
    package typealias Answer = [ClaimReport]
    package static var verb: String { "claims" }
    package init() {}
}

package struct ClaimReport: Codable, Sendable {
    package struct Item: Codable, Sendable {
        package var path: ControlPath
        package var isWrite: Bool

        package init(path: ControlPath, isWrite: Bool) {
            self.path = path
            self.isWrite = isWrite
        }
    }

    /// Otherwise it waits.
    package var isGranted: Bool
    package var program: String
    /// 0 for the engine.
    package var pid: Int32
    package var items: [Item]
    /// For whom it waits, in words.
    package var waitsFor: [String]

    package init(isGranted: Bool, program: String, pid: Int32, items: [Item], waitsFor: [String]) {
        self.isGranted = isGranted
        self.program = program
        self.pid = pid
        self.items = items
        self.waitsFor = waitsFor
    }
}
