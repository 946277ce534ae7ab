package import SwiftProtobuf

extension Message {
    /// The message in a body; what cannot be decoded is an error like any other of the wire.
    package init(body: some SwiftProtobufContiguousBytes) throws(WireError) {
        do { try self.init(serializedBytes: body) } catch {
            throw .undecodable("a message of the kind \(Self.protoMessageName)")
        }
    }

    /// The bytes of a message. Our messages have no required fields and are far below 2 GiB: encoding them cannot fail.
    package var body: [UInt8] {
        do { return try serializedBytes() } catch {
            preconditionFailure("a message of the kind \(Self.protoMessageName) cannot be encoded: \(error)")
        }
    }
}
