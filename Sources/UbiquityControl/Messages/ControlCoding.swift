internal import FoundationEssentials

/// JSON as it travels on the control socket and as `--json` prints it.
package enum ControlCoding {
    /// One line, without the line feed; keys in order, so that equal values give equal text.
    package static func encode(_ value: some Encodable) throws(ControlError) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return try encode(value, with: encoder)
    }

    /// For people and files: indented.
    package static func encodePretty(_ value: some Encodable) throws(ControlError) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes, .prettyPrinted]
        return try encode(value, with: encoder)
    }

    package static func decode<Value: Decodable>(
        _ type: Value.Type,
        from bytes: some Collection<UInt8>
    ) throws(ControlError) -> Value {
        do { return try JSONDecoder().decode(type, from: Data(bytes)) } catch {
            throw ControlError("message", "not understood (\(describe(error)))")
        }
    }

    private static func encode(_ value: some Encodable, with encoder: JSONEncoder) throws(ControlError) -> [UInt8] {
        do { return Array(try encoder.encode(value)) } catch {
            throw ControlError("message", "cannot be written as JSON (\(describe(error)))")
        }
    }

    /// Decoding errors span many lines; what matters is which key.
    private static func describe(_ error: any Error) -> String {
        switch error as? DecodingError {
        case .keyNotFound(let key, _): "no \"\(key.stringValue)\""
        case .typeMismatch(_, let context), .valueNotFound(_, let context):
            "wrong type at \"\(context.codingPath.map(\.stringValue).joined(separator: "."))\""
        case .dataCorrupted(let context): context.debugDescription
        case nil: String(describing: error)
        @unknown default: String(describing: error)
        }
    }
}
