// Messages of which there are very many, or very long ones, are read and written without generated code.

/// The fields of an encoded message, one after the other. Every answer is `nil` where the bytes are no such thing.
struct WireReader {
    private let bytes: UnsafeRawBufferPointer
    private(set) var offset = 0

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    var isAtEnd: Bool { offset == bytes.count }

    mutating func varint() -> UInt64? {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while offset < bytes.count, shift < 64 {
            let byte = bytes[offset]
            offset += 1
            // The tenth byte has room for one bit.
            if shift == 63, byte > 1 { return nil }
            value |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return value }
            shift += 7
        }
        return nil
    }

    mutating func fixed() -> Int64? {
        guard bytes.count - offset >= 8 else { return nil }
        defer { offset += 8 }
        return Int64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: Int64.self))
    }

    mutating func field() -> UnsafeRawBufferPointer? {
        guard let length = varint(), length <= bytes.count - offset else { return nil }
        defer { offset += Int(length) }
        return UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + Int(length)])
    }

    mutating func skip(_ tag: UInt64) -> Bool {
        switch tag & 7 {
        case 0: return varint() != nil
        case 1: return fixed() != nil
        case 2: return field() != nil
        case 5:
            guard bytes.count - offset >= 4 else { return false }
            offset += 4
            return true
        default: return false
        }
    }
}

extension [UInt8] {
    mutating func appendVarint(_ value: UInt64) {
        var value = value
        while value >= 0x80 {
            append(UInt8(truncatingIfNeeded: value) | 0x80)
            value >>= 7
        }
        append(UInt8(value))
    }

    mutating func appendField(_ tag: UInt64, _ value: UInt64) {
        guard value != 0 else { return }
        appendVarint(tag)
        appendVarint(value)
    }

    mutating func appendField(_ tag: UInt64, fixed value: Int64) {
        guard value != 0 else { return }
        appendVarint(tag)
        Swift.withUnsafeBytes(of: value.littleEndian) { append(contentsOf: $0) }
    }
}
