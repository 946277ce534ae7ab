package import UbiquityModel

/// The message `CommitRequest`, as a device writes it: with nothing between its chunks and operations and its bytes, where they are plain.
/// The chunks come first, then the operations in their order, then `finish`.
package struct CommitWriter {
    private enum Tag {
        static let format: UInt64 = 1 << 3 | 0
        static let deviceClock: UInt64 = 2 << 3 | 1
        static let chunks: UInt64 = 3 << 3 | 2
        static let operations: UInt64 = 4 << 3 | 2
        static let discardsFormer: UInt64 = 5 << 3 | 0
        static let nonce: UInt64 = 6 << 3 | 2
    }

    private var bytes: [UInt8] = []
    private let discardsFormer: Bool
    private let nonce: [UInt8]

    /// - Parameters:
    ///   - nonce: of the device's session, as far as it knows.
    ///   - capacity: about how many bytes it will have.
    package init(deviceClock: Timestamp, discardsFormer: Bool, nonce: [UInt8], capacity: Int) {
        self.discardsFormer = discardsFormer
        self.nonce = nonce
        bytes.reserveCapacity(capacity)
        bytes.appendField(Tag.format, UInt64(FormatVersion.cloudProtocol))
        bytes.appendField(Tag.deviceClock, fixed: deviceClock.wire)
    }

    /// Bytes so far.
    package var count: Int { bytes.count }

    package mutating func append(chunk frame: WireChunkFrame.Parts) {
        bytes.appendVarint(Tag.chunks)
        WireChunkFrame.append(frame, to: &bytes)
    }

    package mutating func append(_ operation: ItemOperation) throws(WireError) {
        try Self.append(operation, to: &bytes)
    }

    /// One that is in the form of generated code already.
    package mutating func append(_ wire: WireOperation) throws(WireError) { try Self.append(wire, to: &bytes) }

    /// One that `encoded` has made.
    package mutating func append(encoded: [UInt8]) { bytes += encoded }

    /// The bytes of the message. Called once, at the end.
    package mutating func finish() -> [UInt8] {
        bytes.appendField(Tag.discardsFormer, discardsFormer ? 1 : 0)
        if !nonce.isEmpty {
            bytes.appendVarint(Tag.nonce)
            bytes.appendVarint(UInt64(nonce.count))
            bytes += nonce
        }
        return bytes
    }

    /// An operation as it stands in a request, with its tag and its length.
    package static func encoded(_ operation: ItemOperation) throws(WireError) -> [UInt8] {
        var bytes: [UInt8] = []
        try append(operation, to: &bytes)
        return bytes
    }

    private static func append(_ operation: ItemOperation, to bytes: inout [UInt8]) throws(WireError) {
        guard PlainOperation.isPlain(operation) else { return try append(WireOperation(operation), to: &bytes) }
        bytes.appendVarint(Tag.operations)
        PlainOperation.append(operation, to: &bytes)
    }

    private static func append(_ wire: WireOperation, to bytes: inout [UInt8]) throws(WireError) {
        let encoded = try wire.body
        bytes.appendVarint(Tag.operations)
        bytes.appendVarint(UInt64(encoded.count))
        bytes += encoded
    }
}
