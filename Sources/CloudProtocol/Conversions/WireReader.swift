// Messages of which there are very many, or very long ones, are read and written without generated code.

/// The fields of an encoded message, one after the other. Every answer is `nil` where the bytes are no such thing.
struct WireReader {
    private let bytes: UnsafeRawBufferPointer
    private(set) var offset = 0

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    var isAtEnd: Bool { offset == bytes.count }

    /// The number and the kind of the next field. Five bytes at the most, as generated code has it: a longer form of the same is refused.
    mutating func tag() -> UInt64? {
        let start = offset
        guard let tag = varint(), offset - start <= 5, tag <= UInt64(UInt32.max), tag >> 3 != 0 else { return nil }
        return tag
    }

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

/// Where the fields with one tag stand in a message that has many of them.
struct WireList {
    private(set) var ranges: [Range<Int>] = []
    /// The message without them.
    private(set) var others: [UInt8] = []

    /// `nil` for what is no message, and for groups, which nobody writes.
    init?(_ body: UnsafeRawBufferPointer, tag listed: UInt64) {
        var reader = WireReader(body)
        while !reader.isAtEnd {
            let start = reader.offset
            guard let tag = reader.tag() else { return nil }
            if tag == listed {
                guard let field = reader.field() else { return nil }
                ranges.append(reader.offset - field.count..<reader.offset)
            } else {
                guard reader.skip(tag) else { return nil }
                others.append(contentsOf: body[start..<reader.offset])
            }
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

    /// The length comes before a message, and mostly has one or two bytes: room for two is left, and closed up if one is enough.
    /// - Returns: what `closeMessage` asks for.
    mutating func openMessage() -> Int {
        append(0)
        append(0)
        return count - 2
    }

    /// Writes the length of what was appended since `openMessage` into the two bytes at `start`. What needs more has a long manifest, or
    /// an absurd author: that is moved once more.
    mutating func closeMessage(_ start: Int) {
        let length = count - start - 2
        if length < 0x80 {
            self[start] = UInt8(length)
            remove(at: start + 1)
        } else if length < 0x4000 {
            self[start] = UInt8(truncatingIfNeeded: length) | 0x80
            self[start + 1] = UInt8(length >> 7)
        } else {
            var longer: [UInt8] = []
            longer.appendVarint(UInt64(length))
            replaceSubrange(start..<start + 2, with: longer)
        }
    }
}
