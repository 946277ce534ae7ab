import Testing

@testable import DeviceService

@Suite struct PatienceTests {
    @Test(
        arguments: [
            (nil, 30), ("5", 5), ("", 30), ("0", 30), ("-1", 30), ("x", 30), ("9223372036854775807", 604_800),
            ("9223372036854775808", 30),
        ] as [(String?, Int)]
    )
    func `patience has an end, whatever the environment says`(text: String?, seconds: Int) {
        #expect(Patience.limit(saidBy: text) == .seconds(seconds))
    }
}
