/// A position in a container's log: its own counter and the running hash of the log up to there (architecture section 5).
///
/// The hash tells a server that was restored from a backup, and has handed out the same counter twice, from one that was not.
package struct LogPosition: Hashable, Sendable {
    package var counter: UInt64
    /// 32 bytes; empty at the very beginning.
    package var hash: [UInt8]

    package init(counter: UInt64, hash: [UInt8]) {
        self.counter = counter
        self.hash = hash
    }

    /// Before the first entry.
    package static let beginning = LogPosition(counter: 0, hash: [])
}

/// What the running hash of a container's log is made of: one for each item that a commit wrote.
package struct LogEntry: Hashable, Sendable {
    /// The item's new log position.
    package var position: UInt64
    package var item: ItemID
    package var operation: OperationID

    package init(position: UInt64, item: ItemID, operation: OperationID) {
        self.position = position
        self.item = item
        self.operation = operation
    }
}
