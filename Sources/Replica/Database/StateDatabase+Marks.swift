internal import GRDB
internal import SQLiteRows
package import UbiquityModel

/// Marks on items, and what is known of the container as a whole.
extension StateDatabase {
    package func pins() throws(ReplicaError) -> Set<ItemID> { try reading { try MarkTable.fetch($0, "pins") } }

    package func hasPins() throws(ReplicaError) -> Bool {
        try reading { try $0.row("SELECT 1 FROM pins LIMIT 1") { _ in true } ?? false }
    }

    /// Whether one of these is pinned: for an item and the folders above it, however many pins there are.
    package func isAnyPinned(_ items: [ItemID]) throws(ReplicaError) -> Bool {
        try reading { database in
            let statement = try database.prepared("SELECT 1 FROM pins WHERE item = ?")
            return try items.contains { try statement.hasRow([.identifier($0)]) }
        }
    }

    package func setPinned(_ isPinned: Bool, _ items: [ItemID]) throws(ReplicaError) {
        try writing { try MarkTable.write($0, "pins", isPinned, items) }
    }

    /// Items whose deletion waits for a word of the user.
    package func held() throws(ReplicaError) -> Set<ItemID> { try reading { try MarkTable.fetch($0, "held") } }

    package func setHeld(_ isHeld: Bool, _ items: [ItemID]) throws(ReplicaError) {
        try writing { try MarkTable.write($0, "held", isHeld, items) }
    }

    /// Items whose deletion the user has said may be sent, and is not yet.
    package func confirmed() throws(ReplicaError) -> Set<ItemID> {
        try reading { try MarkTable.fetch($0, "confirmed") }
    }

    package func setConfirmed(_ isConfirmed: Bool, _ items: [ItemID]) throws(ReplicaError) {
        try writing { try MarkTable.write($0, "confirmed", isConfirmed, items) }
    }

    /// Items that an import has found here, equal, until all that others have done is known.
    package func imported() throws(ReplicaError) -> Set<ItemID> {
        try reading { try MarkTable.fetch($0, "imported") }
    }

    package func setImported(_ isImported: Bool, _ items: [ItemID]) throws(ReplicaError) {
        try writing { try MarkTable.write($0, "imported", isImported, items) }
    }

    /// Packages, by their folders, in which programs have changed something that is not sent.
    package func changedPackages() throws(ReplicaError) -> Set<InodeKey> {
        try reading { database in
            Set(
                try database.rows("SELECT key FROM changedPackages") { InodeKey(bytes: $0.blob(0) ?? []) }.compactMap {
                    $0
                }
            )
        }
    }

    package func setChanged(_ isChanged: Bool, packages: [InodeKey]) throws(ReplicaError) {
        let sql =
            isChanged
            ? "INSERT OR IGNORE INTO changedPackages (key) VALUES (?)" : "DELETE FROM changedPackages WHERE key = ?"
        try writing { database in
            for package in packages { try database.run(sql, [.blob(package.bytes)]) }
        }
    }

    /// Places that were found changed after a clean stop, and are not sent yet: no program has done that here.
    package func unwitnessed() throws(ReplicaError) -> [LocalPlace] {
        try reading { database in
            try database.rows("SELECT folder, name FROM unwitnessed") { row -> LocalPlace? in
                guard let folder = InodeKey(bytes: row.blob(0) ?? []), let name = try? Name(bytes: row.blob(1) ?? [])
                else { return nil }
                return LocalPlace(folder: folder, name: name)
            }.compactMap { $0 }
        }
    }

    package func setUnwitnessed(_ isUnwitnessed: Bool, _ places: [LocalPlace]) throws(ReplicaError) {
        let sql =
            isUnwitnessed
            ? "INSERT OR IGNORE INTO unwitnessed (folder, name) VALUES (?, ?)"
            : "DELETE FROM unwitnessed WHERE folder = ? AND name = ?"
        try writing { database in
            let statement = try database.prepared(sql)
            for place in places { try statement.run([.blob(place.folder.bytes), .blob(place.name.bytes)]) }
        }
    }

    /// Up to where the log is known; `nil` before the first page.
    package func position() throws(ReplicaError) -> LogPosition? {
        try reading { try MetaTable.read($0, .position).map(MetaTable.decodePosition) }
    }

    /// The furthest end of the log that the server has told of, with the last commit that was answered, or while pages followed; `nil` if it
    /// has not. It may be further than `position`.
    package func answeredPosition() throws(ReplicaError) -> LogPosition? {
        try reading { try MetaTable.readAnswered($0) }
    }

    /// Whether a full listing of a server that was restored has begun, and not come to its end: some rows agree with it already, and
    /// `position` says nothing any more.
    package func isComparing() throws(ReplicaError) -> Bool {
        try reading { try MetaTable.read($0, .comparing) == [1] }
    }

    /// What the server last gave this device, to tell it from a copy of itself.
    package func nonce() throws(ReplicaError) -> [UInt8]? { try reading { try MetaTable.read($0, .nonce) } }

    package func setNonce(_ nonce: [UInt8]) throws(ReplicaError) {
        try writing { try MetaTable.write($0, .nonce, nonce) }
    }

    /// Whether the service said goodbye: else a scan is due.
    package func wasStoppedCleanly() throws(ReplicaError) -> Bool {
        try reading { try MetaTable.read($0, .cleanStop) == [1] }
    }

    package func setStoppedCleanly(_ isClean: Bool) throws(ReplicaError) {
        try writing { try MetaTable.write($0, .cleanStop, [isClean ? 1 : 0]) }
    }

    /// Whether the first full listing has come to its end.
    package func isListed() throws(ReplicaError) -> Bool { try reading { try MetaTable.read($0, .listed) == [1] } }

    package func setListed(_ isListed: Bool) throws(ReplicaError) {
        try writing { try MetaTable.write($0, .listed, [isListed ? 1 : 0]) }
    }
}

private enum MarkTable {
    static func fetch(_ database: Database, _ table: String) throws -> Set<ItemID> {
        Set(try database.rows("SELECT item FROM \(table)") { $0.identifier(0, ItemKindTag.self) }.compactMap { $0 })
    }

    static func write(_ database: Database, _ table: String, _ isMarked: Bool, _ items: [ItemID]) throws {
        let sql = isMarked ? "INSERT OR IGNORE INTO \(table) (item) VALUES (?)" : "DELETE FROM \(table) WHERE item = ?"
        for item in items { try database.run(sql, [.identifier(item)]) }
    }
}

enum MetaTable {
    enum Key: String { case position, answered, comparing, nonce, cleanStop, listed, contents }

    static func read(_ database: Database, _ key: Key) throws -> [UInt8]? {
        try database.row("SELECT value FROM meta WHERE key = ?", [.text(key.rawValue)]) { $0.blob(0) ?? [] }
    }

    static func write(_ database: Database, _ key: Key, _ value: [UInt8]) throws {
        try database.run(
            "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            [.text(key.rawValue), .blob(value)]
        )
    }

    static func clear(_ database: Database, _ key: Key) throws {
        try database.run("DELETE FROM meta WHERE key = ?", [.text(key.rawValue)])
    }

    static func encode(_ position: LogPosition) -> [UInt8] {
        var writer = ByteWriter()
        writer.integer(position.counter)
        writer.prefixed(position.hash)
        return writer.result
    }

    static func readAnswered(_ database: Database) throws -> LogPosition? {
        guard let bytes = try read(database, .answered) else { return nil }
        // An earlier version wrote the counter alone: a position that no server knows, so everything is compared once.
        var reader = ByteReader(bytes)
        if bytes.count == 8, let counter = reader.integer(UInt64.self) {
            return LogPosition(counter: counter, hash: [])
        }
        return try decodePosition(bytes)
    }

    static func decodePosition(_ bytes: [UInt8]) throws -> LogPosition {
        var reader = ByteReader(bytes)
        guard let counter = reader.integer(UInt64.self), let hash = reader.prefixed(), [0, 32].contains(hash.count)
        else {
            throw ReplicaError.corrupted("the log position in the state database")
        }
        return LogPosition(counter: counter, hash: hash)
    }
}
