import Reconciliation
package import UbiquityModel

/// What has no row yet: is it new, did it go on from an item that was sent, or is it what a commit without an answer has made?
extension ItemTracker {
    func collectNew(
        _ place: LocalPlace,
        _ parent: ItemID,
        _ state: LocalState,
        _ work: Work,
        into pass: Pass
    ) throws {
        let there = try view.remote(at: Place(parent: parent, name: place.name))
        let hasOneName = state.linkCount == 1 || state.kind == .folder
        var known = hasOneName ? newItems[state.key] : nil
        if let item = known, let own = try view.synced(item)?.local?.key, own != state.key {
            // That has come here from the cloud, as another inode: what was sent as it went on as something else, and is new under this name.
            newItems.remove(state.key)
            known = nil
        }
        if let item = known, let kind = try knownKind(of: item), kind != self.kind(of: state) {
            // It has become a package since it was sent as a folder.
            newItems.remove(state.key)
            known = nil
        }
        if known == nil { known = try continued(among: there, by: state, into: pass) }
        let ruling = try ruling(onNew: place, state, as: known, into: pass)
        if case .ignored = ruling { return try collectIgnored(place, parent, state, there, work, into: pass) }
        let id = known ?? view.newItem()
        if hasOneName { newItems.note(state.key, id, at: place) }
        // Of one that has just been thought of, nobody has heard.
        try found(id, place, parent, state, nil, remote: known == nil ? nil : try view.remote(id), work, into: pass)
        guard let candidate = pass.candidates[id] else { return }
        // A program has moved it on while who has its name was looked for: there it has been looked at.
        if let found = candidate.found, found.place != place { return }
        if case .waits(let unread) = ruling { return try wait(for: unread, candidate, into: pass) }
        candidate.rival = try there.first { !$0.isDeleted && !$0.isAnnounced && $0.id != id } ?? leftBehind(state)
        if candidate.remote == nil, let rival = candidate.rival, try view.synced(rival.id) == nil,
            let own = try newPlace(of: rival.id), own != place,
            state.kind != .folder || !lies(own.folder, in: state.key)
        {
            // That is another one of here, which was sent without an answer: first it gets its row. (Not one that by now lies in what is
            // here: where it is, nobody can be told of it before.)
            try collect(.place(own), into: pass)
            candidate.verdict = .later(.milliseconds(100))
        }
    }

    private func knownKind(of item: ItemID) throws -> ItemKind? {
        try (view.synced(item)?.content ?? view.remote(item)?.content)?.kind
    }

    /// The item whose placeholder an apply put here before it was written down, if others have moved it since.
    private func leftBehind(_ state: LocalState) throws -> RemoteItem? {
        guard let placeholder = state.placeholder, try view.synced(key: state.key).isEmpty,
            let remote = try view.remote(revision: placeholder.revision), !remote.isDeleted,
            try view.synced(remote.id) == nil
        else { return nil }
        return remote
    }

    /// What this device has announced or sent under that name, before a restart or without an answer: a new file goes on from there, unless
    /// another one is that item. Others may have moved it here.
    private func continued(among there: [RemoteItem], by state: LocalState, into pass: Pass) throws -> ItemID? {
        guard state.kind == .file else { return nil }
        for own in there.filter(isOwnAnnouncement) + there.filter(isOwnCommit)
        where pass.candidates[own.id]?.found == nil {
            if try newPlace(of: own.id) == nil { return own.id }
        }
        return nil
    }

    /// Where an item is that has its id, and no row yet.
    func newPlace(of item: ItemID) throws -> LocalPlace? {
        // In a package it is none any more, nor where nothing is sent from.
        guard let place = try inodePlace(ofNew: item), try view.package(around: place.folder) == nil,
            localOnlyReason(at: place) == nil
        else { return nil }
        return place
    }

    private func inodePlace(ofNew item: ItemID) throws -> LocalPlace? {
        guard let key = newItems.key(of: item), let place = currentPlace(of: key) ?? newItems.place(of: key),
            try view.observe(place)?.key == key
        else { return nil }
        return place
    }

    /// Where a program has moved what this device was just about to create in the cloud, if nothing is sent from there.
    func placeLeftFor(byNew remote: RemoteItem) throws -> LocalPlace? {
        guard isUntouched(remote), let place = try inodePlace(ofNew: remote.id), localOnlyReason(at: place) != nil
        else { return nil }
        return place
    }

    /// An item of which this device has announced name and size, and never sent the content.
    package func isOwnAnnouncement(_ remote: RemoteItem) -> Bool {
        guard remote.isAnnounced, !remote.isDeleted, sending[remote.id] != nil else { return false }
        return (try? view.synced(remote.id)) ?? nil == nil
    }

    /// A new file that this device has sent, whose commit was not answered.
    private func isOwnCommit(_ remote: RemoteItem) -> Bool {
        guard !remote.isDeleted, sentRevision(remote) != nil else { return false }
        return (try? view.synced(remote.id)) ?? nil == nil
    }

    /// The cloud's current revision, if it is one that this device has sent and was not told of.
    func sentRevision(_ remote: RemoteItem) -> RevisionID? {
        guard let sent = sending[remote.id], case .file(let file) = remote.content, file.content != nil,
            file.content == sent.content,
            file.revision == sent.revision
        else { return nil }
        return sent.revision
    }

    /// The item that a file went on as when it took its name, in the cloud, and without an answer. That the item which it was before has
    /// ended there was sent along with that.
    /// - Parameter row: of the item that has the name.
    func sentItem(_ state: LocalState, at place: LocalPlace, _ row: SyncedItem?) throws -> SyncedItem? {
        guard state.linkCount == 1, let item = sentAs[state.key], let own = try view.synced(item),
            own.local?.key != state.key, own.content.kind == kind(of: state),
            let remote = try view.remote(item), !remote.isDeleted,
            isOwnContent(remote), try !hasSuccessor(own, besides: place)
        else { return nil }
        // What is of another kind ends under the name, and does not go on with it.
        if let row, row.id != item, row.content.kind == own.content.kind {
            // What else has the name has it from the file that is here now, or goes on with it.
            guard row.local?.key == state.key, try view.remote(row.id)?.isDeleted ?? true else { return nil }
        }
        return own
    }

    /// What both sides agree on: the row, or what was sent since then and has arrived. Of which bytes the file here has by view.now
    /// nothing is known in that case.
    func agreedRow(_ row: SyncedItem?, _ remote: RemoteItem?) -> SyncedItem? {
        guard let remote, !remote.isDeleted, row?.content != remote.content, isSurelySent(remote) else { return row }
        var agreed = row ?? SyncedItem(remote, local: nil)
        agreed.content = remote.content
        agreed.local = nil
        return agreed
    }

    /// Whether the cloud's content is one that this device has sent.
    private func isOwnContent(_ remote: RemoteItem) -> Bool {
        switch remote.content {
        case .file: sentRevision(remote) != nil
        // Whoever gives it another target is its author from then on.
        case .symlink(let target): sentLinks[remote.id]?.target == target && remote.author == view.deviceName
        case .folder: false
        }
    }

    /// Whether that was here, as well, when it was sent.
    private func isSurelySent(_ remote: RemoteItem) -> Bool {
        guard isOwnContent(remote) else { return false }
        return sending[remote.id]?.isDoubtful == false || sentLinks[remote.id]?.isDoubtful == false
    }

    /// Whether the cloud's content is the one that this device has agreed on: a deletion here is sent only of that.
    package func isAgreed(_ remote: RemoteItem, _ row: SyncedItem) -> Bool {
        Planner.sameContent(remote.content, agreedRow(row, remote)?.content ?? row.content)
    }
}
