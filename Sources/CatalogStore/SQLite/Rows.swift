internal import CatalogModel
internal import FoundationEssentials
internal import GRDB
internal import SQLiteRows
internal import UbiquityModel

extension Database {
    /// Runs a statement that is prepared once.
    func run(_ sql: String, _ arguments: StatementArguments) throws {
        try cachedStatement(sql: sql).execute(arguments: arguments)
    }

    func first(_ sql: String, _ arguments: StatementArguments) throws -> Row? {
        try Row.fetchOne(try cachedStatement(sql: sql), arguments: arguments)
    }

    func exists(_ sql: String, _ arguments: StatementArguments) throws -> Bool { try first(sql, arguments) != nil }

    /// For what is asked of each item and each chunk.
    func exists(_ sql: String, _ values: [SQLValue]) throws -> Bool { try row(sql, values) { _ in true } ?? false }

    func each(_ sql: String, _ arguments: StatementArguments, _ body: (Row) throws -> Void) throws {
        let rows = try Row.fetchCursor(try cachedStatement(sql: sql), arguments: arguments)
        while let row = try rows.next() { try body(row) }
    }
}

extension PreparedStatement {
    /// The first row. It stands here, not beside `step`: no special version is made of what is generic in another target.
    func row<Element>(
        _ bind: (inout ValueBinder) -> Void,
        decode: (SQLRow) throws -> Element
    ) throws -> Element? {
        var result: Element?
        try step(bind) { row in
            result = try decode(row)
            return false
        }
        return result
    }
}

extension Identifier {
    var blob: Data { Data(bytes) }
}

extension Digest {
    var blob: Data { Data(bytes) }
}

extension Name {
    var blob: Data { Data(bytes) }
}

/// Columns of the catalogue's tables take anything, and a disk may have changed them: what is not of its type is an error, where GRDB's
/// subscript would end the process.
extension Row {
    func value<Value: DatabaseValueConvertible>(_ column: Int) throws -> Value {
        guard let value = Value.fromDatabaseValue(self[column] as DatabaseValue) else { throw damaged(column) }
        return value
    }

    /// `nil` for NULL.
    func optional<Value: DatabaseValueConvertible>(_ column: Int) throws -> Value? {
        (self[column] as DatabaseValue).isNull ? nil : try value(column)
    }

    func bytes(_ column: Int) throws -> [UInt8] { [UInt8](try value(column) as Data) }

    func identifier<Kind>(_ column: Int) throws -> Identifier<Kind> {
        guard let value = try optionalIdentifier(column) as Identifier<Kind>? else { throw damaged(column) }
        return value
    }

    func optionalIdentifier<Kind>(_ column: Int) throws -> Identifier<Kind>? {
        guard let data: Data = try optional(column) else { return nil }
        guard let value = Identifier<Kind>(bytes: data) else { throw damaged(column) }
        return value
    }

    func digest<Kind>(_ column: Int) throws -> Digest<Kind> {
        guard let value = try optionalDigest(column) as Digest<Kind>? else { throw damaged(column) }
        return value
    }

    func optionalDigest<Kind>(_ column: Int) throws -> Digest<Kind>? {
        guard let data: Data = try optional(column) else { return nil }
        guard let value = Digest<Kind>(bytes: data) else { throw damaged(column) }
        return value
    }

    func name(_ column: Int) throws -> Name {
        guard let name = try? Name(bytes: bytes(column)) else { throw damaged(column) }
        return name
    }

    func time(_ column: Int) throws -> Timestamp { Timestamp(nanoseconds: try value(column)) }

    /// Positions and offsets stand in their column as the number of the same bits.
    func unsigned(_ column: Int) throws -> UInt64 { UInt64(bitPattern: try value(column)) }

    func manifest(_ column: Int) throws -> Manifest? {
        guard let data: Data = try optional(column) else { return nil }
        guard let manifest = Manifest(encoded: data) else { throw damaged(column) }
        return manifest
    }

    func damaged(_ column: Int) -> CatalogError {
        let names = Array(columnNames)
        return .damaged(column: names.indices.contains(column) ? names[column] : "\(column)")
    }
}

/// Rows of which there are many.
extension SQLRow {
    func identifier<Kind>(_ column: Int) throws -> Identifier<Kind> {
        guard let value = identifier(column, Kind.self) else { throw damaged(column) }
        return value
    }

    /// `nil` for NULL.
    func optionalIdentifier<Kind>(_ column: Int) throws -> Identifier<Kind>? {
        guard !isNull(column) else { return nil }
        return try identifier(column)
    }

    func digest<Kind>(_ column: Int) throws -> Digest<Kind> {
        guard let value = try optionalDigest(column) as Digest<Kind>? else { throw damaged(column) }
        return value
    }

    func optionalDigest<Kind>(_ column: Int) throws -> Digest<Kind>? {
        guard let bytes = bytes(column) else { return nil }
        guard let value = Digest<Kind>(bytes: bytes) else { throw damaged(column) }
        return value
    }

    func name(_ column: Int) throws -> Name {
        guard let bytes = bytes(column), let name = try? Name(bytes: bytes) else { throw damaged(column) }
        return name
    }

    func time(_ column: Int) -> Timestamp { Timestamp(nanoseconds: integer(column)) }

    /// Where 0, as which anything else is read, would be taken for something.
    func number(_ column: Int) throws -> Int64 {
        guard isInteger(column) else { throw damaged(column) }
        return integer(column)
    }

    func exactly<Value: FixedWidthInteger>(_ column: Int) throws -> Value {
        guard let value = Value(exactly: integer(column)) else { throw damaged(column) }
        return value
    }

    func manifest(_ column: Int) throws -> Manifest? {
        guard let bytes = bytes(column) else { return nil }
        guard let manifest = Manifest(encoded: bytes) else { throw damaged(column) }
        return manifest
    }

    func damaged(_ column: Int) -> CatalogError { .damaged(column: nameOfColumn(column)) }
}

extension CatalogError {
    fileprivate static func damaged(column: String) -> CatalogError {
        .failed("the catalogue is damaged: column \(column)")
    }
}

extension TokenHash {
    var blob: Data { Data(bytes) }
}

extension SecretHash {
    var blob: Data { Data(bytes) }
}

extension [UInt8] {
    var blob: Data { Data(self) }
}
