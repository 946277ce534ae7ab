package import UbiquityModel

/// What is to be done about one item whose three trees differ.
package enum Decision: Hashable, Sendable {
    /// The trees say the same, or there is nothing that could be done here.
    case nothing
    /// All three mean the same thing: record the remote state as agreed.
    case agree
    /// The item is gone everywhere: drop the synced row.
    case forget
    /// The local bytes must be read before anything can be said.
    case read
    /// To be sent, in this order.
    case send([Send])
    /// To be applied here, in this order.
    case apply([Apply])
    /// The local item has the name of another one that was there first: it gets the next free name, and is then a new item.
    case renameAside
    /// Both sides have changed the item, and of what the cloud has it keeps no versions: the local one goes on as another item, under the next
    /// free name, and the cloud's comes here.
    case split
    /// The local item and the remote one that has its name are the same thing made twice: continue the remote one.
    case adopt(ItemID)
    /// The content is only in the local tree's past: it is neither here nor in the cloud, and is reported.
    case unavailable
}

/// One thing to tell the server.
package enum Send: Hashable, Sendable {
    case create
    /// With the revision that the author had seen.
    case edit(base: RevisionID?)
    case move(Place)
    case attributes(AttributeChanges)
    case delete(base: RevisionID?)
    case revive
}

/// Which attributes differ. `nil` stays as it is.
package struct AttributeChanges: Hashable, Sendable {
    package var modified: Timestamp?
    package var mode: UInt16?
    package var extended: [[UInt8]: [UInt8]]?

    package init(modified: Timestamp? = nil, mode: UInt16? = nil, extended: [[UInt8]: [UInt8]]? = nil) {
        self.modified = modified
        self.mode = mode
        self.extended = extended
    }

    package var isEmpty: Bool { modified == nil && mode == nil && extended == nil }
}

/// One thing to do in the backing tree.
package enum Apply: Hashable, Sendable {
    /// The item comes into being: a folder, a symlink or a placeholder.
    case appear
    /// New content for a file or symlink that is here: renamed over it.
    case replace
    case move(Place)
    case attributes(AttributeChanges)
    /// The item goes.
    case vanish
}
