import CloudProtocol
import FoundationEssentials
import UbiquityModel

/// Commits and their answers, in the forms that are read without generated code.
extension FuzzTarget {
    static let commits: [FuzzTarget] = [
        FuzzTarget("plain operations of a commit") { arbitrary in
            var writer = CommitWriter(
                deviceClock: arbitrary.time(),
                discardsFormer: arbitrary.chance(2),
                nonce: arbitrary.bytes(arbitrary.below(20)),
                capacity: arbitrary.below(4096)
            )
            for _ in 0..<arbitrary.below(3) {
                let data = arbitrary.bytes(1 + arbitrary.below(40))
                writer.append(chunk: (try arbitrary.chunk(), UInt32(data.count), false, data[...]))
            }
            for _ in 0...arbitrary.below(3) { try writer.append(try arbitrary.change()) }
            return writer.finish()
        } check: { bytes in
            guard let body = accepted(WireError.self, { () throws(WireError) in try CommitBody(body: bytes) }) else {
                return false
            }
            guard
                let general = accepted(WireError.self, { () throws(WireError) in try WireCommitRequest(body: bytes) })
            else { throw FuzzFailure("generated code refuses what is accepted") }
            try promise(general.operations.count == body.entries.count, "\(body.entries.count) operations")
            for (wire, entry) in zip(general.operations, body.entries) { try check(entry, wire) }
            try promise(general.chunks.count == body.chunks.count, "\(body.chunks.count) chunks")
            for (wire, chunk) in zip(general.chunks, body.chunks) {
                let isSame = try wire.decoded() == chunk
                try promise(isSame, "another chunk than \(wire)")
            }
            try promise(general.deviceClock == body.deviceClock.nanoseconds, "another clock")
            try promise(general.discardsFormer == body.discardsFormer, "other rules")
            return !body.entries.isEmpty
        },
        FuzzTarget("a commit's reply") { arbitrary in
            var outcomes = [OperationOutcome]()
            for _ in 0...arbitrary.below(4) {
                let isAny = arbitrary.chance(3)
                outcomes.append(try isAny ? arbitrary.outcome() : .committed(arbitrary.item()))
            }
            return try CommitReply.body(outcomes, position: arbitrary.position())
        } check: { bytes in
            guard
                let general = accepted(WireError.self, { () throws(WireError) in try WireCommitResponse(body: bytes) }),
                let position = accepted(
                    WireError.self,
                    { () throws(WireError) in
                        try LogPosition(counter: general.position, wireHash: [UInt8](general.hash))
                    }
                )
            else {
                for count in 0..<8 {
                    let reply = accepted(WireError.self) { () throws(WireError) in
                        try CommitReply(body: bytes, count: count)
                    }
                    try promise(reply == nil, "generated code refuses what is accepted")
                }
                return false
            }
            let reply = try CommitReply(body: bytes, count: general.outcomes.count)
            try promise(reply.position == position, "another position: \(reply.position)")
            try promise(reply.outcomes.count == general.outcomes.count, "\(reply.outcomes.count) outcomes")
            for (wire, outcome) in zip(general.outcomes, reply.outcomes) {
                let expected = said(wire)
                try promise(outcome == expected, "\(outcome), and not \(expected)")
            }
            var again = WireCommitResponse()
            again.outcomes = reply.outcomes.map { WireOutcome($0) }
            again.position = position.counter
            again.hash = Data(position.hash)
            let written = try CommitReply.body(reply.outcomes, position: position)
            let expected = try again.body
            try promise(written == expected, "other bytes")
            return true
        },
    ]

    private static func check(_ entry: CommitBody.Entry, _ wire: WireOperation) throws {
        switch entry {
        case .based: try promise(wire.isBased, "\(wire) is complete without its base")
        case .operation(let operation):
            let expected = accepted(WireError.self) { () throws(WireError) in try ItemOperation(wire: wire) }
            try promise(operation == expected, "\(operation), and not \(wire)")
            var request = WireCommitRequest()
            request.operations = [WireOperation(operation)]
            let written = try CommitWriter.encoded(operation)
            let general = try request.body
            try promise(written == general, "other bytes of \(operation)")
        case .refused(let item, let reason):
            try promise(item == ItemID(bytes: wire.item), "not the item of \(wire)")
            guard !wire.isBased else { return }
            do throws(WireError) { _ = try ItemOperation(wire: wire) } catch {
                try promise(error == reason, "\(reason), and not \(error)")
                return
            }
            throw FuzzFailure("\(reason), and generated code finds nothing wrong with \(wire)")
        }
    }

    private static func said(_ wire: WireOutcome) -> OperationOutcome {
        do throws(WireError) { return try OperationOutcome(wire: wire) } catch { return .invalid(error.description) }
    }
}

extension Arbitrary {
    /// A creation or an edit, most often a plain one.
    fileprivate mutating func change() throws -> ItemOperation {
        let manifest = try manifest(upTo: 4)
        let content: ItemContent = chance(6) ? .folder : .file(try file(of: manifest))
        let chunks = content == .folder ? Manifest() : manifest
        let action: ItemOperation.Action =
            chance(2)
            ? .create(
                place: try place(),
                content: content,
                attributes: plainAttributes(),
                manifest: chunks,
                edited: time()
            )
            : .edit(
                base: chance(2) ? identifier() : nil,
                content: content,
                attributes: plainAttributes(),
                manifest: chunks,
                edited: time()
            )
        return ItemOperation(
            id: identifier(),
            item: ItemID(high: 2, low: generator.next()),
            action: action,
            isUnwitnessed: chance(4),
            formerAttributes: chance(4) ? plainAttributes() : nil
        )
    }

    private mutating func plainAttributes() -> ItemAttributes {
        var plain = attributes()
        if !chance(8) { plain.extended = [:] }
        return plain
    }
}
