/// Content of a file that is here, or a part of it, and could be given up.
package struct KeptContent: Hashable, Sendable {
    package var id: ItemID
    /// What of it is here.
    package var bytes: Int64
    /// When a program last had it open; of what none has opened yet, since when it is here.
    package var lastUsed: Timestamp

    package init(id: ItemID, bytes: Int64, lastUsed: Timestamp) {
        self.id = id
        self.bytes = bytes
        self.lastUsed = lastUsed
    }
}
