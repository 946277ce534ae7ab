import Testing
import UbiquityControl
import UbiquityModel

@Suite struct TextTests {
    @Test(
        arguments: [
            (0, "1970-01-01T00:00:00.000Z"), (1_795_255_302_123_999_999, "2026-11-21T10:01:42.123Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
        ] as [(Int64, String)]
    )
    func `times are written in UTC with milliseconds`(nanoseconds: Int64, text: String) {
        #expect(Timestamp(nanoseconds: nanoseconds).text == text)
    }

    @Test(
        arguments: [
            (0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (1536, "1.5 KiB"), (1 << 30, "1 GiB"), (20 << 30, "20 GiB"),
        ] as [(Int64, String)]
    )
    func `sizes are written for people`(bytes: Int64, text: String) {
        #expect(ByteCount.text(bytes) == text)
    }

    @Test(
        arguments: [
            ("0", 0), ("4096", 4096), ("1K", 1024), ("1.5 KiB", 1536), ("20G", 20 << 30), ("3mb", 3 << 20),
            ("1TiB", 1 << 40),
        ] as [(String, Int64)]
    )
    func `sizes are read as people write them`(text: String, bytes: Int64) {
        #expect(ByteCount.parse(text) == bytes)
    }

    @Test(arguments: ["", "G", "-1", "1X", "1 GG", "1e5", "99999999P"])
    func `what is no size is none`(text: String) {
        #expect(ByteCount.parse(text) == nil)
    }
}
