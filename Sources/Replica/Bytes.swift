/// Builds the small binary formats of the replica: big-endian integers and length-prefixed bytes.
struct ByteWriter {
    private(set) var result: [UInt8] = []

    mutating func integer(_ value: some FixedWidthInteger) {
        withUnsafeBytes(of: value.bigEndian) { result.append(contentsOf: $0) }
    }

    mutating func bytes(_ bytes: [UInt8]) { result.append(contentsOf: bytes) }

    mutating func prefixed(_ bytes: [UInt8]) {
        integer(UInt32(bytes.count))
        self.bytes(bytes)
    }
}

/// Reads what `ByteWriter` wrote. Every call gives `nil` where the bytes end too early.
struct ByteReader {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) { rest = bytes[...] }

    var isAtEnd: Bool { rest.isEmpty }

    mutating func integer<Integer: FixedWidthInteger>(_ type: Integer.Type) -> Integer? {
        let count = MemoryLayout<Integer>.size
        guard rest.count >= count else { return nil }
        var value = Integer()
        withUnsafeMutableBytes(of: &value) { $0.copyBytes(from: rest.prefix(count)) }
        rest = rest.dropFirst(count)
        return Integer(bigEndian: value)
    }

    mutating func bytes(_ count: Int) -> [UInt8]? {
        guard count >= 0, rest.count >= count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }

    mutating func prefixed() -> [UInt8]? { integer(UInt32.self).flatMap { bytes(Int($0)) } }
}
