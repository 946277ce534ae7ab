internal import CatalogModel
internal import GRDB
internal import Reconciliation
internal import SQLiteRows
internal import UbiquityModel

/// A container inside the transaction of a commit.
struct SQLiteCommitStore: CommitStore {
    private let db: Database
    private let container: Int64
    private let isCaseInsensitive: Bool
    /// When this is recorded.
    private let time: Timestamp
    /// Chunks that were new, as this transaction has recorded them: most of what is committed is made of them.
    private let added: [ChunkID: ChunkRecord]
    private let hasPack: @Sendable (UInt64, UInt64) -> Bool
    private let statements: CommitStatements
    private let lastFolder = LastFolder()
    /// Chunks of contents that were new to the container.
    private(set) var named: Set<ChunkID> = []

    init(
        db: Database,
        container: Int64,
        isCaseInsensitive: Bool,
        time: Timestamp,
        added: [ChunkID: ChunkRecord],
        hasPack: @escaping @Sendable (UInt64, UInt64) -> Bool
    ) throws {
        self.db = db
        self.container = container
        self.isCaseInsensitive = isCaseInsensitive
        self.time = time
        self.added = added
        self.hasPack = hasPack
        statements = try CommitStatements(db, container: container, isCaseInsensitive: isCaseInsensitive)
    }

    func item(_ id: ItemID) throws -> RemoteItem? {
        if let folder = lastFolder.item(id) { return folder }
        let found = try statements.item.row {
            $0.append(container)
            $0.append(id)
        } decode: {
            try ItemRows.item($0)
        }
        guard case (var item, let conflicts)? = found else { return nil }
        // Those of a deleted item are not counted in its row.
        if conflicts > 0 || item.isDeleted {
            item.conflicts = try ItemRows.conflicts(of: id, container: container, db)
        }
        if item.content == .folder, !item.isDeleted { lastFolder.remember(item) }
        return item
    }

    func revision(_ id: RevisionID) throws -> StoredRevision? {
        try statements.revision.row {
            $0.append(container)
            $0.append(id)
        } decode: {
            try ItemRows.revision($0)
        }
    }

    private static let keptSQL = """
        SELECT 1 FROM \(ItemRows.revisionsOfItem) WHERE container = ? AND item = ? AND content = ?
            AND kind <> \(ItemRows.discardedKind) AND unwanted = 0 LIMIT 1
        """

    func keeps(_ content: ContentID, _ item: ItemID) throws -> Bool {
        try db.exists(Self.keptSQL, [.integer(container), .identifier(item), .blob(content.bytes)])
    }

    func holder(of place: Place) throws -> ItemID? {
        let name = isCaseInsensitive ? place.name.folded.bytes : place.name.bytes
        return try statements.holder.row {
            $0.append(container)
            $0.append(place.parent)
            $0.append(name)
        } decode: {
            try $0.identifier(0)
        }
    }

    /// Each has an index of its own.
    private static let childrenSQL = [0, 1].map { announced in
        "SELECT 1 FROM items WHERE container = ? AND parent = ? AND deleted IS NULL AND announced = \(announced) LIMIT 1"
    }

    func hasLiveChildren(_ folder: ItemID) throws -> Bool {
        for sql in Self.childrenSQL {
            if try db.exists(sql, [.integer(container), .identifier(folder)]) { return true }
        }
        return false
    }

    func presence(of manifest: Manifest, content: ContentID) throws -> ContentPresence {
        // Its name comes from the chunks' names alone: their lengths are compared here. That it was whole when it was committed does not
        // make it so: nothing of it is collected while its manifest is here, but packs get lost, and whoever brings it may have the last
        // copy. The lookup costs some microseconds a chunk, as for a content that is new.
        if try isManifest(manifest, of: content) == false { return .contradicted }
        var missing = [ChunkID]()
        var lengths = [ChunkID: UInt32]()
        for entry in manifest.entries {
            if let length = lengths[entry.chunk] {
                guard length == entry.length else { return .contradicted }
                continue
            }
            lengths[entry.chunk] = entry.length
            if let stored = try added[entry.chunk] ?? statements.chunk(entry.chunk), hasPack(stored.pack, stored.end) {
                guard stored.length == entry.length else { return .contradicted }
            } else {
                missing.append(entry.chunk)
            }
        }
        return missing.isEmpty ? .whole : .missing(missing)
    }

    /// Whether the content is known with that manifest; `nil` if it is not known.
    private func isManifest(_ manifest: Manifest, of content: ContentID) throws -> Bool? {
        try statements.isManifest.row {
            $0.append(manifest.encoded)
            $0.append(container)
            $0.append(content)
        } decode: {
            $0.integer(0) != 0
        }
    }

    func isCommitted(_ operation: OperationID) throws -> Bool {
        try statements.isCommitted.hasRow {
            $0.append(container)
            $0.append(operation)
        }
    }

    func remember(_ operation: OperationID) throws {
        try statements.remember.run {
            $0.append(container)
            $0.append(operation)
        }
    }

    mutating func write(_ change: CommitChange, _ context: CommitContext) throws {
        let item = change.item
        let deleted = item.isDeleted ? (at: time, by: context.device) : nil
        lastFolder.forget(item.id)
        try statements.putItem.run {
            ItemRows.bind(item, container: container, deleted: deleted, folding: isCaseInsensitive, &$0)
        }
        for revision in change.revisions { try put(revision) }
        if let content = change.content { try put(content) }
    }

    private mutating func put(_ content: CommitChange.NewContent) throws {
        try statements.putContent.run {
            $0.append(container)
            $0.append(content.id)
            $0.append(content.manifest.encoded)
        }
        guard db.changesCount == 1 else { return }
        for entry in content.manifest.entries where named.insert(entry.chunk).inserted {
            try statements.dropCandidate?.run {
                $0.append(container)
                $0.append(entry.chunk)
            }
        }
    }

    private func put(_ revision: StoredRevision) throws {
        try statements.putRevision.run { ItemRows.bind(revision, container: container, since: time, &$0) }
        // The rules refuse it; a revision that changed its item would be lost to the other.
        guard db.changesCount == 1 else {
            throw CatalogError.failed("the revision \(revision.version.revision) belongs to another item")
        }
    }
}

/// The live folder that was looked up last: most of what a batch writes lies in the same folder as what is before it. The rules look in
/// copies of the store, which all have this one.
private final class LastFolder {
    private var folder: RemoteItem?

    func item(_ id: ItemID) -> RemoteItem? { folder?.id == id ? folder : nil }

    func remember(_ folder: RemoteItem) { self.folder = folder }

    /// It is about to change.
    func forget(_ id: ItemID) {
        if folder?.id == id { folder = nil }
    }
}
