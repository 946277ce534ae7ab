internal import GRDB
internal import SQLiteRows
internal import Synchronization
package import UbiquityModel

/// Manifests, and which ranges of dataless files are here.
extension StateDatabase {
    package func manifest(_ content: ContentID) throws(ReplicaError) -> Manifest? {
        try reading { database in
            try database.row("SELECT entries FROM manifests WHERE content = ?", [.blob(content.bytes)]) { row in
                guard let manifest = Manifest(encoded: row.blob(0) ?? []) else {
                    throw ReplicaError.corrupted("a manifest in the state database")
                }
                return manifest
            }
        }
    }

    package func write(manifests: [ContentID: Manifest], replacing: Bool = false) throws(ReplicaError) {
        guard !manifests.isEmpty else { return }
        try writing { database in
            unnamedContents.withLock { $0.formUnion(manifests.keys) }
            try noteWritten(database, ManifestTable.write(database, manifests, replacing: replacing))
        }
    }

    /// Removes manifests and indexes of contents that nothing names, but those of `kept`: see `UnusedContents`.
    package func pruneContents(keeping kept: Set<ContentID> = []) throws(ReplicaError) {
        try writing { try UnusedContents.remove($0, keeping: kept) }
    }

    /// The same at the start, if there may be many.
    package func pruneContentsIfMany() throws(ReplicaError) {
        let isDue = try reading { try UnusedContents.isDueAtStart($0) }
        if isDue { try pruneContents() }
    }

    /// In the transaction in which they are written: items name these contents.
    func noteNamed(by items: [RemoteItem]) {
        unnamedContents.withLock { contents in
            guard !contents.isEmpty else { return }
            for case .file(let file) in items.lazy.map(\.content) {
                if let content = file.content { contents.remove(content) }
            }
        }
    }

    /// In the transaction in which so much of manifests or indexes was written.
    func noteWritten(_ database: Database, _ bytes: Int64) throws {
        let unnamed = unnamedContents.withLock { $0 }
        guard try UnusedContents.note(database, written: bytes, keeping: unnamed) else { return }
        unnamedContents.withLock { $0 = [] }
    }

    /// What of a dataless file was durable on the disk when last written down; `nil` if that was another revision, or
    /// before the content was last given up.
    package func ranges(_ item: ItemID, _ placeholder: Placeholder) throws(ReplicaError) -> ByteRangeSet? {
        let key: [SQLValue] = [
            .identifier(item), .identifier(placeholder.revision), .integer(Int64(bitPattern: placeholder.generation)),
        ]
        return try reading { database in
            try database.row("SELECT present FROM ranges WHERE item = ? AND revision = ? AND generation = ?", key) {
                row in
                guard let ranges = ByteRangeSet(encoded: row.blob(0) ?? []) else {
                    throw ReplicaError.corrupted("the ranges of a file in the state database")
                }
                return ranges
            }
        }
    }

    /// Only what `PlaceholderFile.synchronize` returned: durable content. What was known of the item before is dropped.
    package func write(ranges: ByteRangeSet, _ item: ItemID, _ placeholder: Placeholder) throws(ReplicaError) {
        try writing { database in
            try database.run(
                "INSERT OR REPLACE INTO ranges (item, revision, generation, present, bytes) VALUES (?, ?, ?, ?, ?)",
                [
                    .identifier(item), .identifier(placeholder.revision),
                    .integer(Int64(bitPattern: placeholder.generation)),
                    .blob(ranges.encoded), .integer(ranges.count),
                ]
            )
        }
    }

    /// Once files are whole, or their content was given up: then they are of no use.
    package func removeRanges(_ items: [ItemID]) throws(ReplicaError) {
        guard !items.isEmpty else { return }
        try writing { database in
            for item in items { try database.run("DELETE FROM ranges WHERE item = ?", [.identifier(item)]) }
        }
    }
}

enum RangesTable {
    /// In a database of a version that did not.
    static func count(_ database: Database) throws {
        let rows = try database.rows("SELECT item, present FROM ranges") { (try $0.item(), $0.blob(1) ?? []) }
        for (item, present) in rows {
            // What cannot be read is fetched again, and counts for nothing.
            let bytes = ByteRangeSet(encoded: present)?.count ?? 0
            try database.run("UPDATE ranges SET bytes = ? WHERE item = ?", [.integer(bytes), .identifier(item)])
        }
    }
}

enum ManifestTable {
    private static let insertNew = "INSERT OR IGNORE INTO manifests (content, entries) VALUES (?, ?)"
    private static let insertReplacing = "INSERT OR REPLACE INTO manifests (content, entries) VALUES (?, ?)"

    /// - Returns: how much was written that was not there.
    @discardableResult
    static func write(
        _ database: Database,
        _ manifests: [ContentID: Manifest],
        replacing: Bool = false
    ) throws -> Int64 {
        guard !manifests.isEmpty else { return 0 }
        // A content's name says all of its manifest: one that is there is the same, unless somebody has found that it is not.
        let insert = try database.prepared(replacing ? insertReplacing : insertNew)
        var written: Int64 = 0
        for (content, manifest) in manifests.sorted(by: { $0.key < $1.key }) {
            let encoded = manifest.encoded
            try insert.run { row in
                row.append(content)
                row.append(encoded)
            }
            if database.changesCount > 0 { written += UnusedContents.bytes(of: encoded) }
        }
        return written
    }
}
