internal import FoundationEssentials
package import UbiquityModel

/// The message `CommitResponse`. Most outcomes are items that were committed, and most of those are plain: they are read and written
/// without generated code, as `ItemPage` does it.
package struct CommitReply {
    private enum Tag {
        static let outcomes: UInt64 = 1 << 3 | 2
        /// In an outcome.
        static let committed: UInt64 = 1 << 3 | 2
    }

    /// One for each operation, in order.
    package let outcomes: [OperationOutcome]
    /// Of the container's log after the commit.
    package let position: LogPosition

    /// - Parameter count: of the operations that were sent. Other answers are refused before they are read.
    package init(body: [UInt8], count: Int) throws(WireError) {
        let rest: WireCommitResponse
        if let list = body.withUnsafeBytes({ WireList($0, tag: Tag.outcomes) }) {
            try Self.check(list.ranges.count, count)
            rest = try WireCommitResponse(body: list.others)
            outcomes = try list.ranges.map { (range) throws(WireError) in try Self.outcome(body[range]) }
        } else {
            // It says what is wrong, or knows more than is expected here.
            rest = try WireCommitResponse(body: body)
            try Self.check(rest.outcomes.count, count)
            outcomes = rest.outcomes.map { Self.outcome($0) }
        }
        position = try LogPosition(counter: rest.position, wireHash: [UInt8](rest.hash))
    }

    private static func check(_ found: Int, _ count: Int) throws(WireError) {
        guard found == count else { throw .contradiction("\(found) outcomes for \(count) operations") }
    }

    private static func outcome(_ bytes: ArraySlice<UInt8>) throws(WireError) -> OperationOutcome {
        let plain = bytes.withUnsafeBytes { committed($0) }
        if let plain { return plain }
        do throws(WireError) { return outcome(try WireOutcome(body: Array(bytes))) } catch {
            // With one that cannot be decoded it is no message at all.
            throw .undecodable("a message of the kind \(WireCommitResponse.protoMessageName)")
        }
    }

    /// One item that nobody can read does not take the answers of all others with it.
    private static func outcome(_ wire: WireOutcome) -> OperationOutcome {
        do throws(WireError) { return try OperationOutcome(wire: wire) } catch { return .invalid(error.description) }
    }

    /// `nil` for any other outcome, and for an item that is not plain.
    private static func committed(_ bytes: UnsafeRawBufferPointer) -> OperationOutcome? {
        var reader = WireReader(bytes)
        guard reader.tag() == Tag.committed, let field = reader.field(), reader.isAtEnd,
            let plain = PlainItem.decode(field)
        else { return nil }
        return .committed(plain.item)
    }

    /// The bytes of the message.
    package static func body(
        _ outcomes: [OperationOutcome],
        position: LogPosition
    ) throws(WireError) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(256 * outcomes.count)
        for outcome in outcomes {
            bytes.appendVarint(Tag.outcomes)
            if case .committed(let item) = outcome, PlainItem.isPlain(item) {
                let start = bytes.openMessage()
                bytes.appendVarint(Tag.committed)
                PlainItem.append(item, nil, to: &bytes)
                bytes.closeMessage(start)
            } else {
                let encoded = try WireOutcome(outcome).body
                bytes.appendVarint(UInt64(encoded.count))
                bytes += encoded
            }
        }
        var rest = WireCommitResponse()
        rest.position = position.counter
        rest.hash = Data(position.hash)
        // Messages one after the other are one message.
        bytes += try rest.body
        return bytes
    }
}
