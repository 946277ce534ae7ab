/// A decoder, what it is given, and what must hold whatever it is given.
struct FuzzTarget: Sendable {
    let name: String
    /// How many times as long one input takes as one of the wire: so many times fewer are tried.
    let cost: Int
    let mutation: Mutation
    /// A valid encoding.
    let sample: @Sendable (inout Arbitrary) async throws -> [UInt8]
    /// Decodes. Returns whether the input was accepted; the decoder's own errors are refusals, and caught in here.
    /// - Throws: `FuzzFailure` where a promise is broken.
    let check: @Sendable ([UInt8]) async throws -> Bool

    init(
        _ name: String,
        cost: Int = 1,
        words: [String] = [],
        sample: @escaping @Sendable (inout Arbitrary) async throws -> [UInt8],
        check: @escaping @Sendable ([UInt8]) async throws -> Bool
    ) {
        self.name = name
        self.cost = cost
        mutation = Mutation(words: words)
        self.sample = sample
        self.check = check
    }

    /// The input of a seed: the same in every run.
    func input(_ seed: UInt64) async throws -> [UInt8] {
        // Each decoder has its own, so that one that is added changes nothing for the others.
        let own = name.utf8.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
        var arbitrary = Arbitrary(seed: own &+ seed &* 0x9E37_79B9_7F4A_7C15)
        return try await mutation.input(&arbitrary, sample: sample)
    }

    static let all = wire + commits + frames + text + database + files + control
}

/// A promise that a decoder broke.
struct FuzzFailure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

/// What a decoder made of an input, if it did not refuse it. Only errors of this type are refusals.
func accepted<Value, Refusal: Error>(_ type: Refusal.Type, _ body: () throws(Refusal) -> Value) -> Value? {
    do throws(Refusal) { return try body() } catch { return nil }
}

func promise(_ holds: Bool, _ what: @autoclosure () -> String) throws {
    guard holds else { throw FuzzFailure(what()) }
}
