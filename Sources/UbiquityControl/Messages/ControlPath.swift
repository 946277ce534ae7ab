internal import FoundationEssentials

/// An absolute path as its bytes: file names need not be UTF-8. In JSON a string, or `{"base64": "…"}` where it is none.
package struct ControlPath: Hashable, Sendable {
    package var bytes: [UInt8]

    package init(bytes: [UInt8]) { self.bytes = bytes }
    package init(_ text: String) { bytes = Array(text.utf8) }

    /// The components, without empty ones.
    package var components: [[UInt8]] { bytes.split(separator: UInt8(ascii: "/")).map(Array.init) }

    /// What follows `ancestor`, or `nil` if this does not lie in it. Both are absolute and have been resolved.
    package func relative(to ancestor: ControlPath) -> [[UInt8]]? {
        let own = components
        let outer = ancestor.components
        return own.starts(with: outer) ? Array(own.dropFirst(outer.count)) : nil
    }
}

extension ControlPath: CustomStringConvertible {
    /// For people: invalid UTF-8 is repaired.
    package var description: String { String(decoding: bytes, as: UTF8.self) }
}

extension ControlPath: Codable {
    private enum Key: String, CodingKey { case base64 }

    package init(from decoder: any Decoder) throws {
        if let text = try? decoder.singleValueContainer().decode(String.self) {
            bytes = Array(text.utf8)
            return
        }
        let container = try decoder.container(keyedBy: Key.self)
        let text = try container.decode(String.self, forKey: .base64)
        guard let data = Data(base64Encoded: text) else {
            throw DecodingError.dataCorruptedError(forKey: .base64, in: container, debugDescription: "not base64")
        }
        bytes = Array(data)
    }

    package func encode(to encoder: any Encoder) throws {
        if let text = String(validating: bytes, as: UTF8.self) {
            var container = encoder.singleValueContainer()
            try container.encode(text)
        } else {
            var container = encoder.container(keyedBy: Key.self)
            try container.encode(Data(bytes).base64EncodedString(), forKey: .base64)
        }
    }
}
