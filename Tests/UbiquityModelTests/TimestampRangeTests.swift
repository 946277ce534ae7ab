import Testing
import UbiquityModel

@Suite struct TimestampRangeTests {
    @Test(arguments: [.min, .min + 1, -1_000_000_001, -1, 0, 1, .max - 1, .max] as [Int64])
    func `a time is the same again from its parts`(nanoseconds: Int64) {
        let time = Timestamp(nanoseconds: nanoseconds)
        let (seconds, rest) = time.parts
        #expect(Timestamp(seconds: seconds, nanoseconds: rest) == time)
    }

    @Test(
        arguments: [(.min, Int64.min), (-9_223_372_038, .min), (9_223_372_037, .max), (.max, .max)] as [(Int64, Int64)]
    )
    func `a time out of range is the nearest in it`(seconds: Int64, nanoseconds: Int64) {
        #expect(Timestamp(seconds: seconds, nanoseconds: 0).nanoseconds == nanoseconds)
    }

    @Test(
        arguments: [
            (0, 5, .nanoseconds(5)), (5, 0, .zero), (5, 5, .zero), (.min, .max, .nanoseconds(Int64.max)),
            (.max, .min, .zero),
            (.min, 1_800_000_000_000_000_000, .nanoseconds(Int64.max)),
        ] as [(Int64, Int64, Duration)]
    )
    func `files are of any age`(modified: Int64, now: Int64, age: Duration) {
        #expect(Timestamp(nanoseconds: modified).age(at: Timestamp(nanoseconds: now)) == age)
    }
}
