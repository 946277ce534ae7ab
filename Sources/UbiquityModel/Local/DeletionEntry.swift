/// What is logged of a deletion before it happens.
package enum DeletionEntry: Hashable, Sendable {
    /// Items whose synced row names this inode. Needs no question to the database: what a program waits for.
    case inode(InodeKey)
    /// The inode took the name of another item, which goes on with it; the item that it was until then ends.
    case replacing(InodeKey)
    /// An item by itself, for one whose row is not written yet.
    case item(ItemID)
}
