import Testing
import UbiquityControl

@Suite struct ControlMessageTests {
    @Test func `a request says its version and verb, in an order that does not change`() throws {
        let bytes = try ControlCoding.encode(RequestEnvelope(SyncRequest(timeoutSeconds: 2.5)))
        #expect(String(decoding: bytes, as: UTF8.self) == #"{"arguments":{"timeoutSeconds":2.5},"v":1,"verb":"sync"}"#)
        #expect(try ControlCoding.decode(RequestHead.self, from: bytes).verb == "sync")
    }

    @Test func `unknown keys are ignored`() throws {
        let line = Array(#"{"v":1,"verb":"sync","arguments":{"later":true},"more":[1]}"#.utf8)
        let request = try ControlCoding.decode(RequestEnvelope<SyncRequest>.self, from: line)
        #expect(request.arguments.timeoutSeconds == nil)
    }

    @Test func `a message never spans lines`() throws {
        let error = ControlError("a\nb", "c\r\nd", remedy: "e")
        let bytes = try ControlCoding.encode(ErrorReply(error))
        #expect(!bytes.contains(UInt8(ascii: "\n")))
        #expect(try ControlCoding.decode(ErrorReply.self, from: bytes).error == error)
        #expect(error.description == "a b: c d; e")
    }

    @Test(arguments: ["", "no JSON", "{}", #"{"v":1}"#, #"{"v":"1","verb":2}"#, #"{"v":-1,"verb":"sync"}"#])
    func `what is no request is an error in one line`(text: String) {
        let error = #expect(throws: ControlError.self) {
            try ControlCoding.decode(RequestHead.self, from: Array(text.utf8))
        }
        #expect(error?.why.contains("\n") == false)
    }

    @Test(arguments: [Array("/a/ü".utf8), [0x2F, 0xFF, 0xFE], [], [0x2F, 0x22, 0x5C, 0x0A]])
    func `paths keep their bytes`(bytes: [UInt8]) throws {
        let path = ControlPath(bytes: bytes)
        let encoded = try ControlCoding.encode(PathOutcome(path, Nothing()))
        #expect(try ControlCoding.decode(PathOutcome<Nothing>.self, from: encoded).path == path)
    }

    @Test func `a path is relative to what encloses it only`() {
        let mount = ControlPath("/home/a/Ubiquity")
        #expect(ControlPath("/home/a/Ubiquity").relative(to: mount)?.isEmpty == true)
        #expect(ControlPath("/home/a/Ubiquity/x/y").relative(to: mount) == [Array("x".utf8), Array("y".utf8)])
        #expect(ControlPath("/home/a/Ubiquity2/x").relative(to: mount) == nil)
        #expect(ControlPath("/home/a").relative(to: mount) == nil)
    }

    struct Combination: Sendable {
        let outcomes: [UbiquityControl.ExitStatus]
        let result: UbiquityControl.ExitStatus
    }

    @Test(arguments: [
        Combination(outcomes: [], result: .done),
        Combination(outcomes: [.done, .done], result: .done),
        Combination(outcomes: [.done, .failed], result: .partlyDone),
        Combination(outcomes: [.tryAgain, .done], result: .partlyDone),
        Combination(outcomes: [.tryAgain, .tryAgain], result: .tryAgain),
        Combination(outcomes: [.tryAgain, .failed], result: .failed),
        Combination(outcomes: [.partlyDone, .failed], result: .partlyDone),
        Combination(outcomes: [.failed], result: .failed),
    ])
    func `several outcomes make one exit code`(combination: Combination) {
        #expect(UbiquityControl.ExitStatus.combining(combination.outcomes) == combination.result)
    }
}
