package import UbiquityModel

/// An item on which the remote and the synced tree differ.
package struct ItemDifference: Hashable, Sendable {
    package var id: ItemID
    package var remote: RemoteItem?
    package var synced: SyncedItem?
}

/// How many rows there are of what, for `status`.
package struct StateCounts: Hashable, Sendable {
    /// Items that live in the cloud.
    package var remote = 0
    package var synced = 0
    /// Items in folders that have not populated themselves with them. About right while others are pending.
    package var cloudOnly = 0
    /// Remote and synced differ.
    package var pending = 0
    package var dataless = 0
    /// Bytes of the dataless files.
    package var datalessBytes: Int64 = 0
    package var pinned = 0
    /// Deletions that wait for a word of the user.
    package var held = 0
    /// Items with unresolved conflict versions.
    package var conflicted = 0
}
