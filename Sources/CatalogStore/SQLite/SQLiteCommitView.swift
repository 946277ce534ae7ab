internal import GRDB
internal import Reconciliation
internal import SQLiteRows
internal import UbiquityModel

/// The catalogue as the commit rules see it, inside the transaction of a commit.
struct SQLiteCommitView: CommitView {
    let db: Database
    let container: Int64

    func item(_ id: ItemID) throws -> RemoteItem? {
        let sql = "SELECT \(ItemRows.columns) FROM items WHERE container = ? AND id = ?"
        let found = try db.row(sql, [.integer(container), .identifier(id)]) { try ItemRows.item($0).item }
        guard var item = found else { return nil }
        if item.content.kind != .folder { item.conflicts = try ItemRows.conflicts(of: id, container: container, db) }
        return item
    }

    func revision(_ id: RevisionID) throws -> StoredRevision? {
        let sql = "SELECT \(ItemRows.revisionColumns) FROM revisions WHERE container = ? AND id = ?"
        guard let row = try db.first(sql, [container, id.blob]) else { return nil }
        let stored = try ItemRows.revision(row)
        return StoredRevision(item: stored.item, version: stored.version, base: stored.base)
    }

    func holder(of place: Place) throws -> ItemID? {
        let sql = """
            SELECT id FROM items WHERE container = ? AND parent = ? AND name = ? AND deleted IS NULL AND announced = 0
            """
        return try db.first(sql, [container, place.parent.blob, place.name.blob])?.identifier(0)
    }

    func hasLiveChildren(_ folder: ItemID) throws -> Bool {
        for announced in [0, 1] {
            let sql =
                "SELECT 1 FROM items WHERE container = ? AND parent = ? AND deleted IS NULL AND announced = \(announced) LIMIT 1"
            if try db.exists(sql, [container, folder.blob]) { return true }
        }
        return false
    }

    func presence(of manifest: Manifest, content: ContentID) throws -> ContentPresence {
        let known = "SELECT manifest = ? FROM contents WHERE container = ? AND id = ?"
        if let row = try db.first(known, [manifest.encoded.blob, container, content.blob]) {
            // A content that was committed once is whole: nothing of it is ever dropped while its manifest is here. Its name
            // comes from the chunks' names alone: their lengths are compared here.
            return row[0] ? .whole : .contradicted
        }
        var missing = [ChunkID]()
        var lengths = [ChunkID: UInt32]()
        for entry in manifest.entries {
            if let length = lengths[entry.chunk] {
                guard length == entry.length else { return .contradicted }
                continue
            }
            lengths[entry.chunk] = entry.length
            let stored = "SELECT length FROM chunks WHERE container = ? AND id = ?"
            if let row = try db.first(stored, [container, entry.chunk.blob]) {
                guard row[0] == entry.length else { return .contradicted }
            } else {
                missing.append(entry.chunk)
            }
        }
        return missing.isEmpty ? .whole : .missing(missing)
    }
}
