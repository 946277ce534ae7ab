import Foundation

/// What `--json` printed, read by keys: a test says which ones it relies on.
package struct JSON: @unchecked Sendable, CustomStringConvertible {
    // Unchecked: the value is what JSONSerialization made, immutable and seen by nobody else.
    private let value: Any

    package init(_ bytes: [UInt8]) throws {
        do {
            value = try JSONSerialization.jsonObject(with: Data(bytes), options: .fragmentsAllowed)
        } catch {
            throw TestFailure("no JSON: \(String(decoding: bytes.prefix(500), as: UTF8.self))")
        }
    }

    private init(value: Any) {
        self.value = value
    }

    package subscript(_ key: String) -> JSON? {
        guard let inner = (value as? [String: Any])?[key], !(inner is NSNull) else { return nil }
        return JSON(value: inner)
    }

    /// The elements of an array; an object counts as an array of itself.
    package var elements: [JSON] {
        if let array = value as? [Any] { return array.map(JSON.init(value:)) }
        return [self]
    }

    package var string: String? { value as? String }
    package var integer: Int64? { (value as? NSNumber)?.int64Value }
    package var number: Double? { (value as? NSNumber)?.doubleValue }
    package var isTrue: Bool { (value as? NSNumber)?.boolValue ?? false }

    package var description: String {
        let options: JSONSerialization.WritingOptions = [.sortedKeys, .fragmentsAllowed, .withoutEscapingSlashes]
        guard let data = try? JSONSerialization.data(withJSONObject: value, options: options) else { return "\(value)" }
        return String(decoding: data, as: UTF8.self)
    }
}
