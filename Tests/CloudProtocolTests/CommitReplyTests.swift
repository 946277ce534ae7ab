import CloudProtocol
import FoundationEssentials
import TestSupport
import Testing
import UbiquityModel

/// Outcomes are written and read without generated code where that is possible: the bytes, and what comes of them, must be the same.
@Suite struct CommitReplyTests {
    private static let position = LogPosition(counter: 300, hash: [UInt8](repeating: 5, count: 32))

    private static func response(_ outcomes: [OperationOutcome]) -> WireCommitResponse {
        var response = WireCommitResponse()
        response.outcomes = outcomes.map { WireOutcome($0) }
        response.position = position.counter
        response.hash = Data(position.hash)
        return response
    }

    private static func outcome(_ generator: inout some RandomNumberGenerator) throws -> OperationOutcome {
        switch Int.random(in: 0..<8, using: &generator) {
        case 0: .superseded(try ItemPageTests.item(&generator).0)
        case 1: try AnswerWireTests.outcomes().randomElement(using: &generator) ?? .skipped
        default: .committed(try ItemPageTests.item(&generator).0)
        }
    }

    @Test(arguments: 0..<64 as Range<UInt64>)
    func `a reply has the bytes of generated code, and is read from them`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let outcomes = try (0..<32).map { _ in try Self.outcome(&generator) }
        let bytes = try CommitReply.body(outcomes, position: Self.position)
        let expected = try Self.response(outcomes).body
        #expect(bytes == expected)
        let reply = try CommitReply(body: bytes, count: outcomes.count)
        #expect(reply.outcomes == outcomes)
        #expect(reply.position == Self.position)
    }

    @Test func `a reply to nothing has a position`() throws {
        let bytes = try CommitReply.body([], position: .beginning)
        #expect(bytes == [])
        let reply = try CommitReply(body: bytes, count: 0)
        #expect(reply.outcomes == [])
        #expect(reply.position == .beginning)
    }

    @Test(arguments: [0, 1, 3])
    func `a reply to other operations is none`(count: Int) throws {
        let bytes = try CommitReply.body([.skipped, .committed(try Samples.remote())], position: Self.position)
        #expect(throws: WireError.contradiction("2 outcomes for \(count) operations")) {
            try CommitReply(body: bytes, count: count)
        }
        // Also in a form that only generated code reads.
        #expect(throws: WireError.contradiction("2 outcomes for \(count) operations")) {
            try CommitReply(body: bytes + [0xA3, 0x06, 0xA4, 0x06], count: count)
        }
    }

    /// An item that comes with a manifest, as a newer server might send it.
    @Test func `a manifest does no harm, whatever it is`() throws {
        var item = try Samples.remote()
        item.attributes.extended = [:]
        item.conflicts = []
        let manifests: [[UInt8]] = [try Samples.manifest().encoded, [1, 2, 3], []]
        for manifest in manifests {
            var response = Self.response([.committed(item)])
            response.outcomes[0].committed.manifest = Data(manifest)
            let bytes = try response.body
            #expect(try CommitReply(body: bytes, count: 1).outcomes == [.committed(item)])
        }
    }

    @Test(arguments: RemoteItemWireTests.spoiled)
    func `an item that cannot be does not take the other answers with it`(spoiled: Spoiled<WireItem>) throws {
        let whole = try Samples.remote()
        var plain = whole
        plain.attributes.extended = [:]
        plain.conflicts = []
        for original in [whole, plain] {
            var wire = WireItem(original, manifest: nil)
            // What is spoiled in parts that a plain item has not cannot be spoiled there.
            let isInParts =
                ["our own attribute", "a system attribute", "an attribute twice"].contains(spoiled.testDescription)
                || spoiled.testDescription.hasPrefix("a conflict")
            if isInParts, original == plain { continue }
            spoiled.spoil(&wire)
            var response = Self.response([.committed(plain), .committed(original), .notEmpty])
            response.outcomes[1].committed = wire
            let bytes = try response.body
            let outcomes = try CommitReply(body: bytes, count: 3).outcomes
            let expected: [OperationOutcome] = [.committed(plain), .invalid(spoiled.error.description), .notEmpty]
            #expect(outcomes == expected)
        }
    }

    // MARK: What is not as expected

    /// What is read of a reply's bytes is what generated code reads.
    private func agree(_ bytes: [UInt8], count: Int, _ comment: Comment? = nil) throws {
        guard let response = try? WireCommitResponse(body: bytes),
            let position = try? LogPosition(counter: response.position, wireHash: [UInt8](response.hash))
        else {
            #expect(throws: WireError.self, comment) { try CommitReply(body: bytes, count: count) }
            return
        }
        let reply = try CommitReply(body: bytes, count: response.outcomes.count)
        let outcomes = response.outcomes.map { said($0) }
        #expect(reply.outcomes == outcomes, comment)
        #expect(reply.position == position, comment)
    }

    private func said(_ wire: WireOutcome) -> OperationOutcome {
        do throws(WireError) { return try OperationOutcome(wire: wire) } catch { return .invalid(error.description) }
    }

    /// Beside what a reply has, or an outcome.
    static let additions: [(String, [UInt8])] = [
        ("no outcome", [0x0A, 0x00]),
        ("an unknown field", [0xA0, 0x06, 0x01]),
        ("an unknown field of four bytes", [0xA5, 0x06, 1, 2, 3, 4]),
        ("an unknown group", [0xA3, 0x06, 0xA4, 0x06]),
        ("an end without a beginning", [0xA4, 0x06]),
        ("an item without anything", [0x0A, 0x02, 0x0A, 0x00]),
        ("an outcome as a number", [0x08, 0x01]),
        ("two outcomes in one", [0x0A, 0x04, 0x58, 0x01, 0x20, 0x01]),
        ("an outcome of a newer version", [0x0A, 0x03, 0xA0, 0x06, 0x01]),
        ("an outcome with a field of a newer version", [0x0A, 0x05, 0x58, 0x01, 0xA0, 0x06, 0x01]),
        ("torn", [0x0A, 0x05, 0x00]),
        ("a torn outcome", [0x0A, 0x02, 0x0A, 0x05]),
        ("another position", [0x10, 0x07]),
        ("a short hash", [0x1A, 0x01, 0x01]),
        ("no text", [0x0A, 0x03, 0x52, 0x01, 0xFF]),
        ("a longer form of a tag", [0x8A, 0x00, 0x02, 0x58, 0x01]),
        ("too long a form of a tag", [0x8A, 0x80, 0x80, 0x80, 0x80, 0x00, 0x02, 0x58, 0x01]),
        ("a length of 65 bits", [0x0A, 0x82, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02, 0x58, 0x01]),
    ]

    @Test(arguments: additions)
    func `what else is in a reply is read as generated code reads it`(name: String, bytes: [UInt8]) throws {
        var plain = try Samples.remote()
        plain.attributes.extended = [:]
        plain.conflicts = []
        let outcomes: [OperationOutcome] = [.committed(plain), .notEmpty]
        let body = try CommitReply.body(outcomes, position: Self.position)
        try agree(body + bytes, count: 2, "\(name)")
        try agree(bytes + body, count: 2, "\(name), before")
        // In an outcome, twice the same item.
        let item = try WireOutcome(.committed(plain)).body
        let outcome = item + item + bytes
        let head: [UInt8] = [0x0A, UInt8(outcome.count & 0x7F) | 0x80, UInt8(outcome.count >> 7)]
        try agree(head + outcome, count: 1, "\(name), in an outcome")
    }

    @Test(arguments: 0..<200 as Range<UInt64>)
    func `torn and spoiled bytes are read as generated code reads them`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<20 {
            let outcomes = try (0..<3).map { _ in try Self.outcome(&generator) }
            var bytes = try CommitReply.body(outcomes, position: Self.position)
            for _ in 0..<Int.random(in: 1...3, using: &generator) {
                guard !bytes.isEmpty else { break }
                let place = Int.random(in: 0..<min(bytes.count, 600), using: &generator)
                switch Int.random(in: 0..<4, using: &generator) {
                case 0: bytes[place] = .random(in: 0...255, using: &generator)
                case 1: bytes.remove(at: place)
                case 2: bytes.insert(.random(in: 0...255, using: &generator), at: place)
                default: bytes.removeSubrange(place..<bytes.count)
                }
            }
            try agree(bytes, count: outcomes.count)
        }
    }
}
