internal import FoundationEssentials
internal import UbiquityModel

// Fields that many messages share: each is checked in one place.

extension Identifier {
    init(wire data: Data, _ field: String) throws(WireError) {
        guard let value = Self(bytes: data) else {
            throw data.isEmpty ? .missing(field) : .wrongLength(field, bytes: data.count)
        }
        self = value
    }

    /// `nil` where the field is empty.
    static func optional(wire data: Data, _ field: String) throws(WireError) -> Self? {
        data.isEmpty ? nil : try Self(wire: data, field)
    }

    var wire: Data { Data(bytes) }
}

extension Digest {
    init(wire data: Data, _ field: String) throws(WireError) {
        guard let value = Self(bytes: data) else {
            throw data.isEmpty ? .missing(field) : .wrongLength(field, bytes: data.count)
        }
        self = value
    }

    /// `nil` where the field is empty.
    static func optional(wire data: Data, _ field: String) throws(WireError) -> Self? {
        data.isEmpty ? nil : try Self(wire: data, field)
    }

    var wire: Data { Data(bytes) }
}

extension Name {
    init(wire data: Data) throws(WireError) {
        do throws(NameError) { self = try Name(bytes: data) } catch { throw .badName(error) }
    }

    var wire: Data { Data(bytes) }
}

extension Timestamp {
    init(wire nanoseconds: Int64) { self.init(nanoseconds: nanoseconds) }

    var wire: Int64 { nanoseconds }
}

/// A file's size in bytes.
func checkedSize(_ size: Int64) throws(WireError) -> Int64 {
    guard size >= 0 else { throw .outOfRange("a file's size", value: size) }
    return size
}

func checkedMode(_ mode: UInt32) throws(WireError) -> UInt16 {
    guard mode <= 0o777 else { throw .outOfRange("the permission bits", value: Int64(mode)) }
    return UInt16(mode)
}
