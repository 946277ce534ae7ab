/// The name of an item in its folder: 1 to 255 bytes, any but `/` and NUL, never `.` or `..`, kept exactly (semantics section 3).
///
/// A value of this type has been checked, wherever it came from: that is the only way to make one.
package struct Name: Hashable, Sendable, Comparable {
    package let bytes: [UInt8]

    package init(bytes: some Collection<UInt8>) throws(NameError) { try self.init(bytes: Array(bytes)) }

    // What names are mostly made of, without anything generic: of a generic function in another target no special version is made, even if it
    // is inlinable, since its access is `package` (Swift 6.3).

    package init(bytes: [UInt8]) throws(NameError) {
        if let fault = bytes.withUnsafeBytes(Self.fault) { throw fault }
        self.bytes = bytes
    }

    package init(bytes: UnsafeRawBufferPointer) throws(NameError) {
        if let fault = Self.fault(of: bytes) { throw fault }
        self.bytes = Array(bytes)
    }

    package init(cString: UnsafePointer<CChar>) throws(NameError) {
        var count = 0
        while count <= 255, cString[count] != 0 { count += 1 }
        try self.init(bytes: UnsafeRawBufferPointer(start: cString, count: count))
    }

    private static func fault(of bytes: UnsafeRawBufferPointer) -> NameError? {
        if bytes.isEmpty { return .empty }
        if bytes.count > 255 { return .tooLong }
        for byte in bytes {
            if byte == UInt8(ascii: "/") { return .containsSlash }
            if byte == 0 { return .containsNUL }
        }
        if bytes.count <= 2, bytes.allSatisfy({ $0 == UInt8(ascii: ".") }) { return .dots }
        return nil
    }

    package init(_ text: String) throws(NameError) { try self.init(bytes: Array(text.utf8)) }

    package static func < (left: Self, right: Self) -> Bool { left.bytes.lexicographicallyPrecedes(right.bytes) }

    /// All bytes at once: an array is hashed one by one.
    package func hash(into hasher: inout Hasher) { bytes.withUnsafeBytes { hasher.combine(bytes: $0) } }

    /// Calls `body` with the name as a C string. Without a type made of `Result` and `Failure`, which would be looked up at each call: that
    /// took seven times as long.
    package func withCString<Result, Failure: Error>(
        _ body: (UnsafePointer<CChar>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        // 255 bytes and the NUL.
        var terminated = InlineArray<256, CChar>(repeating: 0)
        var characters = terminated.mutableSpan
        for index in bytes.indices { characters[index] = CChar(bitPattern: bytes[index]) }
        return try characters.withUnsafeBufferPointer { characters throws(Failure) in
            guard let start = characters.baseAddress else { preconditionFailure("256 characters have an address") }
            return try body(start)
        }
    }
}

extension Name: CustomStringConvertible {
    /// For people: invalid UTF-8 is repaired, so this is never used to find the item again.
    package var description: String { String(decoding: bytes, as: UTF8.self) }
}

/// Why bytes are no name.
package enum NameError: Error, Hashable, Sendable {
    case empty, tooLong, containsSlash, containsNUL, dots
}

extension NameError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .empty: "a name is empty"
        case .tooLong: "a name is longer than 255 bytes"
        case .containsSlash: "a name contains \"/\""
        case .containsNUL: "a name contains a NUL byte"
        case .dots: "\".\" and \"..\" are no names"
        }
    }
}
