import Reconciliation
import UbiquityModel

/// A container in memory, and devices that commit to it: the commit rules with the simplest catalogue there can be.
struct CommitWorld {
    var items: [ItemID: RemoteItem] = [:]
    var revisions: [RevisionID: StoredRevision] = [:]
    var contents: Set<ContentID> = []
    var chunks: Set<ChunkID> = []
    /// The server's clock, in seconds.
    var now: Int64 = 1_000
    var isQuotaExceeded = false
    private var position: UInt64 = 0
    private var nextID: UInt64 = 0

    // MARK: Making operations

    mutating func fresh<Kind>() -> Identifier<Kind> {
        nextID += 1
        return Identifier(high: 7, low: nextID)
    }

    /// Commits an action of a device whose clock is `offset` seconds ahead of the server's.
    mutating func commit(
        _ item: ItemID,
        _ action: ItemOperation.Action,
        device: String = "anna",
        clockOffset offset: Int64 = 0,
        isUnwitnessed: Bool = false,
        former: ItemAttributes? = nil,
        formerTarget: String? = nil
    ) -> OperationOutcome {
        let context = CommitContext(
            device: device,
            now: seconds(now),
            deviceClock: seconds(now + offset),
            isQuotaExceeded: isQuotaExceeded
        )
        let rules = CommitRules(view: self, context: context)
        let operation = ItemOperation(
            id: fresh(),
            item: item,
            action: action,
            isUnwitnessed: isUnwitnessed,
            formerAttributes: former,
            formerTarget: formerTarget.map { Array($0.utf8) }
        )
        switch rules.decide(operation) {
        case .answer(let outcome):
            return outcome
        case .change(let change):
            position += 1
            var item = change.item
            item.position = position
            items[item.id] = item
            for revision in change.revisions { revisions[revision.version.revision] = revision }
            if let content = change.content { contents.insert(content.id) }
            return .committed(item)
        }
    }

    /// Creates a file whose chunks are in the cloud, and returns its id and first revision.
    mutating func file(
        _ name: String,
        in parent: ItemID = .root,
        _ text: String = "one",
        edited: Int64 = 100
    ) throws -> (item: ItemID, revision: RevisionID) {
        let id: ItemID = fresh()
        let revision: RevisionID = fresh()
        guard case .committed = commit(id, create(try place(name, parent), revision, text, edited: edited)) else {
            throw WorldError(what: "the file \(name) was not created")
        }
        return (id, revision)
    }

    mutating func folder(_ name: String, in parent: ItemID = .root) throws -> ItemID {
        let id: ItemID = fresh()
        let outcome = commit(id, create(try place(name, parent), .folder))
        guard case .committed = outcome else { throw WorldError(what: "the folder \(name): \(outcome)") }
        return id
    }

    /// An edit that brings `text`, whose chunk is in the cloud.
    mutating func edit(
        _ item: ItemID,
        base: RevisionID?,
        _ text: String,
        as revision: RevisionID? = nil,
        edited: Int64,
        device: String = "anna",
        clockOffset: Int64 = 0,
        isUnwitnessed: Bool = false,
        former: ItemAttributes? = nil,
        formerTarget: String? = nil
    ) -> OperationOutcome {
        let revision = revision ?? fresh()
        let content = upload(revision, text)
        let action = ItemOperation.Action.edit(
            base: base,
            content: .file(content.file),
            attributes: attributes(edited),
            manifest: content.manifest,
            edited: seconds(edited)
        )
        return commit(
            item,
            action,
            device: device,
            clockOffset: clockOffset,
            isUnwitnessed: isUnwitnessed,
            former: former,
            formerTarget: formerTarget
        )
    }

    mutating func create(
        _ place: Place,
        _ revision: RevisionID,
        _ text: String,
        edited: Int64 = 100
    ) -> ItemOperation.Action {
        let content = upload(revision, text)
        return .create(
            place: place,
            content: .file(content.file),
            attributes: attributes(edited),
            manifest: content.manifest,
            edited: seconds(edited)
        )
    }

    func create(_ place: Place, _ content: ItemContent) -> ItemOperation.Action {
        .create(place: place, content: content, attributes: attributes(1), manifest: Manifest(), edited: seconds(1))
    }

    private mutating func upload(_ revision: RevisionID, _ text: String) -> (file: FileContent, manifest: Manifest) {
        let content = content(revision, text)
        for entry in content.manifest.entries { chunks.insert(entry.chunk) }
        return content
    }

    // MARK: Looking

    func conflicts(_ item: ItemID) -> [RevisionID] { items[item]?.conflicts.map(\.revision) ?? [] }

    func current(_ item: ItemID) -> RevisionID? {
        guard case .file(let file)? = items[item]?.content else { return nil }
        return file.revision
    }

    /// What the rules promise of every state: nil, or what is wrong with this one.
    var violation: String? {
        var places = Set<Place>()
        for item in items.values where !item.isDeleted {
            if !item.isAnnounced, !places.insert(item.place).inserted { return "two items have one name" }
            guard item.place.parent == .root || items[item.place.parent].map({ !$0.isDeleted }) == true else {
                return "a live item lies in a folder that is gone"
            }
            if case .file(let file) = item.content, let content = file.content {
                if !contents.contains(content) { return "a content without a manifest" }
                if revisions[file.revision]?.version.kind != .current { return "the current revision is not marked so" }
            }
            let losers = revisions.values.filter { $0.item == item.id && $0.version.kind == .conflict }
            if Set(losers.map(\.version.revision)) != Set(item.conflicts.map(\.revision)) {
                return "conflicts differ from revisions"
            }
            let contents = item.conflicts.map(\.content)
            if Set(contents).count != contents.count { return "two losers of one content" }
        }
        for item in items.keys {
            var next = item
            for _ in 0...items.count where next != .root { next = items[next]?.place.parent ?? .root }
            if next != .root { return "a cycle" }
        }
        return nil
    }
}

struct WorldError: Error {
    let what: String
}

extension CommitWorld: CommitView {
    func item(_ id: ItemID) -> RemoteItem? { items[id] }
    func revision(_ id: RevisionID) -> StoredRevision? { revisions[id] }

    func keeps(_ content: ContentID, _ item: ItemID) -> Bool {
        revisions.values.contains { revision in
            revision.item == item && revision.version.content == content && !revision.isDiscarded
                && !revision.isUnwanted
        }
    }

    func holder(of place: Place) -> ItemID? {
        items.values.first { !$0.isDeleted && !$0.isAnnounced && $0.place == place }?.id
    }

    func hasLiveChildren(_ folder: ItemID) -> Bool {
        items.values.contains { !$0.isDeleted && $0.place.parent == folder }
    }

    func presence(of manifest: Manifest, content: ContentID) -> ContentPresence {
        if contents.contains(content) { return .whole }
        // The length of a chunk in this world is that of the text it is named after.
        let lies = manifest.entries.contains { entry in entry.length != entry.chunk.bytes.prefix { $0 != 0 }.count }
        if lies { return .contradicted }
        let missing = manifest.entries.map(\.chunk).filter { !chunks.contains($0) }
        return missing.isEmpty ? .whole : .missing(missing)
    }
}

// MARK: Values

func place(_ name: String, _ parent: ItemID = .root) throws -> Place { Place(parent: parent, name: try Name(name)) }

func seconds(_ seconds: Int64) -> Timestamp { Timestamp(nanoseconds: seconds * 1_000_000_000) }

func attributes(_ modified: Int64) -> ItemAttributes { ItemAttributes(modified: seconds(modified), mode: 0o644) }

/// One chunk whose name is derived from the text: equal texts are equal contents.
func content(_ revision: RevisionID, _ text: String) -> (file: FileContent, manifest: Manifest) {
    let padded = Array(text.utf8.prefix(32)) + [UInt8](repeating: 0, count: max(0, 32 - text.utf8.count))
    // 32 bytes were just made.
    guard let chunk = ChunkID(bytes: padded), let content = ContentID(bytes: padded.reversed()) else {
        preconditionFailure("a digest has 32 bytes")
    }
    let manifest = Manifest(entries: text.isEmpty ? [] : [.init(chunk: chunk, length: UInt32(text.utf8.count))])
    return (FileContent(revision: revision, content: content, size: manifest.size), manifest)
}

extension OperationOutcome {
    var item: RemoteItem? {
        if case .committed(let item) = self { return item }
        return nil
    }
}
