internal import GRDB
internal import UbiquityModel

/// The tables, and how an older file becomes a current one.
enum Schema {
    /// "Ubiq": a file with another number is none of ours.
    private static let applicationID: Int32 = 0x5562_6971

    static func prepare(_ database: Database, path: String, isCaseInsensitive: Bool) throws {
        let application = try Int32.fetchOne(database, sql: "PRAGMA application_id") ?? 0
        let version = try UInt32.fetchOne(database, sql: "PRAGMA user_version") ?? 0
        guard application == applicationID || (application == 0 && version == 0) else {
            throw ReplicaError.corrupted(path)
        }
        guard version <= FormatVersion.stateDatabase else {
            throw ReplicaError.tooNew(what: path, version: version)
        }
        guard version < FormatVersion.stateDatabase else { return }
        if version == 0 { try database.execute(sql: tables) }
        if version < 2 { try database.execute(sql: populationTables) }
        // When it was sent, by the start of the machine.
        if version < 3 { try database.execute(sql: "ALTER TABLE sending ADD COLUMN boot TEXT") }
        if version < 4 {
            try database.execute(sql: keepingColumns)
            try RangesTable.count(database)
        }
        if version < 5 { try database.execute(sql: packageTables) }
        if version < 6 {
            try database.execute(sql: foldedColumn)
            if isCaseInsensitive { try RemoteTable.foldNames(database) }
        }
        if version < 7 { try database.execute(sql: formerTable) }
        // Of a link: its target, and the operation as its revision.
        if version < 8 { try database.execute(sql: "ALTER TABLE sending ADD COLUMN target BLOB") }
        if version < 9 { try database.execute(sql: confirmedTable) }
        if version < 10 { try database.execute(sql: importedTable) }
        if version < 11 { try database.execute(sql: unwitnessedTables) }
        try database.execute(sql: "PRAGMA application_id = \(applicationID)")
        try database.execute(sql: "PRAGMA user_version = \(FormatVersion.stateDatabase)")
    }

    /// Ids are random, so tables are kept in order of arrival (rowid) with an index by id: a million rows are written
    /// without touching a random page of wide rows each time. `pending` holds the ids on which `remote` and `synced`
    /// differ, in the same transactions.
    private static let tables = """
        CREATE TABLE remote (
            id BLOB NOT NULL UNIQUE,
            parent BLOB NOT NULL,
            name BLOB NOT NULL,
            kind INTEGER NOT NULL,
            revision BLOB,
            content BLOB,
            size INTEGER NOT NULL,
            target BLOB,
            modified INTEGER NOT NULL,
            mode INTEGER NOT NULL,
            extended BLOB,
            position INTEGER NOT NULL,
            deleted INTEGER NOT NULL,
            author TEXT NOT NULL,
            edited INTEGER NOT NULL,
            conflicts BLOB
        ) STRICT;
        CREATE INDEX remoteConflicts ON remote (id) WHERE conflicts IS NOT NULL;
        CREATE TABLE synced (
            id BLOB NOT NULL UNIQUE,
            parent BLOB NOT NULL,
            name BLOB NOT NULL,
            kind INTEGER NOT NULL,
            revision BLOB,
            content BLOB,
            size INTEGER NOT NULL,
            target BLOB,
            modified INTEGER NOT NULL,
            mode INTEGER NOT NULL,
            extended BLOB,
            inode BLOB,
            localSize INTEGER,
            localModified INTEGER,
            localChanged INTEGER,
            isDataless INTEGER
        ) STRICT;
        CREATE INDEX syncedPlace ON synced (parent, name);
        CREATE INDEX syncedInode ON synced (inode) WHERE inode IS NOT NULL;
        CREATE TABLE pending (id BLOB NOT NULL PRIMARY KEY) STRICT, WITHOUT ROWID;
        CREATE TABLE manifests (content BLOB NOT NULL UNIQUE, entries BLOB NOT NULL) STRICT;
        CREATE TABLE ranges (
            item BLOB NOT NULL,
            revision BLOB NOT NULL,
            generation INTEGER NOT NULL,
            present BLOB NOT NULL,
            PRIMARY KEY (item)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE sending (item BLOB NOT NULL PRIMARY KEY, revision BLOB NOT NULL, content BLOB) STRICT, WITHOUT ROWID;
        CREATE TABLE pins (item BLOB NOT NULL PRIMARY KEY) STRICT, WITHOUT ROWID;
        CREATE TABLE held (item BLOB NOT NULL PRIMARY KEY) STRICT, WITHOUT ROWID;
        CREATE TABLE meta (key TEXT NOT NULL PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;
        """

    /// Since version 2. `unpopulated`: folders of whose items those without a synced row are in the cloud only. `unlisted`: folders whose
    /// items the first listing has not told yet. The index has all that listing a folder takes.
    private static let populationTables = """
        CREATE TABLE unpopulated (item BLOB NOT NULL PRIMARY KEY) STRICT, WITHOUT ROWID;
        CREATE TABLE unlisted (item BLOB NOT NULL PRIMARY KEY) STRICT, WITHOUT ROWID;
        DROP INDEX IF EXISTS remotePlace;
        CREATE INDEX remoteChildren ON remote (parent, name, id, kind) WHERE NOT deleted;
        """

    /// Since version 4. `used`: when a program last had the file open, in nanoseconds; NULL: not since its content came, which the inode's
    /// change time tells. `bytes`: of the ranges that are present. The index has the whole files, those used least recently first, and all
    /// that adding up their sizes takes.
    private static let keepingColumns = """
        ALTER TABLE synced ADD COLUMN used INTEGER;
        ALTER TABLE ranges ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
        CREATE INDEX syncedContent ON synced (ifnull(used, localChanged), id, size, isDataless, kind)
            WHERE isDataless = 0 AND kind = 1;
        """

    /// Since version 5. What packages are made of, by their contents: what their folders are made from without asking anybody.
    private static let packageTables = """
        CREATE TABLE IF NOT EXISTS packageIndexes (content BLOB NOT NULL UNIQUE, entries BLOB NOT NULL) STRICT;
        CREATE INDEX IF NOT EXISTS syncedPackages ON synced (revision) WHERE kind = 4;
        """

    /// Since version 6. Names without their case, in case-insensitive containers only.
    private static let foldedColumn = """
        ALTER TABLE remote ADD COLUMN folded BLOB;
        CREATE INDEX remoteFolded ON remote (parent, folded) WHERE folded IS NOT NULL AND NOT deleted;
        """

    /// Since version 11. Places that were found changed after a clean stop, and deletions that were sent and not answered.
    private static let unwitnessedTables = """
        CREATE TABLE IF NOT EXISTS unwitnessed (
            folder BLOB NOT NULL,
            name BLOB NOT NULL,
            PRIMARY KEY (folder, name)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS sentDeletions (
            item BLOB NOT NULL PRIMARY KEY,
            operation BLOB NOT NULL,
            base BLOB,
            leaving INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        """

    /// Since version 10. Items that an import has found here.
    private static let importedTable =
        "CREATE TABLE IF NOT EXISTS imported (item BLOB NOT NULL PRIMARY KEY) STRICT, WITHOUT ROWID"

    /// Since version 9. Items whose deletion may be sent without asking, and packages that were changed.
    private static let confirmedTable = """
        CREATE TABLE IF NOT EXISTS confirmed (item BLOB NOT NULL PRIMARY KEY) STRICT, WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS changedPackages (key BLOB NOT NULL PRIMARY KEY) STRICT, WITHOUT ROWID;
        """

    /// Since version 7. Which contents revisions of packages had that are the packages' no more, where files stand for parts of them here: a
    /// restored server may know nothing of them. None is ever wrong.
    private static let formerTable = """
        CREATE TABLE IF NOT EXISTS former (
            revision BLOB NOT NULL PRIMARY KEY,
            item BLOB NOT NULL,
            content BLOB NOT NULL,
            size INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        """
}
