import CloudProtocol
import Testing
import UbiquityModel

@Suite struct FramingTests {
    private let messages: [[UInt8]] = [[1], [], [2, 3, 4], [UInt8](repeating: 9, count: 1000)]

    @Test(arguments: [1, 2, 3, 4, 5, 7, 64, 4096])
    func `messages come out whole, however the stream is cut`(piece: Int) throws {
        let stream = messages.flatMap { LengthPrefix.encode($0) }
        var decoder = LengthPrefixedDecoder(limit: 1000)
        var result = [[UInt8]]()
        for start in stride(from: 0, to: stream.count, by: piece) {
            decoder.append(stream[start..<min(start + piece, stream.count)])
            while let message = try decoder.next() { result.append(message) }
        }
        try decoder.finish()
        #expect(result == messages)
    }

    @Test func `every truncation is noticed`() throws {
        let stream = LengthPrefix.encode([1, 2, 3])
        for length in 1..<stream.count {
            var decoder = LengthPrefixedDecoder(limit: 10)
            decoder.append(stream.prefix(length))
            #expect(try decoder.next() == nil)
            #expect(throws: WireError.truncated) { try decoder.finish() }
        }
        try LengthPrefixedDecoder(limit: 10).finish()
    }

    @Test func `a length beyond the limit is refused before its bytes come`() throws {
        var decoder = LengthPrefixedDecoder(limit: 10)
        decoder.append([0, 0, 0, 11])
        #expect(throws: WireError.tooLong("a message", bytes: 11, limit: 10)) { try decoder.next() }
        decoder = LengthPrefixedDecoder(limit: 10)
        decoder.append([0xFF, 0xFF, 0xFF, 0xFF])
        #expect(throws: WireError.self) { try decoder.next() }
    }

    @Test func `a long stream does not pile up`() throws {
        var decoder = LengthPrefixedDecoder(limit: 1000)
        let message = LengthPrefix.encode([UInt8](repeating: 1, count: 1000))
        // Pieces that never end where a message ends.
        var rest = message.dropFirst(0)
        for _ in 0..<1000 {
            decoder.append(rest)
            decoder.append(message.prefix(10))
            rest = message.dropFirst(10)
            while try decoder.next() != nil {}
            #expect(decoder.heldBytes < 4096)
        }
    }
}

@Suite struct RouteTests {
    @Test func `a token travels as hexadecimal digits`() {
        let token: [UInt8] = [0, 1, 254, 255]
        #expect(CloudHeader.bearer(token) == "Bearer 0001feff")
        #expect(CloudHeader.token(authorization: CloudHeader.bearer(token)) == token)
    }

    @Test(arguments: ["", "Bearer", "Bearer 0", "Basic 00", "Bearer 0g"])
    func `what is no token is none`(header: String) {
        #expect(CloudHeader.token(authorization: header) == nil)
    }

    @Test func `paths and templates agree`() {
        for verb in CloudRoute.Verb.allCases {
            let template = CloudRoute.template(verb)
            let path = CloudRoute.path(.documents, verb)
            #expect(template.replacing(":\(CloudRoute.containerParameter)", with: "Documents") == path)
        }
    }

    @Test(arguments: FailureCode.allCases)
    func `every failure has a status of an error`(code: FailureCode) {
        #expect((400..<600).contains(code.status))
    }
}
