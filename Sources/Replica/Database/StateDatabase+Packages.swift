internal import GRDB
internal import SQLiteRows
internal import Synchronization
package import UbiquityModel

/// What packages are made of, and which items are some.
extension StateDatabase {
    /// `nil`: nobody has asked the cloud for it yet.
    package func packageIndex(_ content: ContentID, size: Int64) throws(ReplicaError) -> PackageIndex? {
        let encoded = try reading { database in
            try database.row("SELECT entries FROM packageIndexes WHERE content = ?", [.blob(content.bytes)]) { row in
                row.blob(0) ?? []
            }
        }
        guard let encoded else { return nil }
        do { return try PackageIndex(encoded: encoded, contentSize: size) } catch {
            throw .corrupted("the state database: \(error)")
        }
    }

    package func hasPackageIndex(_ content: ContentID) throws(ReplicaError) -> Bool {
        try reading { database in
            try database.row("SELECT 1 FROM packageIndexes WHERE content = ?", [.blob(content.bytes)]) { _ in true }
                ?? false
        }
    }

    package func write(packageIndexes: [ContentID: PackageIndex]) throws(ReplicaError) {
        guard !packageIndexes.isEmpty else { return }
        try writing { database in
            unnamedContents.withLock { $0.formUnion(packageIndexes.keys) }
            let insert = try database.prepared("INSERT OR IGNORE INTO packageIndexes (content, entries) VALUES (?, ?)")
            var written: Int64 = 0
            for (content, index) in packageIndexes.sorted(by: { $0.key < $1.key }) {
                try insert.run([.blob(content.bytes), .blob(index.encoded)])
                if database.changesCount > 0 { written += UnusedContents.bytes(of: index.encoded) }
            }
            try noteWritten(database, written)
        }
    }

    /// Items that are packages, with the inodes of their folders.
    package func syncedPackages() throws(ReplicaError) -> [SyncedItem] {
        try reading { try SyncedTable.fetch($0, "kind = 4 ORDER BY id", []) }
    }

    /// The packages whose content of that revision was agreed on.
    package func syncedPackages(revision: RevisionID) throws(ReplicaError) -> [SyncedItem] {
        try reading { try SyncedTable.fetch($0, "kind = 4 AND revision = ? ORDER BY id", [.identifier(revision)]) }
    }
}
