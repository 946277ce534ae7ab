/// A row of the synced tree: the last state on which this device and the server agreed.
package struct SyncedItem: Hashable, Sendable {
    package var id: ItemID
    package var place: Place
    package var content: ItemContent
    package var attributes: ItemAttributes
    /// `nil`: agreed on, but nothing is here yet.
    package var local: LocalEvidence?

    package init(
        id: ItemID,
        place: Place,
        content: ItemContent,
        attributes: ItemAttributes,
        local: LocalEvidence?
    ) {
        self.id = id
        self.place = place
        self.content = content
        self.attributes = attributes
        self.local = local
    }

    /// What the server said, as agreed on.
    package init(_ item: RemoteItem, local: LocalEvidence?) {
        self.init(id: item.id, place: item.place, content: item.content, attributes: item.attributes, local: local)
    }
}

/// A batch of changes of the synced tree, written in one transaction.
package struct SyncedChanges: Hashable, Sendable {
    package var upserts: [SyncedItem]
    package var removals: [ItemID]
    /// Items of which what was sent has been answered.
    package var answered: [ItemID]
    /// Items of which a deletion that was sent is known of no more. Apart from those: contents of theirs may be unanswered still.
    package var answeredDeletions: [ItemID]

    package init(
        upserts: [SyncedItem] = [],
        removals: [ItemID] = [],
        answered: [ItemID] = [],
        answeredDeletions: [ItemID] = []
    ) {
        self.upserts = upserts
        self.removals = removals
        self.answered = answered
        self.answeredDeletions = answeredDeletions
    }

    package var isEmpty: Bool {
        upserts.isEmpty && removals.isEmpty && answered.isEmpty && answeredDeletions.isEmpty
    }
}
