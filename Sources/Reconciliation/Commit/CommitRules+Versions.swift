internal import UbiquityModel

/// Versions: resolving conflicts, bringing earlier contents back (semantics section 4).
extension CommitRules {
    func resolve(
        _ id: ItemID,
        versions: [RevisionID],
        winner: RevisionID?,
        base: RevisionID?
    ) throws(View.Failure) -> CommitDecision {
        guard var item = try view.item(id), !item.isDeleted else { return .answer(.noSuchItem) }
        let settled = item.conflicts.filter { versions.contains($0.revision) || $0.revision == winner }
        item.conflicts.removeAll { settled.contains($0) }
        var writes = [StoredRevision]()
        for version in settled where version.revision != winner {
            guard var revision = try stored(version, as: .saved) else { continue }
            revision.isResolved = true
            writes.append(revision)
        }
        if let winner, winner != item.content.revision {
            guard var chosen = try kept(winner, of: id) else {
                return .answer(.invalid("the item has no version \(winner)"))
            }
            // Resolved elsewhere meanwhile, and differently: two edits of one base, of which this is the later.
            let isContested = chosen.version.kind != .conflict && !versions.isEmpty && settled.isEmpty
            if let former = try displaced(from: &item, seen: base, isContested: isContested) { writes.append(former) }
            chosen.version.kind = .current
            chosen.isResolved = false
            chosen.isUnwanted = false
            chosen.version.name = item.place.name
            // As of a restored one: once it is replaced, it is thinned among what was in the file at its time, not among what it lost against.
            chosen.version.edited = context.now
            writes.append(chosen)
            put(chosen.version, into: &item, edited: context.now)
            item.author = chosen.version.device
            writes.append(contentsOf: try dropEqual(to: chosen.version.content, from: &item))
        }
        item.conflicts = sortedByAge(item.conflicts)
        return writes.isEmpty ? .answer(.committed(item)) : .change(CommitChange(item: item, revisions: writes))
    }

    func restore(
        _ id: ItemID,
        version: RevisionID,
        as new: RevisionID,
        base: RevisionID?,
        edited: Timestamp
    ) throws(View.Failure) -> CommitDecision {
        guard var item = try view.item(id), !item.isDeleted else { return .answer(.noSuchItem) }
        guard item.content != .folder else { return .answer(.invalid("a folder has no versions")) }
        guard let source = try kept(version, of: id) else {
            return .answer(.invalid("the item has no version \(version)"))
        }
        if let known = try view.revision(new) {
            guard known.item == id else { return .answer(.invalid("the revision belongs to another item")) }
            guard known.version.content == source.version.content else {
                return .answer(.invalid("the revision has another content"))
            }
            return .answer(.committed(item))
        }
        if case .file(let file) = item.content, file.content == source.version.content {
            return .answer(.committed(item))
        }
        var writes = [StoredRevision]()
        if let former = try displaced(from: &item, seen: base) { writes.append(former) }
        item.conflicts = sortedByAge(item.conflicts)
        var restored = source
        restored.base = item.content.revision
        restored.version.revision = new
        restored.version.kind = .current
        restored.isResolved = false
        restored.isUnwanted = false
        restored.version.edited = edited
        restored.version.device = context.device
        restored.version.name = item.place.name
        writes.append(restored)
        put(restored.version, into: &item, edited: edited)
        item.author = context.device
        return .change(CommitChange(item: item, revisions: writes))
    }

    /// What is not, or no more, a saved version of the item stays as it is.
    func discard(_ id: ItemID, versions: [RevisionID]) throws(View.Failure) -> CommitDecision {
        guard let item = try view.item(id), !item.isDeleted else { return .answer(.noSuchItem) }
        var writes = [StoredRevision]()
        for version in versions {
            guard var saved = try kept(version, of: id), saved.version.kind == .saved, !saved.isUnwanted else {
                continue
            }
            saved.isUnwanted = true
            writes.append(saved)
        }
        return writes.isEmpty ? .answer(.committed(item)) : .change(CommitChange(item: item, revisions: writes))
    }

    private func put(_ version: ItemVersion, into item: inout RemoteItem, edited: Timestamp) {
        // Contents of files and of packages never meet in one item.
        let isPackage = item.content.kind == .package
        item.content = .file(
            FileContent(
                revision: version.revision,
                content: version.content,
                size: version.size,
                isPackage: isPackage
            )
        )
        item.attributes.modified = version.modified
        item.edited = edited
    }

    // MARK: Helpers

    /// A version of the item whose content is still there.
    private func kept(_ revision: RevisionID, of item: ItemID) throws(View.Failure) -> StoredRevision? {
        guard let stored = try view.revision(revision), stored.item == item, !stored.isDiscarded else { return nil }
        return stored
    }

    /// The current revision, which another one is about to displace: a saved version if whoever decided that had it before them,
    /// else one more conflict version of the item. `nil` if there is none that could be kept.
    /// - Parameter base: The current revision that the author saw; `nil` if that is not known.
    /// - Parameter isContested: The author had not seen it.
    func displaced(
        from item: inout RemoteItem,
        seen base: RevisionID? = nil,
        isContested: Bool = false
    ) throws(View.Failure) -> StoredRevision? {
        let isUnseen = base.map { $0 != item.content.revision } ?? false
        guard let former = try demoted(item, to: isContested || isUnseen ? .conflict : .saved) else { return nil }
        guard former.version.kind == .conflict else { return former }
        // Identical content is one loser, not two.
        guard !item.conflicts.contains(where: { $0.content == former.version.content }) else {
            return try demoted(item, to: .saved)
        }
        item.conflicts.append(former.version)
        return former
    }

    /// The current content of the item as a version of that kind; `nil` if it has none that could be kept.
    func demoted(_ item: RemoteItem, to kind: ItemVersion.Kind) throws(View.Failure) -> StoredRevision? {
        guard case .file(let file) = item.content, file.content != nil, var revision = try view.revision(file.revision)
        else { return nil }
        revision.version.kind = kind
        revision.isUnwanted = kind == .saved && context.discardsFormer
        revision.version.modified = item.attributes.modified
        revision.version.name = item.place.name
        return revision
    }

    func stored(_ version: ItemVersion, as kind: ItemVersion.Kind) throws(View.Failure) -> StoredRevision? {
        guard var revision = try view.revision(version.revision) else { return nil }
        revision.version = version
        revision.version.kind = kind
        return revision
    }

    /// Identical content is never a conflict: losers that equal the current content become saved versions.
    func dropEqual(to content: ContentID, from item: inout RemoteItem) throws(View.Failure) -> [StoredRevision] {
        var dropped = [StoredRevision]()
        for version in item.conflicts where version.content == content {
            if let revision = try stored(version, as: .saved) { dropped.append(revision) }
        }
        item.conflicts.removeAll { $0.content == content }
        return dropped
    }

    func sortedByAge(_ versions: [ItemVersion]) -> [ItemVersion] {
        versions.sorted { ($0.edited, $0.revision) < ($1.edited, $1.revision) }
    }
}
