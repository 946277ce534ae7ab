package import GRDB
internal import GRDBSQLite
package import UbiquityModel

/// A parameter of a statement.
package enum SQLValue {
    case null
    case integer(Int64)
    case text(String)
    case blob([UInt8])
    /// The 16 bytes of an identifier.
    case words(UInt64, UInt64)

    package static func identifier<Kind>(_ id: Identifier<Kind>) -> SQLValue { .words(id.high, id.low) }
}

/// The current row of a statement that is being stepped through. Not to be kept.
///
/// Rows go straight to and from SQLite: through GRDB's values and rows a row took three times as long (1,000,000 rows:
/// 53 s).
package struct SQLRow {
    fileprivate let statement: OpaquePointer

    /// `nil` for NULL.
    package func blob(_ index: Int) -> [UInt8]? { bytes(index).map { Array($0) } }

    /// Those of a blob or text, as long as the row is the current one; `nil` for NULL.
    package func bytes(_ index: Int) -> UnsafeRawBufferPointer? {
        guard !isNull(index) else { return nil }
        let bytes = sqlite3_column_blob(statement, Int32(index))
        return UnsafeRawBufferPointer(start: bytes, count: Int(sqlite3_column_bytes(statement, Int32(index))))
    }

    package func isNull(_ index: Int) -> Bool { sqlite3_column_type(statement, Int32(index)) == SQLITE_NULL }

    /// For tables that are not STRICT.
    package func isInteger(_ index: Int) -> Bool { sqlite3_column_type(statement, Int32(index)) == SQLITE_INTEGER }

    /// As the statement calls it.
    package func nameOfColumn(_ index: Int) -> String {
        sqlite3_column_name(statement, Int32(index)).map { String(cString: $0) } ?? "\(index)"
    }

    /// 0 for NULL. The tables are STRICT: a column of integers holds nothing else.
    package func integer(_ index: Int) -> Int64 { sqlite3_column_int64(statement, Int32(index)) }

    /// Empty for NULL.
    package func text(_ index: Int) -> String { bytes(index).map { String(decoding: $0, as: UTF8.self) } ?? "" }

    /// `nil` for anything but 16 bytes.
    package func identifier<Kind>(_ index: Int, _ kind: Kind.Type) -> Identifier<Kind>? {
        guard let bytes = sqlite3_column_blob(statement, Int32(index)),
            sqlite3_column_bytes(statement, Int32(index)) == 16
        else {
            return nil
        }
        return Identifier(
            high: UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)),
            low: UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        )
    }
}

/// Statements are prepared once a connection, by GRDB. The number of values must be that of the statement's parameters.
extension Database {
    package func run(_ sql: String, _ values: [SQLValue]) throws { try step(sql, values) { _ in false } }

    package func rows<Element>(
        _ sql: String,
        _ values: [SQLValue] = [],
        _ decode: (SQLRow) throws -> Element
    ) throws -> [Element] {
        var result: [Element] = []
        try step(sql, values) { row in
            result.append(try decode(row))
            return true
        }
        return result
    }

    package func row<Element>(
        _ sql: String,
        _ values: [SQLValue] = [],
        _ decode: (SQLRow) throws -> Element
    ) throws -> Element? {
        var result: Element?
        try step(sql, values) { row in
            result = try decode(row)
            return false
        }
        return result
    }

    /// A statement that is about to run many times: looking it up by its text takes as long as a short one runs.
    package func prepared(_ sql: String) throws -> PreparedStatement {
        PreparedStatement(database: self, statement: try cachedStatement(sql: sql))
    }

    /// Steps until the end, or until `body` wants no more rows.
    package func step(_ sql: String, _ values: [SQLValue], _ body: (SQLRow) throws -> Bool) throws {
        try step(try cachedStatement(sql: sql), values, body)
    }

    fileprivate func step(_ cached: Statement, _ values: [SQLValue], _ body: (SQLRow) throws -> Bool) throws {
        try withExtendedLifetime(cached) {
            let statement = cached.sqliteStatement
            // A statement left in the middle of its rows would keep an old snapshot, and the log from being
            // checkpointed.
            defer { sqlite3_reset(statement) }
            for (index, value) in values.enumerated() { try check(value.bind(to: statement, at: Int32(index + 1))) }
            while true {
                switch sqlite3_step(statement) {
                case SQLITE_ROW: if try !body(SQLRow(statement: statement)) { return }
                case SQLITE_DONE: return
                case let code: try check(code)
                }
            }
        }
    }

    fileprivate func check(_ code: Int32) throws {
        guard code != SQLITE_OK else { return }
        throw DatabaseError(
            resultCode: ResultCode(rawValue: code),
            message: sqliteConnection.map { String(cString: sqlite3_errmsg($0)) }
        )
    }
}

/// Not to be kept longer than the transaction.
package struct PreparedStatement {
    fileprivate let database: Database
    fileprivate let statement: Statement

    package func run(_ values: [SQLValue]) throws { try database.step(statement, values) { _ in false } }

    /// Without an array of the values: for a million rows.
    package func run(_ bind: (inout ValueBinder) -> Void) throws { try step(bind) { _ in true } }

    /// The first column of the first row; 0 if there is none.
    package func integer(_ bind: (inout ValueBinder) -> Void) throws -> Int64 {
        var result: Int64 = 0
        try step(bind) { row in
            result = row.integer(0)
            return false
        }
        return result
    }

    /// Whether there is any row.
    package func hasRow(_ bind: (inout ValueBinder) -> Void) throws -> Bool {
        var result = false
        try step(bind) { _ in
            result = true
            return false
        }
        return result
    }

    /// Steps until the end, or until `body` wants no more rows. `body` must not run the same statement.
    package func step(_ bind: (inout ValueBinder) -> Void, _ body: (SQLRow) throws -> Bool) throws {
        try withExtendedLifetime(statement) {
            try withUnsafeTemporaryAllocation(byteCount: ValueBinder.room, alignment: 1) { room in
                var binder = ValueBinder(statement: statement.sqliteStatement, room: room)
                defer {
                    sqlite3_reset(statement.sqliteStatement)
                    // They lead into `room`.
                    sqlite3_clear_bindings(statement.sqliteStatement)
                }
                bind(&binder)
                try database.check(binder.code)
                while true {
                    switch sqlite3_step(statement.sqliteStatement) {
                    case SQLITE_ROW: if try !body(SQLRow(statement: statement.sqliteStatement)) { return }
                    case SQLITE_DONE: return
                    case let code: try database.check(code)
                    }
                }
            }
        }
    }

    /// Whether there is any row.
    package func hasRow(_ values: [SQLValue]) throws -> Bool {
        var result = false
        try database.step(statement, values) { _ in
            result = true
            return false
        }
        return result
    }
}

/// Binds a statement's parameters one after the other; keeps the first error.
package struct ValueBinder {
    /// Bytes of a row that are kept here, where SQLite need not copy each value into memory of its own.
    fileprivate static let room = 1024

    fileprivate let statement: OpaquePointer
    private let room: UnsafeMutableRawBufferPointer
    private var used = 0
    private var index: Int32 = 0
    private(set) var code = SQLITE_OK

    fileprivate init(statement: OpaquePointer, room: UnsafeMutableRawBufferPointer) {
        self.statement = statement
        self.room = room
    }

    package mutating func append(_ value: Int64) {
        index += 1
        note(sqlite3_bind_int64(statement, index, value))
    }

    package mutating func appendNull() {
        index += 1
        note(sqlite3_bind_null(statement, index))
    }

    package mutating func append<Kind>(_ id: Identifier<Kind>) { id.withBytes { append($0) } }

    package mutating func append<Kind>(_ digest: Digest<Kind>) { digest.withBytes { append($0) } }

    /// As a blob.
    package mutating func append(_ bytes: [UInt8]) { bytes.withUnsafeBytes { append($0) } }

    package mutating func append(text: String) {
        var text = text
        text.withUTF8 { bytes in
            index += 1
            let (address, lifetime) = kept(UnsafeRawBufferPointer(bytes))
            note(
                sqlite3_bind_text(
                    statement,
                    index,
                    address?.assumingMemoryBound(to: CChar.self),
                    Int32(bytes.count),
                    lifetime
                )
            )
        }
    }

    private mutating func append(_ bytes: UnsafeRawBufferPointer) {
        index += 1
        let (address, lifetime) = kept(bytes)
        note(sqlite3_bind_blob(statement, index, address, Int32(bytes.count), lifetime))
    }

    /// Where the bytes are while the statement runs. Never without an address, which would bind NULL.
    private mutating func kept(_ bytes: UnsafeRawBufferPointer) -> (UnsafeRawPointer?, sqlite3_destructor_type?) {
        guard bytes.count <= room.count - used else { return (bytes.baseAddress, SQLValue.copied) }
        let place = UnsafeMutableRawBufferPointer(rebasing: room[used..<room.count])
        place.copyMemory(from: bytes)
        used += bytes.count
        return (UnsafeRawPointer(place.baseAddress ?? room.baseAddress), nil)
    }

    private mutating func note(_ result: Int32) {
        if code == SQLITE_OK { code = result }
    }
}

extension SQLValue {
    /// SQLITE_TRANSIENT, a macro with a cast that Swift does not import: SQLite copies the bytes before the call
    /// returns.
    fileprivate static let copied = unsafeBitCast(-1, to: sqlite3_destructor_type.self)

    fileprivate func bind(to statement: OpaquePointer, at index: Int32) -> Int32 {
        switch self {
        case .null: return sqlite3_bind_null(statement, index)
        case .integer(let value): return sqlite3_bind_int64(statement, index, value)
        case .text(let text): return sqlite3_bind_text(statement, index, text, Int32(text.utf8.count), Self.copied)
        case .blob(let bytes):
            // An empty array has no address, which would bind NULL.
            guard !bytes.isEmpty else { return sqlite3_bind_zeroblob(statement, index, 0) }
            return bytes.withUnsafeBytes {
                sqlite3_bind_blob(statement, index, $0.baseAddress, Int32($0.count), Self.copied)
            }
        case .words(let high, let low):
            return withUnsafeBytes(of: (high.bigEndian, low.bigEndian)) {
                sqlite3_bind_blob(statement, index, $0.baseAddress, 16, Self.copied)
            }
        }
    }
}
