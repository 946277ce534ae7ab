/// Sizes as people write and read them.
package enum ByteCount {
    private static let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]

    /// `0 B`, `999 B`, `1.5 KiB`, `20 GiB`.
    package static func text(_ bytes: Int64) -> String {
        var value = Double(max(0, bytes))
        var unit = 0
        while value >= 1024, unit < units.count - 1 {
            value /= 1024
            unit += 1
        }
        if unit == 0 { return "\(bytes) B" }
        let tenths = Int((value * 10).rounded())
        return value < 10 && tenths % 10 != 0
            ? "\(tenths / 10).\(tenths % 10) \(units[unit])" : "\(Int(value.rounded())) \(units[unit])"
    }

    /// `20G`, `1.5GiB`, `500 MB`, `4096`: units are powers of 1024. `nil` for anything else.
    package static func parse(_ text: String) -> Int64? {
        let digits = text.prefix { $0.isNumber || $0 == "." }
        guard let number = Double(digits), number >= 0 else { return nil }
        var suffix = text.dropFirst(digits.count).filter { !$0.isWhitespace }.uppercased()
        if suffix.hasSuffix("IB") { suffix.removeLast(2) } else if suffix.hasSuffix("B") { suffix.removeLast() }
        let exponents = ["": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5]
        guard let exponent = exponents[suffix] else { return nil }
        var value = number
        for _ in 0..<exponent { value *= 1024 }
        return value < Double(Int64.max) ? Int64(value) : nil
    }
}
