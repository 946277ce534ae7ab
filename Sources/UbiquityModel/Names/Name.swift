/// The name of an item in its folder: 1 to 255 bytes, any but `/` and NUL, never `.` or `..`, kept exactly (semantics section 3).
///
/// A value of this type has been checked, wherever it came from: that is the only way to make one.
package struct Name: Hashable, Sendable, Comparable {
    @usableFromInline package let bytes: [UInt8]

    package init(bytes: some Collection<UInt8>) throws(NameError) {
        self.bytes = try withContiguousBytes(bytes) { bytes -> Result<[UInt8], NameError> in
            Self.fault(of: bytes).map { .failure($0) } ?? .success(Array(bytes))
        }.get()
    }

    /// Of a C string: for every request that has a name, so without anything generic.
    package init(cString: UnsafePointer<CChar>) throws(NameError) {
        var count = 0
        while count <= 255, cString[count] != 0 { count += 1 }
        let bytes = UnsafeRawBufferPointer(start: cString, count: count)
        if let fault = Self.fault(of: bytes) { throw fault }
        self.bytes = Array(bytes)
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

    /// Calls `body` with the name as a C string.
    @inlinable
    package func withCString<Result, Failure: Error>(
        _ body: (UnsafePointer<CChar>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        var outcome: Swift.Result<Result, Failure>?
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
            for index in bytes.indices { buffer[index] = CChar(bitPattern: bytes[index]) }
            buffer[bytes.count] = 0
            // The allocation has room for 255 bytes and the NUL, so it has a base address.
            guard let base = buffer.baseAddress else { return }
            do throws(Failure) { outcome = .success(try body(base)) } catch { outcome = .failure(error) }
        }
        guard let outcome else { preconditionFailure("a temporary allocation of 256 bytes has no address") }
        return try outcome.get()
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
