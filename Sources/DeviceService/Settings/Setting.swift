package import UbiquityControl

/// What a person can set for this device (`ubiquity config`).
package enum Setting: String, Sendable, CaseIterable {
    /// How long an open waits for another's explicit claim; then it is EBUSY.
    case claimLimit = "claim-limit"

    package var meaning: String {
        switch self {
        case .claimLimit: "how long opening a file waits for another's claim"
        }
    }

    /// - Throws: usage, for a name that there is not.
    package init(named name: String) throws(ControlError) {
        guard let setting = Setting(rawValue: name) else {
            throw ControlError(.usage, name, "there is no such setting", remedy: "`ubiquity config list` shows all")
        }
        self = setting
    }
}

/// The values of all settings, as they are in force.
package struct Settings: Sendable, Hashable {
    package var claimLimit = Patience.limit

    package init() {}

    /// As `set` takes it.
    package subscript(setting: Setting) -> String {
        switch setting {
        case .claimLimit: TimeSpan.text(claimLimit)
        }
    }

    /// - Throws: usage, with the values that there are; nothing is changed then.
    package mutating func set(_ setting: Setting, to text: String) throws(ControlError) {
        switch setting {
        case .claimLimit:
            guard let span = TimeSpan.parse(text), span <= Self.longestClaimLimit else {
                throw Self.error(setting, text, "a time from 0 to 1h is needed, such as 45s or 2m")
            }
            claimLimit = span
        }
    }

    /// Programs that wait longer look hung.
    private static let longestClaimLimit = Duration.seconds(3600)

    private static func error(_ setting: Setting, _ text: String, _ wanted: String) -> ControlError {
        ControlError(.usage, setting.rawValue, "it cannot be \"\(text)\"", remedy: wanted)
    }
}

/// Times as people write them: `45s`, `2m`, `1h`; a number alone means seconds.
enum TimeSpan {
    private static let units: [(suffix: String, seconds: Int64)] = [("h", 3600), ("m", 60), ("s", 1)]

    static func parse(_ text: String) -> Duration? {
        let unit = units.first { text.hasSuffix($0.suffix) }
        let digits = text.dropLast(unit == nil ? 0 : 1)
        guard !digits.isEmpty, digits.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }),
            let number = Int64(digits)
        else { return nil }
        let (seconds, isTooLong) = number.multipliedReportingOverflow(by: unit?.seconds ?? 1)
        return isTooLong ? nil : .seconds(seconds)
    }

    /// In the largest unit that leaves no rest.
    static func text(_ span: Duration) -> String {
        let seconds = span.components.seconds
        let unit = units.first { seconds != 0 && seconds % $0.seconds == 0 } ?? ("s", 1)
        return "\(seconds / unit.seconds)\(unit.suffix)"
    }
}
