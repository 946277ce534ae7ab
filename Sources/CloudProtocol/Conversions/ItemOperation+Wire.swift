internal import FoundationEssentials
package import UbiquityModel

extension ItemOperation {
    package init(wire: WireOperation) throws(WireError) {
        let id = try OperationID(wire: wire.id, "the operation's id")
        let item = try ItemID(wire: wire.item, "the item's id")
        guard item != .root else { throw .contradiction("the root folder is never changed") }
        guard let action = wire.action else { throw .missing("what the operation does") }
        self.init(
            id: id,
            item: item,
            action: try Action(wire: action, item: item),
            isUnwitnessed: wire.unwitnessed,
            formerAttributes: wire.hasFormerAttributes ? try ItemAttributes(wire: wire.formerAttributes) : nil,
            formerTarget: try Self.formerTarget(action)
        )
    }

    private static func formerTarget(_ action: WireOperation.OneOf_Action) throws(WireError) -> [UInt8]? {
        let target: Data? =
            switch action {
            case .edit(let edit): edit.hasFormerTarget ? edit.formerTarget : nil
            case .delete(let delete): delete.hasFormerTarget ? delete.formerTarget : nil
            default: nil
            }
        guard let target else { return nil }
        return try ItemContent.target(wire: target)
    }
}

extension ItemOperation.Action {
    fileprivate init(wire: WireOperation.OneOf_Action, item: ItemID) throws(WireError) {
        switch wire {
        case .create(let create):
            let content = try ItemContent(wire: create.content)
            self = .create(
                place: try place(create.place, of: item),
                content: content,
                attributes: try ItemAttributes(wire: create.attributes),
                manifest: try manifest(create.manifest, of: content),
                edited: Timestamp(wire: create.edited)
            )
        case .announce(let announce):
            guard case .file(let file) = try ItemContent(wire: announce.content), file.content == nil else {
                throw .contradiction("only files whose content comes later are announced")
            }
            self = .announce(
                place: try place(announce.place, of: item),
                content: file,
                attributes: try ItemAttributes(wire: announce.attributes)
            )
        case .edit(let edit):
            let content = try ItemContent(wire: edit.content)
            guard content != .folder else { throw .contradiction("a folder has no content to edit") }
            guard edit.manifestBase.isEmpty, edit.manifestDifference.isEmpty else {
                throw .contradiction("a manifest that only its base makes complete")
            }
            self = .edit(
                base: try RevisionID.optional(wire: edit.base, "the base"),
                content: content,
                attributes: try ItemAttributes(wire: edit.attributes),
                manifest: try manifest(edit.manifest, of: content),
                edited: Timestamp(wire: edit.edited)
            )
        case .move(let move):
            self = .move(to: try place(move.place, of: item))
        case .setAttributes(let change):
            self = try Self.attributeChange(change)
        case .delete(let delete):
            self = .delete(
                base: try RevisionID.optional(wire: delete.base, "the base"),
                conflicts: try delete.conflicts.map { (id) throws(WireError) in
                    try RevisionID(wire: id, "a conflict version")
                }
            )
        case .revive(let revive):
            self = .revive(
                place: try place(revive.place, of: item),
                attributes: try ItemAttributes(wire: revive.attributes)
            )
        case .resolve(let resolve):
            self = .resolve(
                versions: try versions(resolve.versions),
                winner: try RevisionID.optional(wire: resolve.winner, "the winner"),
                base: try RevisionID.optional(wire: resolve.base, "the base")
            )
        case .restore(let restore):
            self = .restore(
                version: try RevisionID(wire: restore.version, "the version to restore"),
                as: try RevisionID(wire: restore.newRevision, "the new revision"),
                base: try RevisionID.optional(wire: restore.base, "the base"),
                edited: Timestamp(wire: restore.edited)
            )
        case .undelete:
            self = .undelete
        case .discard(let discard):
            self = .discard(versions: try versions(discard.versions))
        }
    }

    private static func attributeChange(_ change: WireSetAttributes) throws(WireError) -> Self {
        guard change.replacesExtended || change.extended.isEmpty else {
            throw .contradiction("extended attributes that replace nothing")
        }
        return .setAttributes(
            modified: change.hasModified ? Timestamp(wire: change.modified) : nil,
            mode: change.hasMode ? try checkedMode(change.mode) : nil,
            extended: change.replacesExtended ? try extendedAttributes(wire: change.extended) : nil
        )
    }
}

/// The place that an operation gives to `item`.
private func place(_ wire: WirePlace, of item: ItemID) throws(WireError) -> Place {
    let place = try Place(wire: wire)
    guard place.parent != item else { throw .contradiction("an item would lie in itself") }
    return place
}

private func versions(_ wire: [Data]) throws(WireError) -> [RevisionID] {
    try wire.map { (id) throws(WireError) in try RevisionID(wire: id, "a version") }
}

/// The manifest of a content that is committed: its chunks add up to the size, and only files have one.
private func manifest(_ data: Data, of content: ItemContent) throws(WireError) -> Manifest {
    guard case .file(let file) = content else {
        guard data.isEmpty else { throw .contradiction("a manifest for an item that is no file") }
        return Manifest()
    }
    guard file.content != nil else { throw .missing("the content's id") }
    return try Manifest(wire: data, size: file.size)
}

extension WireOperation {
    package init(_ operation: ItemOperation) {
        self.init()
        id = operation.id.wire
        item = operation.item.wire
        action = OneOf_Action(operation.action)
        unwitnessed = operation.isUnwitnessed
        if let former = operation.formerAttributes { formerAttributes = WireAttributes(former) }
        guard let target = operation.formerTarget else { return }
        switch action {
        case .edit(var edit)?:
            edit.formerTarget = Data(target)
            action = .edit(edit)
        case .delete(var delete)?:
            delete.formerTarget = Data(target)
            action = .delete(delete)
        default: break
        }
    }
}

extension WireOperation.OneOf_Action {
    fileprivate init(_ action: ItemOperation.Action) {
        switch action {
        case .create(let place, let content, let attributes, let manifest, let edited):
            var wire = WireCreate()
            wire.place = WirePlace(place)
            wire.content = WireContent(content)
            wire.attributes = WireAttributes(attributes)
            wire.manifest = Data(manifest.encoded)
            wire.edited = edited.wire
            self = .create(wire)
        case .announce(let place, let content, let attributes):
            var wire = WireAnnounce()
            wire.place = WirePlace(place)
            // An announced file has no content on the wire, even where the device knows the id already.
            wire.content = WireContent(.file(FileContent(revision: content.revision, content: nil, size: content.size)))
            wire.attributes = WireAttributes(attributes)
            self = .announce(wire)
        case .edit(let base, let content, let attributes, let manifest, let edited):
            var wire = WireEdit()
            wire.base = base?.wire ?? Data()
            wire.content = WireContent(content)
            wire.attributes = WireAttributes(attributes)
            wire.manifest = Data(manifest.encoded)
            wire.edited = edited.wire
            self = .edit(wire)
        case .move(let place):
            var wire = WireMove()
            wire.place = WirePlace(place)
            self = .move(wire)
        case .setAttributes(let modified, let mode, let extended):
            var wire = WireSetAttributes()
            if let modified { wire.modified = modified.wire }
            if let mode { wire.mode = UInt32(mode) }
            if let extended {
                wire.replacesExtended = true
                wire.extended = wireExtendedAttributes(extended)
            }
            self = .setAttributes(wire)
        case .delete(let base, let conflicts):
            var wire = WireDelete()
            wire.base = base?.wire ?? Data()
            wire.conflicts = conflicts.map(\.wire)
            self = .delete(wire)
        case .revive(let place, let attributes):
            var wire = WireRevive()
            wire.place = WirePlace(place)
            wire.attributes = WireAttributes(attributes)
            self = .revive(wire)
        case .resolve(let versions, let winner, let base):
            var wire = WireResolve()
            wire.versions = versions.map(\.wire)
            wire.winner = winner?.wire ?? Data()
            wire.base = base?.wire ?? Data()
            self = .resolve(wire)
        case .restore(let version, let revision, let base, let edited):
            var wire = WireRestore()
            wire.version = version.wire
            wire.newRevision = revision.wire
            wire.base = base?.wire ?? Data()
            wire.edited = edited.wire
            self = .restore(wire)
        case .undelete:
            self = .undelete(WireUndelete())
        case .discard(let versions):
            var wire = WireDiscard()
            wire.versions = versions.map(\.wire)
            self = .discard(wire)
        }
    }
}
