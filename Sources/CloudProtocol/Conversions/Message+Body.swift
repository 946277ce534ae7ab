package import SwiftProtobuf

extension Message {
    /// The message in a body; what cannot be decoded is an error like any other of the wire.
    package init(body: some SwiftProtobufContiguousBytes) throws(WireError) {
        do { try self.init(serializedBytes: body) } catch {
            throw .undecodable("a message of the kind \(Self.protoMessageName)")
        }
    }

    /// The bytes of a message. Our messages have no required fields: only one of 2 GiB and more cannot be encoded.
    package var body: [UInt8] {
        get throws(WireError) {
            do { return try serializedBytes() } catch { throw .unencodable(Self.protoMessageName, reason: "\(error)") }
        }
    }
}
