import CUTF8Proc

/// A name without its case: what two names of one folder have in common that a case-insensitive container does not hold beside each
/// other (semantics section 3).
///
/// Unicode's full case folding, then NFC. Unicode promises never to change either for characters that it has assigned, so what is stored
/// stays right with a newer table. A name that is no UTF-8 is equal to itself only.
package struct FoldedName: Hashable, Sendable {
    package let bytes: [UInt8]

    package init(_ name: Name) {
        var bytes = name.bytes
        var isASCII = true
        for index in bytes.indices {
            let byte = bytes[index]
            if byte >= 0x80 { isASCII = false }
            if byte >= UInt8(ascii: "A"), byte <= UInt8(ascii: "Z") { bytes[index] = byte | 0x20 }
        }
        self.bytes = isASCII ? bytes : Self.fold(name.bytes) ?? name.bytes
    }

    /// `nil` for what is no UTF-8.
    private static func fold(_ bytes: [UInt8]) -> [UInt8]? {
        let options = utf8proc_option_t(
            UTF8PROC_STABLE.rawValue | UTF8PROC_COMPOSE.rawValue | UTF8PROC_CASEFOLD.rawValue
        )
        return withUnsafeTemporaryAllocation(of: utf8proc_int32_t.self, capacity: capacity) { points in
            let count = bytes.withUnsafeBufferPointer {
                utf8proc_decompose($0.baseAddress, $0.count, points.baseAddress, points.count - 1, options)
            }
            guard (1..<points.count).contains(count) else { return nil }
            // In place: as many bytes, and a NUL.
            let length = utf8proc_reencode(points.baseAddress, count, options)
            guard length > 0 else { return nil }
            return Array(UnsafeRawBufferPointer(UnsafeMutableRawBufferPointer(points)).prefix(length))
        }
    }

    /// Of 255 bytes none becomes more than four code points.
    private static let capacity = 255 * 4 + 1
}

extension Name {
    package var folded: FoldedName { FoldedName(self) }
}
