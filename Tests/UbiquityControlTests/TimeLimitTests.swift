import Testing
import UbiquityControl

@Suite struct TimeLimitTests {
    @Test func `a time limit is a number of seconds, or none`() throws {
        #expect(try TimeLimit.duration(seconds: nil) == nil)
        #expect(try TimeLimit.duration(seconds: 0) == .zero)
        #expect(try TimeLimit.duration(seconds: 1.5) == .milliseconds(1500))
    }

    @Test(arguments: [-1, 1e9, 1e19, 1e300, .infinity, .nan] as [Double])
    func `what nobody waits is refused`(seconds: Double) {
        let error = #expect(throws: ControlError.self) { try TimeLimit.duration(seconds: seconds) }
        #expect(error?.status == .usage)
    }
}
