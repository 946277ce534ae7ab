internal import CloudClient
internal import UbiquityControl

/// Times as people write them: `45s`, `2m`, `1h`, `60d`; a number alone means seconds.
package enum TimeSpan {
    private static let units: [(suffix: String, seconds: Int64)] = [("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)]

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
    package static func text(_ span: Duration) -> String {
        let seconds = span.components.seconds
        let unit = units.first { seconds != 0 && seconds % $0.seconds == 0 } ?? ("s", 1)
        return "\(seconds / unit.seconds)\(unit.suffix)"
    }
}

/// Sizes as people write them: `20G`.
enum ByteSize {
    /// In the largest unit that leaves no rest; `off` for none.
    static func text(_ bytes: Int64?) -> String {
        guard let bytes else { return "off" }
        let units: [(suffix: String, bytes: Int64)] = [("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)]
        let unit = units.first { bytes % $0.bytes == 0 } ?? ("", 1)
        return "\(bytes / unit.bytes)\(unit.suffix)"
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
    var text: String { up == down ? ByteSize.text(up) : "\(ByteSize.text(up))/\(ByteSize.text(down))" }
}
