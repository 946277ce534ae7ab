internal import Glibc
package import UbiquityModel

extension Timestamp {
    /// `2026-11-21T10:15:02.123Z`: how `--json` and `.versions` write times.
    package var text: String {
        let (seconds, nanoseconds) = parts
        var time = time_t(seconds)
        var fields = tm()
        gmtime_r(&time, &fields)
        let date =
            "\(padded(Int(fields.tm_year) + 1900, 4))-\(padded(Int(fields.tm_mon) + 1, 2))-\(padded(Int(fields.tm_mday), 2))"
        return "\(date)T\(clock(fields)).\(padded(Int(nanoseconds / 1_000_000), 3))Z"
    }

    /// `2026-11-21 11:15:02` in the caller's time zone, for people.
    package var localText: String {
        var time = time_t(parts.seconds)
        var fields = tm()
        localtime_r(&time, &fields)
        let date =
            "\(padded(Int(fields.tm_year) + 1900, 4))-\(padded(Int(fields.tm_mon) + 1, 2))-\(padded(Int(fields.tm_mday), 2))"
        return "\(date) \(clock(fields))"
    }

    package static func now() -> Timestamp {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Timestamp(seconds: Int64(time.tv_sec), nanoseconds: Int64(time.tv_nsec))
    }

    private func clock(_ fields: tm) -> String {
        "\(padded(Int(fields.tm_hour), 2)):\(padded(Int(fields.tm_min), 2)):\(padded(Int(fields.tm_sec), 2))"
    }

    private func padded(_ value: Int, _ width: Int) -> String {
        let digits = String(value)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
}
