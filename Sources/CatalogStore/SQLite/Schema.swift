internal import CatalogModel
internal import GRDB
internal import SQLiteRows
internal import UbiquityModel

/// The catalogue's tables. `PRAGMA user_version` is the format version: an older program refuses a newer catalogue.
enum Schema {
    static func migrate(_ db: Database) throws {
        let version = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
        guard version <= Int(FormatVersion.catalog) else { throw CatalogError.tooNew(format: version) }
        guard version < Int(FormatVersion.catalog) else { return }
        try db.inTransaction(.immediate) {
            // Another process may have done it between the look and the lock.
            let version = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
            if version < 1 { for statement in tables { try db.execute(sql: statement) } }
            if version < 2 { for statement in housekeeping { try db.execute(sql: statement) } }
            if version < 3 { for statement in packages { try db.execute(sql: statement) } }
            if version < 4 {
                for statement in version4 { try db.execute(sql: statement) }
                try foldNames(db)
            }
            try db.execute(sql: "PRAGMA user_version = \(FormatVersion.catalog)")
            return .commit
        }
    }

    /// Version 4: saved versions that nobody wants; names without their case, in case-insensitive containers only. No unique index: older programs let names in that are
    /// equal so.
    private static let version4 = [
        "ALTER TABLE revisions ADD COLUMN unwanted INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE items ADD COLUMN folded BLOB",
        """
        CREATE INDEX items_folded ON items (container, parent, folded)
            WHERE folded IS NOT NULL AND deleted IS NULL AND announced = 0
        """,
    ]

    private static func foldNames(_ db: Database) throws {
        let containers = try Int64.fetchAll(db, sql: "SELECT number FROM containers WHERE case_insensitive")
        for container in containers {
            let rows = try db.rows("SELECT id, name FROM items WHERE container = ?", [.integer(container)]) { row in
                (id: row.blob(0) ?? [], name: try Name(bytes: row.blob(1) ?? []))
            }
            for (id, name) in rows {
                try db.run(
                    "UPDATE items SET folded = ? WHERE container = ? AND id = ?",
                    [.blob(name.folded.bytes), .integer(container), .blob(id)]
                )
            }
        }
    }

    /// Version 3: extensions of packages besides the usual ones, and extensions that are none. One a line; NULL: none.
    private static let packages = [
        "ALTER TABLE containers ADD COLUMN packages_added TEXT",
        "ALTER TABLE containers ADD COLUMN packages_removed TEXT",
    ]

    /// Version 2: what is kept no longer, and chunks that nothing refers to.
    private static let housekeeping = [
        // When the revision got its kind. Of those that were there already it counts from now on: this is the one place where the
        // catalogue asks for the time.
        "ALTER TABLE revisions ADD COLUMN since INTEGER NOT NULL DEFAULT 0",
        "UPDATE revisions SET since = CAST(strftime('%s', 'now') AS INTEGER) * 1000000000",
        "ALTER TABLE revisions ADD COLUMN resolved INTEGER NOT NULL DEFAULT 0",
        "CREATE INDEX revisions_content ON revisions (container, content)",
        "CREATE INDEX revisions_saved ON revisions (container, item) WHERE kind = 2",
        // Chunks that nothing refers to, and until when devices are told that they are here.
        """
        CREATE TABLE candidates (
            container INTEGER NOT NULL,
            id BLOB NOT NULL,
            offered INTEGER NOT NULL,
            PRIMARY KEY (container, id)
        ) WITHOUT ROWID
        """,
        // Packs that chunks were collected from, since when nothing leads to them, and whether some of their chunks lie elsewhere now.
        "CREATE TABLE packs (number INTEGER PRIMARY KEY NOT NULL, emptied INTEGER, moved INTEGER NOT NULL)",
    ]

    private static let tables = [
        """
        CREATE TABLE settings (name TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL) WITHOUT ROWID
        """,
        """
        CREATE TABLE accounts (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            name TEXT NOT NULL,
            quota INTEGER,
            created INTEGER NOT NULL,
            removed INTEGER
        )
        """,
        "CREATE UNIQUE INDEX accounts_name ON accounts (name) WHERE removed IS NULL",
        // A grant's containers are names, one a line; NULL is all. inviter: the device that made it; NULL: the administrator.
        """
        CREATE TABLE invitations (
            secret BLOB PRIMARY KEY NOT NULL,
            account INTEGER NOT NULL,
            inviter BLOB,
            read_only INTEGER NOT NULL,
            containers TEXT,
            expires INTEGER NOT NULL,
            used INTEGER
        ) WITHOUT ROWID
        """,
        "CREATE INDEX invitations_inviter ON invitations (inviter) WHERE inviter IS NOT NULL",
        """
        CREATE TABLE devices (
            id BLOB PRIMARY KEY NOT NULL,
            account INTEGER NOT NULL,
            name TEXT NOT NULL,
            token BLOB NOT NULL,
            nonce BLOB NOT NULL,
            former_nonce BLOB,
            read_only INTEGER NOT NULL,
            containers TEXT,
            joined INTEGER NOT NULL,
            seen INTEGER NOT NULL,
            revoked INTEGER
        ) WITHOUT ROWID
        """,
        "CREATE UNIQUE INDEX devices_token ON devices (token)",
        "CREATE INDEX devices_account ON devices (account)",
        """
        CREATE TABLE containers (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            account INTEGER NOT NULL,
            name TEXT NOT NULL,
            key BLOB NOT NULL,
            layout TEXT NOT NULL,
            case_insensitive INTEGER NOT NULL,
            counter INTEGER NOT NULL,
            hash BLOB NOT NULL,
            bytes INTEGER NOT NULL,
            created INTEGER NOT NULL,
            removed INTEGER
        )
        """,
        "CREATE UNIQUE INDEX containers_name ON containers (account, name) WHERE removed IS NULL",
        // The newest state of every item, tombstones included: a log that keeps only each item's last entry.
        """
        CREATE TABLE items (
            container INTEGER NOT NULL,
            id BLOB NOT NULL,
            position INTEGER NOT NULL,
            deleted INTEGER,
            deleted_by TEXT,
            parent BLOB NOT NULL,
            name BLOB NOT NULL,
            kind INTEGER NOT NULL,
            announced INTEGER NOT NULL,
            revision BLOB,
            content BLOB,
            size INTEGER NOT NULL,
            target BLOB,
            modified INTEGER NOT NULL,
            mode INTEGER NOT NULL,
            extended BLOB,
            author TEXT NOT NULL,
            edited INTEGER NOT NULL,
            conflicts INTEGER NOT NULL
        )
        """,
        "CREATE UNIQUE INDEX items_id ON items (container, id)",
        "CREATE UNIQUE INDEX items_position ON items (container, position)",
        """
        CREATE UNIQUE INDEX items_place ON items (container, parent, name) WHERE deleted IS NULL AND announced = 0
        """,
        "CREATE INDEX items_announced ON items (container, parent) WHERE deleted IS NULL AND announced = 1",
        "CREATE INDEX items_deleted ON items (container, deleted, position) WHERE deleted IS NOT NULL",
        // Every content that an item has or had. kind: 0 current, 1 conflict, 2 saved, 3 an ancestor whose content is discarded.
        """
        CREATE TABLE revisions (
            container INTEGER NOT NULL,
            id BLOB NOT NULL,
            item BLOB NOT NULL,
            kind INTEGER NOT NULL,
            base BLOB,
            content BLOB NOT NULL,
            size INTEGER NOT NULL,
            edited INTEGER NOT NULL,
            modified INTEGER NOT NULL,
            device TEXT NOT NULL,
            name BLOB NOT NULL,
            PRIMARY KEY (container, id)
        ) WITHOUT ROWID
        """,
        "CREATE INDEX revisions_item ON revisions (container, item)",
        """
        CREATE TABLE contents (
            container INTEGER NOT NULL,
            id BLOB NOT NULL,
            manifest BLOB NOT NULL,
            PRIMARY KEY (container, id)
        ) WITHOUT ROWID
        """,
        """
        CREATE TABLE chunks (
            container INTEGER NOT NULL,
            id BLOB NOT NULL,
            length INTEGER NOT NULL,
            compressed INTEGER NOT NULL,
            pack INTEGER NOT NULL,
            start INTEGER NOT NULL,
            record INTEGER NOT NULL,
            PRIMARY KEY (container, id)
        ) WITHOUT ROWID
        """,
        // Operations that were committed, so that a repeated request changes nothing.
        """
        CREATE TABLE operations (
            container INTEGER NOT NULL,
            id BLOB NOT NULL,
            PRIMARY KEY (container, id)
        ) WITHOUT ROWID
        """,
        // One row a commit: the last position that it gave out, and the running hash of the log up to there. A position in the
        // middle of a commit has the hash of its commit, which is there as a whole or not at all.
        """
        CREATE TABLE log (
            container INTEGER NOT NULL,
            position INTEGER NOT NULL,
            hash BLOB NOT NULL,
            PRIMARY KEY (container, position)
        ) WITHOUT ROWID
        """,
    ]
}
