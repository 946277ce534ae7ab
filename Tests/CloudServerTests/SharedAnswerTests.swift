import TestSupport
import Testing

@testable import CloudServer

@Suite struct SharedAnswerTests {
    private let shared = SharedAnswer<Int, String>()

    private func ask(_ question: Int, _ own: String, fits: Bool = true) async throws -> String {
        try await shared.answer(to: question) {
            own
        } fits: { _ in
            fits
        }
    }

    /// Asks while another answer to the same question is being made.
    private func ask(
        _ question: Int,
        _ own: String,
        whileMaking make: @Sendable () async throws -> String
    ) async throws -> (made: Result<String, any Error>, got: String) {
        let (isMaking, signal) = AsyncStream<Void>.makeStream()
        async let got = later(question, own, isMaking)
        let made: Result<String, any Error>
        do {
            made = .success(
                try await shared.answer(to: question) {
                    signal.yield()
                    return try await make()
                } fits: { _ in
                    true
                }
            )
        } catch {
            made = .failure(error)
        }
        return (made, try await got)
    }

    private func later(_ question: Int, _ own: String, _ signal: AsyncStream<Void>) async throws -> String {
        var iterator = signal.makeAsyncIterator()
        _ = await iterator.next()
        return try await ask(question, own)
    }

    @Test(.timeLimit(.minutes(1))) func `who asks the same gets the same, until something else is asked`() async throws
    {
        let both = try await ask(1, "other") { "first" }
        #expect(try both.made.get() == "first" && both.got == "first")
        #expect(try await ask(1, "third") == "first")
        #expect(try await ask(2, "second") == "second")
        #expect(try await ask(1, "third") == "third")
    }

    @Test(.timeLimit(.minutes(1))) func `what fails or does not fit is nobody else's`() async throws {
        let both = try await ask(1, "own") { throw TestFailure("revoked") }
        #expect(throws: TestFailure.self) { try both.made.get() }
        #expect(both.got == "own")
        #expect(try await ask(2, "newer", fits: false) == "newer")
        #expect(try await ask(2, "own") == "own")
    }

    @Test(.timeLimit(.minutes(1))) func `another question waits for nobody`() async throws {
        let made = try await shared.answer(to: 1) {
            try await ask(2, "second") + " within the first"
        } fits: { _ in
            true
        }
        #expect(made == "second within the first")
        #expect(try await ask(2, "again") == "again")
    }
}
