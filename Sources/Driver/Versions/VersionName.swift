import UbiquityModel

/// What a version is called under `.versions/PATH/`: `2026-11-21T10:15:02.123Z DEVICE conflict.EXT`.
enum VersionName {
    /// The names of an item's versions, in the same order, no two alike.
    static func names(of versions: [ItemVersion]) -> [Name] {
        var taken = Set<Name>()
        return versions.map { version in
            let first = name(of: version)
            var name = first
            var number = 2
            while !taken.insert(name).inserted {
                name = first.numbered(number)
                number += 1
            }
            return name
        }
    }

    private static func name(of version: ItemVersion) -> Name {
        let device = version.device.utf8.prefix(100).map { $0 == UInt8(ascii: "/") || $0 == 0 ? UInt8(ascii: "-") : $0 }
        let kind =
            switch version.kind {
            case .current: "current"
            case .conflict: "conflict"
            case .saved: "saved"
            }
        var bytes = Array((moment(version.edited) + " ").utf8) + device + Array((" " + kind).utf8)
        bytes += fileExtension(of: version.name)
        // Neither part holds "/" or NUL, and together they have at most 24 + 1 + 100 + 9 + 32 bytes.
        return (try? Name(bytes: bytes)) ?? version.name
    }

    /// With its dot; empty if there is none, or one so long that it is none.
    private static func fileExtension(of name: Name) -> ArraySlice<UInt8> {
        guard let dot = name.bytes.lastIndex(of: UInt8(ascii: ".")), dot > 0, name.bytes.count - dot <= 32 else {
            return []
        }
        return name.bytes[dot...]
    }

    /// ISO 8601 in UTC, to the millisecond.
    static func moment(_ time: Timestamp) -> String {
        let (seconds, nanoseconds) = time.parts
        let days = seconds >= 0 ? seconds / 86400 : (seconds - 86399) / 86400
        let second = seconds - days * 86400
        let date = civil(days)
        return padded(date.year, 4) + "-" + padded(date.month, 2) + "-" + padded(date.day, 2) + "T"
            + padded(second / 3600, 2) + ":"
            + padded(second / 60 % 60, 2) + ":" + padded(second % 60, 2) + "." + padded(nanoseconds / 1_000_000, 3)
            + "Z"
    }

    /// The Gregorian date of a day counted from 1970-01-01: years begin in March, so that leap days come last, and come in groups of 400.
    private static func civil(_ days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
    }

    private static func padded(_ number: Int64, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
}
