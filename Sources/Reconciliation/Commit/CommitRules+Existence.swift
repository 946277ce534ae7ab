internal import UbiquityModel

/// Deletions and what comes back from them (semantics section 7).
extension CommitRules {
    func delete(_ id: ItemID, base: RevisionID?, conflicts: [RevisionID]) throws(View.Failure) -> CommitDecision {
        guard var item = try view.item(id) else { return .answer(.noSuchItem) }
        guard !item.isDeleted else { return .answer(.committed(item)) }
        switch item.content {
        case .folder:
            if try view.hasLiveChildren(id) { return .answer(.notEmpty) }
        case .symlink:
            // It was a file when it was deleted: the link is newer.
            if base != nil { return .answer(.superseded(item)) }
        case .file(let file):
            guard try isCurrent(base, file) else { return .answer(.superseded(item)) }
        }
        // An edit that lost, and that whoever deleted the winner had never heard of, is not deleted along with it.
        guard item.conflicts.allSatisfy({ conflicts.contains($0.revision) }) else { return .answer(.superseded(item)) }
        item.isDeleted = true
        return .change(CommitChange(item: item))
    }

    /// Whether what was deleted is what is there: the same revision, or another one of the same content.
    private func isCurrent(_ base: RevisionID?, _ file: FileContent) throws(View.Failure) -> Bool {
        guard let base else { return false }
        if base == file.revision { return true }
        guard let content = file.content, let seen = try view.revision(base) else { return false }
        return seen.version.content == content
    }

    func revive(_ id: ItemID, at place: Place, _ attributes: ItemAttributes) throws(View.Failure) -> CommitDecision {
        guard var item = try view.item(id) else { return .answer(.noSuchItem) }
        guard item.isDeleted else { return .answer(.committed(item)) }
        if case .file = item.content { return .answer(.invalid("a file comes back by an edit")) }
        if let refusal = try refusal(of: place, for: item) { return .answer(refusal) }
        item.isDeleted = false
        item.place = place
        item.attributes = attributes
        return .change(CommitChange(item: item))
    }

    /// Back at the old place, under the next free name if its own is taken, in the nearest folder that is still there.
    func undelete(_ id: ItemID) throws(View.Failure) -> CommitDecision {
        guard var item = try view.item(id) else { return .answer(.noSuchItem) }
        guard item.isDeleted else { return .answer(.committed(item)) }
        guard !item.isAnnounced else { return .answer(.invalid("its content never reached the cloud")) }
        if case .file(let file) = item.content, try view.revision(file.revision)?.isDiscarded ?? false {
            return .answer(.invalid("it was deleted too long ago: its content is not kept any more"))
        }
        var wanted = item.place
        wanted.parent = try nearestLiveFolder(item.place.parent)
        guard let place = try freePlace(wanted, for: id) else { return .answer(.invalid("no name is free for it")) }
        item.place = place
        item.isDeleted = false
        return .change(CommitChange(item: item))
    }

    private func nearestLiveFolder(_ folder: ItemID) throws(View.Failure) -> ItemID {
        var next = folder
        // Deleted folders keep their last place, so the way up ends; the bound only guards against a damaged catalogue.
        for _ in 0..<10_000 where next != .root {
            guard let item = try view.item(next) else { return .root }
            if !item.isDeleted, item.content == .folder { return next }
            next = item.place.parent
        }
        return .root
    }
}
