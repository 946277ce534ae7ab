/// The bytes of a `[…]` in a pattern: single ones, ranges, and POSIX classes, all of ASCII whatever the locale.
struct IgnoreByteSet: Hashable, Sendable {
    private var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)

    /// - Parameter index: of the bracket; then of what follows the closing one.
    /// - Returns: `nil` if there is none, or a class has no known name.
    init?(_ pattern: [UInt8], at index: inout Int) {
        var next = index + 1
        func byte(_ offset: Int = 0) -> UInt8? { next + offset < pattern.count ? pattern[next + offset] : nil }
        let isNegated = byte() == UInt8(ascii: "!") || byte() == UInt8(ascii: "^")
        if isNegated { next += 1 }
        // Where a range may begin.
        var previous: UInt8?
        // A closing bracket that comes first is one of the bytes.
        repeat {
            guard var first = byte() else { return nil }
            if first == UInt8(ascii: "-"), let start = previous, let end = byte(1), end != UInt8(ascii: "]") {
                next += 1
                guard let end = Self.literal(pattern, at: &next) else { return nil }
                if start <= end { for byte in start...end { insert(byte) } }
                previous = nil
                continue
            }
            if first == UInt8(ascii: "["), byte(1) == UInt8(ascii: ":") {
                guard let close = pattern[(next + 2)...].firstIndex(of: UInt8(ascii: "]")) else { return nil }
                if close > next + 2, pattern[close - 1] == UInt8(ascii: ":") {
                    guard insertClass(pattern[(next + 2)..<(close - 1)]) else { return nil }
                    next = close + 1
                    previous = nil
                    continue
                }
            }
            guard let literal = Self.literal(pattern, at: &next) else { return nil }
            first = literal
            insert(first)
            previous = first
        } while byte() != UInt8(ascii: "]")
        if isNegated { words = (~words.0, ~words.1, ~words.2, ~words.3) }
        index = next + 1
    }

    /// The byte there, or the one that a backslash there protects.
    private static func literal(_ pattern: [UInt8], at next: inout Int) -> UInt8? {
        if next < pattern.count, pattern[next] == UInt8(ascii: "\\") { next += 1 }
        guard next < pattern.count else { return nil }
        defer { next += 1 }
        return pattern[next]
    }

    func contains(_ byte: UInt8) -> Bool {
        let bit = UInt64(1) << UInt64(byte & 63)
        return switch byte >> 6 {
        case 0: words.0 & bit != 0
        case 1: words.1 & bit != 0
        case 2: words.2 & bit != 0
        default: words.3 & bit != 0
        }
    }

    private mutating func insert(_ byte: UInt8) {
        let bit = UInt64(1) << UInt64(byte & 63)
        switch byte >> 6 {
        case 0: words.0 |= bit
        case 1: words.1 |= bit
        case 2: words.2 |= bit
        default: words.3 |= bit
        }
    }

    private mutating func insertClass(_ name: ArraySlice<UInt8>) -> Bool {
        guard let ranges = Self.classes[String(decoding: name, as: UTF8.self)] else { return false }
        for range in ranges { for byte in range { insert(byte) } }
        return true
    }

    private static let lower = UInt8(ascii: "a")...UInt8(ascii: "z")
    private static let upper = UInt8(ascii: "A")...UInt8(ascii: "Z")
    private static let digits = UInt8(ascii: "0")...UInt8(ascii: "9")

    /// As git has them: a vertical tab and a form feed are no spaces.
    private static let classes: [String: [ClosedRange<UInt8>]] = [
        "alnum": [lower, upper, digits],
        "alpha": [lower, upper],
        "blank": [32...32, 9...9],
        "cntrl": [0...31, 127...127],
        "digit": [digits],
        "graph": [33...126],
        "lower": [lower],
        "print": [32...126],
        "punct": [33...47, 58...64, 91...96, 123...126],
        "space": [32...32, 9...10, 13...13],
        "upper": [upper],
        "xdigit": [digits, UInt8(ascii: "a")...UInt8(ascii: "f"), UInt8(ascii: "A")...UInt8(ascii: "F")],
    ]

    static func == (left: Self, right: Self) -> Bool { left.words == right.words }

    func hash(into hasher: inout Hasher) {
        hasher.combine(words.0)
        hasher.combine(words.1)
        hasher.combine(words.2)
        hasher.combine(words.3)
    }
}
