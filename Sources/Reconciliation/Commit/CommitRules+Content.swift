internal import UbiquityModel

/// New items and new contents.
extension CommitRules {
    func create(_ id: ItemID, at place: Place, _ incoming: Incoming) throws(View.Failure) -> CommitDecision {
        if let existing = try view.item(id) { return try createAgain(existing, at: place, incoming) }
        var item = RemoteItem(
            id: id,
            place: place,
            content: incoming.content,
            attributes: incoming.attributes,
            position: 0
        )
        if let refusal = try refusal(of: place, for: item) { return .answer(refusal) }
        if let answer = try answerToKnownRevision(of: incoming, for: item) { return .answer(answer) }
        if let refusal = try refusal(of: incoming) { return .answer(refusal) }
        item.author = context.device
        item.edited = incoming.edited
        return .change(written(item, incoming, base: nil))
    }

    /// The item is known: announced before, deleted meanwhile, or created by a request whose answer was lost.
    private func createAgain(
        _ existing: RemoteItem,
        at place: Place,
        _ incoming: Incoming
    ) throws(View.Failure) -> CommitDecision {
        if let answer = try answerToKnownRevision(of: incoming, for: existing) { return .answer(answer) }
        if existing.isDeleted || existing.isAnnounced {
            guard (existing.content == .folder) == (incoming.content == .folder) else {
                return .answer(.invalid("an item that is a folder never becomes anything else"))
            }
            if let refusal = refusal(of: incoming.content, for: existing) { return .answer(refusal) }
            var item = existing
            item.isDeleted = false
            item.place = place
            item.content = incoming.content
            if let refusal = try refusal(of: place, for: item) { return .answer(refusal) }
            return try renewed(item, from: existing, incoming, base: nil)
        }
        if existing.content == incoming.content { return .answer(.committed(existing)) }
        // Others have given it another target since, which its author has not seen.
        if case .symlink = existing.content { return .answer(.superseded(existing)) }
        return try edit(existing.id, base: nil, incoming)
    }

    /// An announcement claims no name and takes part in no conflict (architecture section 6).
    func announce(
        _ id: ItemID,
        at place: Place,
        _ content: FileContent,
        _ attributes: ItemAttributes
    ) throws(View.Failure) -> CommitDecision {
        var announced = content
        announced.content = nil
        let announcement = ItemContent.file(announced)
        if var existing = try view.item(id) {
            if existing.isDeleted { return .answer(.noSuchItem) }
            guard existing.isAnnounced, existing.content != announcement else { return .answer(.committed(existing)) }
            existing.content = announcement
            existing.attributes = attributes
            return .change(CommitChange(item: existing))
        }
        guard try isLiveFolder(place.parent) else { return .answer(.parentMissing) }
        let item = RemoteItem(
            id: id,
            place: place,
            content: announcement,
            attributes: attributes,
            position: 0,
            author: context.device,
            edited: context.now
        )
        return .change(CommitChange(item: item))
    }

    func edit(_ id: ItemID, base: RevisionID?, _ incoming: Incoming) throws(View.Failure) -> CommitDecision {
        guard let existing = try view.item(id) else { return .answer(.noSuchItem) }
        guard existing.content != .folder, incoming.content != .folder else {
            return .answer(.invalid("a folder has no content to edit"))
        }
        if let refusal = refusal(of: incoming.content, for: existing) { return .answer(refusal) }
        if let answer = try answerToKnownRevision(of: incoming, for: existing) { return .answer(answer) }
        let incoming = incoming.merged(into: existing.attributes)
        if existing.isDeleted { return try editDeleted(existing, base: base, incoming) }
        if existing.isAnnounced { return try editAnnounced(existing, base: base, incoming) }
        switch incoming.content {
        case .folder, .symlink: return try relink(existing, base: base, incoming)
        case .file(let file): return try editFile(existing, base: base, file, incoming)
        }
    }

    /// Edit against delete: the edit survives (semantics section 4), at the old place or, if that name is taken, beside it.
    private func editDeleted(
        _ existing: RemoteItem,
        base: RevisionID?,
        _ incoming: Incoming
    ) throws(View.Failure) -> CommitDecision {
        if case .file(let file) = incoming.content {
            let seen = try seenRevision(base, of: existing.id)
            if let seen, seen.version.content == file.content { return .answer(.committed(existing)) }
        } else if case .symlink(let target) = incoming.content, incoming.content == existing.content {
            // That it leads elsewhere is an edit, also if others have made the same one before they deleted it: here it may have come from
            // another link, which goes.
            if incoming.formerTarget ?? target == target { return .answer(.committed(existing)) }
        }
        guard try isLiveFolder(existing.place.parent) else { return .answer(.parentMissing) }
        guard let place = try freePlace(existing.place, for: existing.id) else {
            return .answer(.invalid("no name is free for it"))
        }
        var item = existing
        item.isDeleted = false
        item.place = place
        return try renewed(item, from: existing, incoming, base: base)
    }

    /// The first content of an item that claimed no name so far.
    private func editAnnounced(
        _ existing: RemoteItem,
        base: RevisionID?,
        _ incoming: Incoming
    ) throws(View.Failure) -> CommitDecision {
        guard let place = try freePlace(existing.place, for: existing.id) else {
            return .answer(.invalid("no name is free for it"))
        }
        var item = existing
        item.place = place
        return try renewed(item, from: existing, incoming, base: base)
    }

    /// A symbolic link's target replaces the one that its author had seen; a file's content that it replaces is kept.
    private func relink(
        _ existing: RemoteItem,
        base: RevisionID?,
        _ incoming: Incoming
    ) throws(View.Failure) -> CommitDecision {
        guard existing.content != incoming.content else { return .answer(.committed(existing)) }
        var item = existing
        guard case .file(let file) = existing.content, base != file.revision,
            let loser = try displaced(from: &item, isContested: true)
        else { return try renewed(existing, from: existing, incoming, base: base) }
        item.content = incoming.content
        item.attributes = incoming.attributes
        item.author = context.device
        item.edited = incoming.edited
        item.conflicts = sortedByAge(item.conflicts)
        return .change(CommitChange(item: item, revisions: [loser]))
    }

    private func editFile(
        _ existing: RemoteItem,
        base: RevisionID?,
        _ file: FileContent,
        _ incoming: Incoming
    ) throws(View.Failure) -> CommitDecision {
        guard let content = file.content else { return .answer(.invalid("the content's id is missing")) }
        guard case .file(let current) = existing.content, let currentContent = current.content else {
            return try renewed(existing, from: existing, incoming, base: base)
        }
        let seen = try seenRevision(base, of: existing.id)
        let replaced = seen?.version.kind == .conflict ? seen : nil
        if content == currentContent { return try agree(existing, replacing: replaced) }
        // A device whose disk was set back offers what the item had before: that is no edit. Its content is replaced there, so it must be here.
        if incoming.isUnwitnessed, try view.keeps(content, existing.id) { return .answer(.committed(existing)) }
        let followsCurrent = base == current.revision
        // It has not changed since. (Back to what it was before that is an edit: somebody has brought an earlier content back.)
        if !followsCurrent, seen?.version.content == content { return .answer(.committed(existing)) }
        // Only while it is kept: else whoever brings it may have the last copy of it.
        if !followsCurrent, try wasMade(content, since: base, before: current.revision, of: existing.id),
            try view.keeps(content, existing.id)
        {
            return .answer(.committed(existing))
        }
        if let refusal = try refusal(of: incoming) { return .answer(refusal) }
        if followsCurrent { return try renewed(existing, from: existing, incoming, base: base) }
        return try conflict(existing, file, content, incoming, base: base, replaced: replaced)
    }

    /// The edit made what is there already. If it was made of a loser, its author has let go of that.
    private func agree(_ existing: RemoteItem, replacing loser: StoredRevision?) throws(View.Failure) -> CommitDecision
    {
        guard var loser else { return .answer(.committed(existing)) }
        var item = existing
        loser.version.kind = .saved
        item.conflicts.removeAll { $0.revision == loser.version.revision }
        return .change(CommitChange(item: item, revisions: [loser]))
    }

    /// Two contents of which neither author had seen the other: the later edit wins, of equal ones the one that was there.
    private func conflict(
        _ existing: RemoteItem,
        _ file: FileContent,
        _ content: ContentID,
        _ incoming: Incoming,
        base: RevisionID?,
        replaced: StoredRevision?
    ) throws(View.Failure) -> CommitDecision {
        var item = existing
        var writes = [StoredRevision]()
        if var replaced {
            replaced.version.kind = .saved
            writes.append(replaced)
            item.conflicts.removeAll { $0.revision == replaced.version.revision }
        }
        var arrived = StoredRevision(
            item: item.id,
            version: version(of: item, file, content, incoming),
            base: base
        )
        if incoming.edited > existing.edited {
            arrived.version.kind = .current
            if let loser = try displaced(from: &item, isContested: true) { writes.append(loser) }
            item.content = .file(file)
            item.attributes = incoming.attributes
            item.author = context.device
            item.edited = incoming.edited
            writes.append(contentsOf: try dropEqual(to: content, from: &item))
        } else if item.conflicts.contains(where: { $0.content == content }) {
            // The same loser twice is one.
            arrived.version.kind = .saved
        } else {
            arrived.version.kind = .conflict
            item.conflicts.append(arrived.version)
        }
        item.conflicts = sortedByAge(item.conflicts)
        writes.append(arrived)
        return .change(
            CommitChange(item: item, revisions: writes, content: .init(id: content, manifest: incoming.manifest))
        )
    }

    // MARK: Helpers

    /// `item` with the incoming content as its current one; what was current before is a saved version.
    func renewed(
        _ item: RemoteItem,
        from existing: RemoteItem,
        _ incoming: Incoming,
        base: RevisionID?
    ) throws(View.Failure) -> CommitDecision {
        if let refusal = try refusal(of: incoming) { return .answer(refusal) }
        var item = item
        item.content = incoming.content
        item.attributes = incoming.attributes
        item.author = context.device
        item.edited = incoming.edited
        var change = written(item, incoming, base: base)
        if var former = try demoted(existing, to: .saved) {
            // Who does not keep what he replaces means what he has seen.
            if former.version.revision != base { former.isUnwanted = false }
            change.revisions.insert(former, at: 0)
        }
        if case .file(let file) = incoming.content, let content = file.content {
            change.revisions.append(contentsOf: try dropEqual(to: content, from: &change.item))
        }
        return .change(change)
    }

    /// The change that makes the incoming content the item's current revision.
    private func written(_ item: RemoteItem, _ incoming: Incoming, base: RevisionID?) -> CommitChange {
        guard case .file(let file) = incoming.content, let content = file.content else {
            return CommitChange(item: item)
        }
        let revision = StoredRevision(item: item.id, version: version(of: item, file, content, incoming), base: base)
        return CommitChange(item: item, revisions: [revision], content: .init(id: content, manifest: incoming.manifest))
    }

    private func version(
        of item: RemoteItem,
        _ file: FileContent,
        _ content: ContentID,
        _ incoming: Incoming
    ) -> ItemVersion {
        ItemVersion(
            revision: file.revision,
            kind: .current,
            content: content,
            size: file.size,
            edited: incoming.edited,
            modified: incoming.attributes.modified,
            device: context.device,
            name: item.place.name
        )
    }

    /// A version of an item does not say whether it is a package's: all of an item's are, or none.
    private func refusal(of content: ItemContent, for existing: RemoteItem) -> OperationOutcome? {
        guard (content.kind == .package) != (existing.content.kind == .package) else { return nil }
        return .invalid("an item that is a package never becomes anything else")
    }

    /// Why the content cannot be committed; `nil` if it can.
    func refusal(of incoming: Incoming) throws(View.Failure) -> OperationOutcome? {
        guard case .file(let file) = incoming.content else { return nil }
        guard let content = file.content else { return .invalid("the content's id is missing") }
        guard file.size == incoming.manifest.size else {
            return .invalid("the chunks do not add up to the file's size")
        }
        switch try view.presence(of: incoming.manifest, content: content) {
        case .whole: return nil
        case .missing(let chunks): return context.isQuotaExceeded ? .quotaExceeded : .missingChunks(chunks)
        case .contradicted: return .invalid("the chunks are not as long as the file's manifest says")
        }
    }

    /// A revision is committed once: again, with the same content, the answer is the item as it is. It names no other content, and
    /// no other item takes it over.
    private func answerToKnownRevision(
        of incoming: Incoming,
        for existing: RemoteItem
    ) throws(View.Failure) -> OperationOutcome? {
        guard case .file(let file) = incoming.content, let known = try view.revision(file.revision) else { return nil }
        guard known.item == existing.id else { return .invalid("the revision belongs to another item") }
        guard known.version.content == file.content else { return .invalid("the revision has another content") }
        return .committed(existing)
    }

    private func seenRevision(_ base: RevisionID?, of item: ItemID) throws(View.Failure) -> StoredRevision? {
        guard let base, let revision = try view.revision(base), revision.item == item else { return nil }
        return revision
    }

    /// Whether what is current was made from that content: the same edit on both sides, after which the other side went on. So also of a
    /// device that died after it had applied a revision, before it wrote that down.
    private func wasMade(
        _ content: ContentID,
        since base: RevisionID?,
        before current: RevisionID,
        of item: ItemID
    ) throws(View.Failure) -> Bool {
        var next = try view.revision(current)?.base
        for _ in 0..<100 {
            guard let id = next, id != base, let revision = try view.revision(id), revision.item == item else {
                return false
            }
            if revision.version.content == content { return true }
            next = revision.base
        }
        return false
    }
}
