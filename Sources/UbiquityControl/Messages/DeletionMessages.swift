/// What is in recently deleted, of the mounted containers.
package struct DeletedRequest: ControlRequest {
    package typealias Answer = [DeletedReport]
    package static var verb: String { "deleted" }
    package init() {}
}

package struct DeletedReport: Codable, Sendable {
    package var id: String
    package var container: String
    /// In its container.
    package var path: String
    /// Nanoseconds since 1970.
    package var deleted: Int64
    package var device: String
    package var kind: String
    package var size: Int64

    package init(id: String, container: String, path: String, deleted: Int64, device: String, kind: String, size: Int64)
    {
        self.id = id
        self.container = container
        self.path = path
        self.deleted = deleted
        self.device = device
        self.kind = kind
        self.size = size
    }
}

/// Brings deleted items back.
package struct UndeleteRequest: ControlRequest {
    package typealias Answer = [PathOutcome<Nothing>]
    package static var verb: String { "undelete" }

    /// Ids, or beginnings of them that no other deleted item has.
    package var items: [String]
    package init(items: [String]) { self.items = items }
}

/// Sends the deletions that were held, or brings back what they removed.
package struct HeldDeletionsRequest: ControlRequest {
    package typealias Answer = Nothing
    package static var verb: String { "held-deletions" }

    package var confirms: Bool
    package init(confirms: Bool) { self.confirms = confirms }
}
