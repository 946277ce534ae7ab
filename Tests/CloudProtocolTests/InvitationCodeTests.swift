import CloudProtocol
import Testing

@Suite struct InvitationCodeTests {
    static let secret: [UInt8] = [0, 1, 2, 3, 127, 128, 200, 253, 254, 255]
    static let fingerprint = (0..<32).map { UInt8($0 * 7) }

    static func codes() throws -> [InvitationCode] {
        [
            try #require(InvitationCode(secret: secret, fingerprint: nil)),
            try #require(InvitationCode(secret: secret, fingerprint: fingerprint)),
            try #require(InvitationCode(fingerprint: nil)), try #require(InvitationCode(fingerprint: fingerprint)),
        ]
    }

    @Test(arguments: try codes())
    func `a code comes back as it was printed, and as people type it`(code: InvitationCode) throws {
        #expect(try InvitationCode(parsing: code.text) == code)
        #expect(try InvitationCode(parsing: code.text.lowercased()) == code)
        #expect(try InvitationCode(parsing: " " + code.text.replacing("-", with: " ") + "\n") == code)
        #expect(try InvitationCode(parsing: code.text.replacing("-", with: "")) == code)
        let lookalikes = code.text.replacing("0", with: "O").replacing("1", with: "l")
        #expect(try InvitationCode(parsing: lookalikes) == code)
    }

    @Test func `groups of five`() throws {
        let groups = try Self.codes()[0].text.split(separator: "-")
        #expect(groups.dropLast().allSatisfy { $0.count == 5 })
        #expect(groups.count == 5)
    }

    @Test(arguments: try codes())
    func `every single mistyped symbol is noticed`(code: InvitationCode) {
        let alphabet = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ")
        let symbols = Array(code.text)
        for index in symbols.indices where symbols[index] != "-" {
            for other in alphabet where other != symbols[index] {
                var mistyped = symbols
                mistyped[index] = other
                #expect(throws: InvitationCodeError.self) { try InvitationCode(parsing: String(mistyped)) }
            }
        }
    }

    @Test func `exchanged neighbours are noticed`() throws {
        let symbols = Array(try Self.codes()[1].text.replacing("-", with: ""))
        for index in symbols.indices.dropLast() where symbols[index] != symbols[index + 1] {
            var mistyped = symbols
            mistyped.swapAt(index, index + 1)
            #expect(throws: InvitationCodeError.self) { try InvitationCode(parsing: String(mistyped)) }
        }
    }

    @Test(arguments: [
        ("", InvitationCodeError.empty), ("  --", .empty), ("ABU", .badSymbol("U")), ("AB€", .badSymbol("€")),
        ("00", .wrongLength),
    ])
    func `what is wrong is said`(text: String, error: InvitationCodeError) {
        #expect(throws: error) { try InvitationCode(parsing: text) }
    }

    @Test func `an incomplete code is noticed`() throws {
        let text = try Self.codes()[1].text
        for length in 1..<text.count - 1 {
            #expect(throws: InvitationCodeError.self) { try InvitationCode(parsing: String(text.prefix(length))) }
        }
    }

    @Test func `wrong lengths make no code`() {
        #expect(InvitationCode(secret: [1], fingerprint: nil) == nil)
        #expect(InvitationCode(secret: Self.secret, fingerprint: [1]) == nil)
    }
}
