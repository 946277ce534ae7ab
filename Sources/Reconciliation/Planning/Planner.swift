package import UbiquityModel

/// Decides from the three trees what one item needs. Every difference between two of them has one meaning (architecture
/// section 4): remote against synced is to be applied here, local against synced is to be sent.
package enum Planner {
    /// - Parameters:
    ///   - local: The item as found on disk; `nil` when nothing is there.
    ///   - synced: The last agreed state; `nil` for an item that is new on either side.
    ///   - remote: What the server last said; a tombstone counts as deleted, `nil` as never heard of.
    ///   - rival: For a local item without a synced row: the live remote item of that name in that folder.
    ///   - deletionIsLogged: The driver saw the deletion happen. Without that, absence proves nothing.
    ///   - isKept: Its user has brought the item here once more: that others have deleted it meanwhile does not take it away.
    package static func decide(
        local: LocalItem?,
        synced: AgreedItem?,
        remote: RemoteItem?,
        rival: RemoteItem? = nil,
        deletionIsLogged: Bool = false,
        isKept: Bool = false
    ) -> Decision {
        let live = remote.flatMap { $0.isDeleted ? nil : $0 }
        switch (local, synced) {
        case (nil, nil):
            return live == nil ? .nothing : .apply([.appear])
        case (let local?, nil):
            return decideUntracked(local, remote: live, rival: rival)
        case (nil, let synced?):
            return decideAbsent(synced, remote: live, deletionIsLogged: deletionIsLogged)
        case (let local?, let synced?):
            guard let live else { return decideWithoutRemote(local, synced, tombstone: remote, isKept) }
            return decidePresent(local, synced, live)
        }
    }

    // MARK: New here

    private static func decideUntracked(_ local: LocalItem, remote: RemoteItem?, rival: RemoteItem?) -> Decision {
        if let remote {
            // The same id without a synced row: a commit whose answer was lost, or whose row was. Equal content is agreement.
            switch compare(local.content, remote.content) {
            case .equal: return .agree
            case .unknown: return .read
            case .different:
                if case .symlink = remote.content { return .split }
                if case .file = remote.content, !remote.isAnnounced, local.content.kind == .file {
                    return .send([.edit(base: nil)])
                }
                // An announcement claims no name: another item may have got it since.
                guard remote.isAnnounced, rival != nil else { return .send([.create]) }
            }
        }
        guard let rival else {
            // Bytes that were not read yet are read while they are sent.
            if case .dataless = local.content { return .unavailable }
            return .send([.create])
        }
        switch compare(local.content, rival.content) {
        case .equal: return .adopt(rival.id)
        case .unknown: return .read
        case .different:
            // A placeholder that nobody knows was left by an apply that ended half-way. It is nothing of the user's.
            if case .dataless = local.content, case .file = rival.content { return .adopt(rival.id) }
            return .renameAside
        }
    }

    // MARK: Gone here

    private static func decideAbsent(
        _ synced: AgreedItem,
        remote: RemoteItem?,
        deletionIsLogged: Bool
    ) -> Decision {
        // Deleted there, or unknown to a server that was restored: who has it offers it again, and a row alone is nothing to wait for.
        guard let remote else { return .forget }
        // Edit against delete: the edit survives.
        guard deletionIsLogged, sameContent(remote.content, synced.content) else { return .apply([.appear]) }
        if case .file(let file) = synced.content { return .send([.delete(base: file.revision)]) }
        return .send([.delete(base: nil)])
    }

    // MARK: Gone there

    private static func decideWithoutRemote(
        _ local: LocalItem,
        _ synced: AgreedItem,
        tombstone: RemoteItem?,
        _ isKept: Bool
    ) -> Decision {
        let wasDeleted = tombstone != nil
        switch local.content {
        case .folder:
            guard wasDeleted else { return .send([.create]) }
            return isKept ? .send([.revive]) : .apply([.vanish])
        case .symlink(let target):
            if wasDeleted, synced.content == .symlink(target: target) {
                return isKept ? .send([.create]) : .apply([.vanish])
            }
            return .send([survival(local, base: nil, tombstone)])
        case .unchanged:
            return wasDeleted && !isKept ? .apply([.vanish]) : .read
        case .dataless:
            // Missing at the server without a tombstone is not deleted; the bytes may still be on another device.
            return wasDeleted ? .apply([.vanish]) : .unavailable
        case .unread:
            return .read
        case .read(let content, _):
            guard wasDeleted, case .file(let file) = synced.content else { return .send([.create]) }
            // As an edit it would be none.
            if file.content == content { return isKept ? .send([.create]) : .apply([.vanish]) }
            return .send([survival(local, base: file.revision, tombstone)])
        }
    }

    /// Edit against delete: the edit survives. Where the item is here, if it was deleted elsewhere: that folder may be gone as well.
    private static func survival(_ local: LocalItem, base: RevisionID?, _ tombstone: RemoteItem?) -> Send {
        tombstone?.place == local.place ? .edit(base: base) : .create
    }

    // MARK: Here, agreed on, and there

    private static func decidePresent(_ local: LocalItem, _ synced: AgreedItem, _ remote: RemoteItem) -> Decision {
        var sends = [Send]()
        var applies = [Apply]()
        // Of its attributes, too, nobody knows whether a program has set them.
        var isLeftover = false

        let remoteContentIsNew =
            !sameContent(remote.content, synced.content) && compare(local.content, remote.content) != .equal
        switch compareWithSynced(local.content, synced.content) {
        case .unknown:
            return .read
        case .equal:
            if remoteContentIsNew { applies.append(.replace) }
        case .different:
            switch compare(local.content, remote.content) {
            case .unknown: return .read
            case .equal: break
            case .different:
                if case .dataless = local.content {
                    // A placeholder of a third revision: never evidence of an edit, only of an interrupted apply.
                    applies.append(.replace)
                    isLeftover = true
                } else if case .symlink = remote.content, !sameContent(remote.content, synced.content) {
                    return .split
                } else {
                    sends.append(.edit(base: revision(of: synced.content)))
                }
            }
        }
        let contentIsSent = !sends.isEmpty

        if local.place != remote.place {
            // Moved on both sides: the later one in the log wins, and ours will be the later.
            if local.place != synced.place {
                sends.append(.move(local.place))
            } else {
                applies.append(.move(remote.place))
            }
        }

        let (toSend, toApply) = attributeChanges(local, synced.attributes, remote.attributes)
        var changes = toSend
        // The time is that of the content, whichever wins. The others hold also where the edit loses, or turns out to be none.
        if contentIsSent { changes.modified = nil }
        if !changes.isEmpty, !isLeftover { sends.append(.attributes(changes)) }
        if !toApply.isEmpty, !applies.contains(.replace) { applies.append(.attributes(toApply)) }

        // What is sent comes back as remote state; what is then left to apply is planned anew.
        if !sends.isEmpty { return .send(sends) }
        if !applies.isEmpty { return .apply(applies) }
        return .agree
    }

    private static func attributeChanges(
        _ local: LocalItem,
        _ synced: ItemAttributes,
        _ remote: ItemAttributes
    ) -> (send: AttributeChanges, apply: AttributeChanges) {
        var send = AttributeChanges()
        var apply = AttributeChanges()
        if local.attributes.modified != remote.modified, !isSymlink(local.content) {
            if local.timeWasSet, local.attributes.modified != synced.modified {
                send.modified = local.attributes.modified
            } else if remote.modified != synced.modified {
                apply.modified = remote.modified
            }
        }
        if local.attributes.mode != remote.mode, !isSymlink(local.content) {
            if local.attributes.mode != synced.mode {
                send.mode = local.attributes.mode
            } else {
                apply.mode = remote.mode
            }
        }
        if local.extendedKnown {
            if local.attributes.extended != remote.extended {
                if local.attributes.extended != synced.extended {
                    send.extended = local.attributes.extended
                } else {
                    apply.extended = remote.extended
                }
            }
        } else if remote.extended != synced.extended {
            apply.extended = remote.extended
        }
        return (send, apply)
    }

    // MARK: Contents

    private enum Comparison { case equal, different, unknown }

    private static func compare(_ local: LocalContent, _ remote: ItemContent) -> Comparison {
        switch (local, remote) {
        case (.folder, .folder): return .equal
        case (.symlink(let target), .symlink(let other)): return target == other ? .equal : .different
        case (.read(let content, _), .file(let file)): return file.content == content ? .equal : .different
        case (.dataless(let revision, let size), .file(let file)):
            // Announced with one size and sent with another: who was told of the first has a placeholder that does not fit.
            return file.revision == revision && file.size == size ? .equal : .different
        case (.unread(let size), .file(let file)): return size == file.size ? .unknown : .different
        case (.unchanged, .file): return .unknown
        case (.folder, _), (.symlink, _), (.read, _), (.dataless, _), (.unread, _), (.unchanged, _): return .different
        }
    }

    /// Whether what is here is known to be what was agreed on.
    package static func agrees(_ local: LocalContent, with synced: ItemContent) -> Bool {
        compareWithSynced(local, synced) == .equal
    }

    private static func compareWithSynced(_ local: LocalContent, _ synced: ItemContent) -> Comparison {
        switch (local, synced) {
        case (.unchanged, _): return .equal
        // Same size or not, the bytes are needed to send them: they are read once, and compared then.
        case (.unread, .file): return .unknown
        case (.folder, _), (.symlink, _), (.read, _), (.dataless, _), (.unread, _): return compare(local, synced)
        }
    }

    /// Whether two agreed or remote contents are the same; a revision that only repeats the content is.
    package static func sameContent(_ left: ItemContent, _ right: ItemContent) -> Bool {
        switch (left, right) {
        case (.file(let one), .file(let other)):
            return one.revision == other.revision && one.content == other.content
        case (.symlink(let one), .symlink(let other)): return one == other
        case (.folder, .folder): return true
        case (.file, _), (.symlink, _), (.folder, _): return false
        }
    }

    private static func revision(of content: ItemContent) -> RevisionID? {
        if case .file(let file) = content { return file.revision }
        return nil
    }

    private static func isSymlink(_ content: LocalContent) -> Bool {
        if case .symlink = content { return true }
        return false
    }
}
