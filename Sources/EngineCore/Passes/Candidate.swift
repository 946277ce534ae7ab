package import Reconciliation
package import UbiquityModel

/// One item in a pass: what the three trees say of it, and what becomes of it. Lives on the engine's thread only.
package final class Candidate {
    package let id: ItemID
    /// The work that led here: all of it gets this candidate's verdict.
    package var works: Set<EngineCore.Work>
    /// Where it was found in the backing tree.
    package var found: Found?
    package var synced: SyncedItem?
    package var remote: RemoteItem?
    /// The inode that the item was, when it is another now.
    package var formerKey: InodeKey?
    /// Where it was by its row, or was found as well, if it may still have these names besides the one by which it was found last.
    var formerPlaces: Set<LocalPlace> = []
    /// The inode with several names that it was found as, also if it has got another one since.
    var linkedKey: InodeKey?
    /// For a new local item: the cloud's item of the same name.
    package var rival: RemoteItem?
    /// An absence is proven to be a deletion: logged, or seen happening.
    package var deletionIsProven = false
    /// Where it is from now on, and no item any more: nothing is sent from there.
    var leavesFor: LocalPlace?
    /// The same of what lies in that, too.
    var isLeaving = false
    /// The package that it is a part of from now on, if that can be sent before it leaves the cloud.
    var joins: LocalPlace?
    /// It goes on as another item of the cloud, and what was announced of it is to be taken back.
    var leavesAnnouncement = false
    /// What was read of its content.
    package var read: ReadContent?
    package var verdict: EngineCore.Verdict?
    /// The cloud's item of the same name, as which it goes on, and with which it agrees in all.
    var adoptedAs: ItemID?
    /// It stays here because of a `.ubiquityignore`, unless it is the very item that the cloud has under its name.
    var isIgnored = false
    /// In the cloud it has left its name, and has no other yet.
    var isOnItsWay = false
    /// Somebody is writing to it, or has just done so, or holds a claim: it is not sent yet.
    var waitsForPrograms = false
    /// It comes to the cloud under a name between, and gets its own when the folder that has that is deleted, in the same commit.
    var isNamedLater = false
    /// Something ignored has its name here: the cloud is told of a second one, and only then it comes.
    var givesWay = false
    /// What is to be done in the backing tree, in order.
    package var applies: [ApplyStep] = []

    package enum ApplyStep {
        case planned(Apply)
        /// The local item makes room for the one that had the name first.
        case aside
        /// So does what cannot be told of, for what the others have: it goes on as another item.
        case asideAsAnother
        /// A placeholder whose content cannot be had stands for that item's content from now on.
        case refer(RemoteItem)
    }

    package struct Found {
        package var place: LocalPlace
        package var parent: ItemID
        package var state: LocalState
        package var content: LocalContent
        package var attributes: ItemAttributes
        package var timeWasSet: Bool

        package init(
            place: LocalPlace,
            parent: ItemID,
            state: LocalState,
            content: LocalContent,
            attributes: ItemAttributes,
            timeWasSet: Bool
        ) {
            self.place = place
            self.parent = parent
            self.state = state
            self.content = content
            self.attributes = attributes
            self.timeWasSet = timeWasSet
        }

        /// A placeholder of which nothing is compared.
        init(
            _ placeholder: Placeholder,
            at place: LocalPlace,
            in parent: ItemID,
            _ state: LocalState,
            _ attributes: ItemAttributes
        ) {
            let content = LocalContent.dataless(placeholder.revision, size: placeholder.size)
            self.init(
                place: place,
                parent: parent,
                state: state,
                content: content,
                attributes: attributes,
                timeWasSet: false
            )
        }
    }

    package init(id: ItemID, works: Set<EngineCore.Work>) {
        self.id = id
        self.works = works
    }

    /// What the planner sees of the local tree.
    package var local: LocalItem? {
        guard let found else { return nil }
        let content = read.map { LocalContent.read($0.content, size: $0.state.size) } ?? found.content
        return LocalItem(
            place: Place(parent: found.parent, name: found.place.name),
            content: content,
            attributes: found.attributes,
            timeWasSet: found.timeWasSet
        )
    }

    /// It made room for another and has not moved on yet: it is on its way to where the cloud has it.
    package var isInTransit: Bool {
        guard let found, let remote else { return false }
        if TransitionalName.matches(remote.place.name) {
            // A program has given it the name of another that made room.
            return TransitionalName.item(of: found.place.name).map { $0 != id } ?? false
        }
        return TransitionalName.matches(found.place.name)
            || synced.map { TransitionalName.matches($0.place.name) } ?? false
    }

    /// Something new under the name of an item that made room, which is elsewhere or has ended: it needs a name of its own before anybody
    /// is told of it. Or what made room itself, if a restored server does not know any more where it was to go.
    package var isStrayInTransit: Bool {
        guard rival == nil, let found, TransitionalName.matches(found.place.name) else { return false }
        if let synced { return remote == nil && TransitionalName.matches(synced.place.name) }
        return remote.map { $0.isDeleted || !TransitionalName.matches($0.place.name) } ?? true
    }

    /// The item that it is from now on.
    var item: ItemID { adoptedAs ?? id }

    /// It is to be looked at again when something has become of another one, or after a while.
    var waits: Bool {
        switch verdict {
        case .later, .parked, .transferring: true
        case .done, .sent, .again, .next, .failed, nil: false
        }
    }

    /// It is about to come into being here.
    package var appears: Bool {
        applies.contains { if case .planned(.appear) = $0 { true } else { false } }
    }

    package var agreed: AgreedItem? {
        synced.map { AgreedItem(place: $0.place, content: $0.content, attributes: $0.attributes) }
    }
}

/// What one candidate asks of the server.
package struct PlannedSend {
    package var candidate: Candidate
    package var actions: [Send]
    /// Name, size and times of a large new file go ahead of its content.
    package var isAnnouncement = false

    package init(candidate: Candidate, actions: [Send], isAnnouncement: Bool = false) {
        self.candidate = candidate
        self.actions = actions
        self.isAnnouncement = isAnnouncement
    }

    package var isDeletion: Bool { actions.contains { if case .delete = $0 { true } else { false } } }

    /// Something else took the name of the link that was agreed on.
    var replacesLink: Bool {
        guard candidate.synced?.content.kind == .symlink else { return false }
        return actions.contains { if case .edit = $0 { true } else { false } }
    }
}
