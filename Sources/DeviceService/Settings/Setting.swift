package import CloudClient
package import UbiquityControl

/// What a person can set for this device (`ubiquity config`).
package enum Setting: String, Sendable, CaseIterable {
    /// How long an open waits for another's explicit claim; then it is EBUSY.
    case claimLimit = "claim-limit"
    /// How many bytes a second travel at most.
    case bandwidth
    /// Whether what travels costs.
    case metered

    package var meaning: String {
        switch self {
        case .claimLimit: "how long opening a file waits for another's claim"
        case .bandwidth: "how much of the link is taken: a second's bytes up/down"
        case .metered: "whether traffic costs: nothing is fetched ahead then"
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
    package var bandwidth = BandwidthLimits()
    package var isMetered = false

    package init() {}

    /// As `set` takes it.
    package subscript(setting: Setting) -> String {
        switch setting {
        case .claimLimit: TimeSpan.text(claimLimit)
        case .bandwidth: bandwidth.text
        case .metered: isMetered ? "on" : "off"
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
        case .bandwidth:
            guard let limits = BandwidthLimits(text: text) else {
                let wanted =
                    "a rate from 64K on is needed, such as 2M, one for each direction, such as 1M/10M or off/10M, or off"
                throw Self.error(setting, text, wanted)
            }
            bandwidth = limits
        case .metered:
            guard ["on", "off"].contains(text) else { throw Self.error(setting, text, "on or off is needed") }
            isMetered = text == "on"
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

extension BandwidthLimits {
    /// Slower ones would look like a server that does not answer.
    private static let least: Int64 = 64 * 1024

    /// `off`; `2M`: so much in either direction; `1M/10M`, `off/10M`: up and down. Units are powers of 1024.
    init?(text: String) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard (1...2).contains(parts.count) else { return nil }
        var rates: [Int64?] = []
        for part in parts {
            guard part != "off" else {
                rates.append(nil)
                continue
            }
            guard let rate = ByteCount.parse(String(part)), rate >= Self.least else { return nil }
            rates.append(rate)
        }
        self.init(up: rates[0], down: rates[rates.count - 1])
    }

    /// As `init` takes it.
    var text: String { up == down ? Self.text(up) : "\(Self.text(up))/\(Self.text(down))" }

    /// In the largest unit that leaves no rest.
    private static func text(_ rate: Int64?) -> String {
        guard let rate else { return "off" }
        let units: [(suffix: String, bytes: Int64)] = [("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)]
        let unit = units.first { rate % $0.bytes == 0 } ?? ("", 1)
        return "\(rate / unit.bytes)\(unit.suffix)"
    }
}
