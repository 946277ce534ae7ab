package import UbiquityModel

/// Decides what one operation does to a container: the cloud's side of architecture section 5, as a function of what the
/// catalogue says at that moment. An edit that comes too late is never refused: it becomes a conflict version, or wins.
///
/// What holds before and after each decision: a live item lies in a live folder; live items that are not announced have
/// different names (also without their case, if the container is case-insensitive); no folder lies in itself; the current content of a live item is whole.
package struct CommitRules<View: CommitView> {
    let view: View
    let context: CommitContext

    package init(view: View, context: CommitContext) {
        self.view = view
        self.context = context
    }

    package func decide(_ operation: ItemOperation) throws(View.Failure) -> CommitDecision {
        let decision = try decided(operation)
        guard case .change(let change) = decision else { return decision }
        let (conflicts, bytes) = (change.item.conflicts.count, change.item.attributes.extendedBytes)
        guard conflicts > CommitLimits.conflicts || bytes > ItemAttributes.longestExtended else { return decision }
        let former = try view.item(operation.item)
        if conflicts > CommitLimits.conflicts, former.map({ $0.conflicts.count < conflicts }) ?? true {
            return .answer(.invalid("it has \(CommitLimits.conflicts) versions that nobody has resolved"))
        }
        // Each device may have set as much as an item can have: nobody could read what both are together.
        if bytes > ItemAttributes.longestExtended, former.map({ $0.attributes.extendedBytes < bytes }) ?? true {
            return .answer(.invalid("with those that others have set, its extended attributes pass 64 KiB"))
        }
        return decision
    }

    private func decided(_ operation: ItemOperation) throws(View.Failure) -> CommitDecision {
        let id = operation.item
        guard id != .root else { return .answer(.invalid("the root folder is never changed")) }
        switch operation.action {
        case .create(let place, let content, let attributes, let manifest, let edited):
            let incoming = Incoming(
                content: content,
                attributes: attributes,
                manifest: manifest,
                edited: context.corrected(edited)
            )
            return try create(id, at: place, incoming)
        case .announce(let place, let content, let attributes):
            return try announce(id, at: place, content, attributes)
        case .edit(let base, let content, let attributes, let manifest, let edited):
            if let newer = try unseenLink(id, since: operation.formerTarget), newer.content != content {
                return .answer(.superseded(newer))
            }
            let incoming = Incoming(
                content: content,
                attributes: attributes,
                manifest: manifest,
                edited: context.corrected(edited),
                isUnwitnessed: operation.isUnwitnessed,
                formerAttributes: operation.formerAttributes,
                formerTarget: operation.formerTarget
            )
            return try edit(id, base: base, incoming)
        case .move(let place):
            return try move(id, to: place)
        case .setAttributes(let modified, let mode, let extended):
            return try setAttributes(id, modified, mode, extended, since: operation.formerAttributes)
        case .delete(let base, let conflicts):
            if let newer = try unseenLink(id, since: operation.formerTarget) { return .answer(.superseded(newer)) }
            return try delete(id, base: base, conflicts: conflicts)
        case .revive(let place, let attributes):
            return try revive(id, at: place, attributes)
        case .resolve(let versions, let winner, let base):
            return try resolve(id, versions: versions, winner: winner, base: base)
        case .restore(let version, let revision, let base, let edited):
            return try restore(id, version: version, as: revision, base: base, edited: context.corrected(edited))
        case .undelete:
            return try undelete(id)
        case .discard(let versions):
            return try discard(id, versions: versions)
        }
    }

    /// Whoever changes or deletes the item does not know what it leads to by now: that would be gone, since links have no versions.
    private func unseenLink(_ id: ItemID, since former: [UInt8]?) throws(View.Failure) -> RemoteItem? {
        guard let item = try view.item(id), !item.isDeleted, case .symlink(let target) = item.content, target != former
        else { return nil }
        return item
    }

    // MARK: Places and attributes

    private func move(_ id: ItemID, to place: Place) throws(View.Failure) -> CommitDecision {
        guard var item = try view.item(id) else { return .answer(.noSuchItem) }
        guard !item.isDeleted else { return .answer(.superseded(item)) }
        guard item.place != place else { return .answer(.committed(item)) }
        if let refusal = try refusal(of: place, for: item) { return .answer(refusal) }
        item.place = place
        return .change(CommitChange(item: item))
    }

    /// Per attribute the last change wins (semantics section 3).
    private func setAttributes(
        _ id: ItemID,
        _ modified: Timestamp?,
        _ mode: UInt16?,
        _ extended: [[UInt8]: [UInt8]]?,
        since former: ItemAttributes?
    ) throws(View.Failure) -> CommitDecision {
        guard var item = try view.item(id) else { return .answer(.noSuchItem) }
        guard !item.isDeleted else { return .answer(.superseded(item)) }
        let before = item.attributes
        if let modified { item.attributes.modified = modified }
        if let mode { item.attributes.mode = mode & 0o777 }
        if let extended {
            var set = item.attributes
            set.extended = extended
            item.attributes.extended = former.map { set.merged(since: $0, into: before).extended } ?? extended
        }
        return item.attributes == before ? .answer(.committed(item)) : .change(CommitChange(item: item))
    }

    /// Why `item` cannot be at `place`; `nil` if it can.
    func refusal(of place: Place, for item: RemoteItem) throws(View.Failure) -> OperationOutcome? {
        guard try isLiveFolder(place.parent) else { return .parentMissing }
        if item.content == .folder, let refusal = try refusal(ofFolder: item.id, in: place.parent) { return refusal }
        if item.isAnnounced { return nil }
        if let holder = try view.holder(of: place), holder != item.id { return .nameTaken(by: holder) }
        return nil
    }

    func isLiveFolder(_ id: ItemID) throws(View.Failure) -> Bool {
        if id == .root { return true }
        guard let folder = try view.item(id) else { return false }
        return !folder.isDeleted && folder.content == .folder
    }

    /// Why that folder cannot lie in the live folder `parent`: it would lie in itself, or too deep to find that out.
    private func refusal(ofFolder folder: ItemID, in parent: ItemID) throws(View.Failure) -> OperationOutcome? {
        // Nothing lives in what does not live.
        guard let known = try view.item(folder), !known.isDeleted else { return nil }
        var next = parent
        for _ in 0..<CommitLimits.depth {
            if next == .root { return nil }
            if next == folder { return .cycle }
            guard let item = try view.item(next) else { return nil }
            next = item.place.parent
        }
        return .invalid("it would lie below \(CommitLimits.depth) folders")
    }

    /// The name, or one of the next ones like it that is free. `nil` if none of them is: where a hundred are taken, few more are tried, since
    /// everybody's requests wait meanwhile.
    func freePlace(_ wanted: Place, for id: ItemID) throws(View.Failure) -> Place? {
        var place = wanted
        var number = 2
        while number < 1 << 30 {
            guard let holder = try view.holder(of: place), holder != id else { return place }
            place.name = wanted.name.numbered(number)
            number += number < 100 ? 1 : number
        }
        return nil
    }
}

/// What one member could otherwise make every other's requests wait for.
package enum CommitLimits {
    /// Folders are not moved to where more folders lead to. No path is longer (`PATH_MAX`, with names of one byte).
    package static let depth = 2048
    /// Unresolved versions of one item. What would be one more stays on its device, and its owner is told.
    package static let conflicts = 1000
}

/// A content as an operation brings it.
struct Incoming {
    var content: ItemContent
    var attributes: ItemAttributes
    var manifest: Manifest
    /// Corrected by the server's clock.
    var edited: Timestamp
    /// It may be an old state that somebody has restored.
    var isUnwitnessed = false
    /// Those that its author had seen.
    var formerAttributes: ItemAttributes?
    /// What its author had seen the link lead to.
    var formerTarget: [UInt8]?

    func merged(into current: ItemAttributes) -> Incoming {
        guard let formerAttributes else { return self }
        var merged = self
        merged.attributes = attributes.merged(since: formerAttributes, into: current)
        // No content is refused for attributes: it comes without, and the operation that sets them is refused.
        if merged.attributes.extendedBytes > ItemAttributes.longestExtended {
            merged.attributes.extended = current.extended
        }
        return merged
    }
}
