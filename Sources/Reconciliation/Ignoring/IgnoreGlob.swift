/// A pattern with wildcards, as git's `wildmatch` takes it (gitignore(5)): `*`, `?`, `[…]` and, in patterns of paths, `**`.
///
/// The time is that of the pattern's length times the text's at most: nothing is tried again.
struct IgnoreGlob: Hashable, Sendable {
    private enum Token: Hashable, Sendable {
        case literal(UInt8)
        /// Any byte but a slash.
        case any
        case set(IgnoreByteSet)
        /// Any bytes but slashes.
        case star
        /// Anything.
        case everything
        /// `**/`: nothing, or anything that ends in a slash.
        case folders
    }

    private let tokens: [Token]
    /// Bytes that what matches has at least.
    private let shortest: Int

    /// - Parameter ofPath: whether a slash is no byte like others. (Names have none.)
    /// - Returns: `nil` for what never matches: a set without an end, a backslash at the end.
    init?(_ pattern: some Collection<UInt8>, ofPath: Bool) {
        let bytes = Array(pattern)
        var tokens: [Token] = []
        var index = 0
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "\\"):
                guard index + 1 < bytes.count else { return nil }
                tokens.append(.literal(bytes[index + 1]))
                index += 2
            case UInt8(ascii: "?"):
                tokens.append(.any)
                index += 1
            case UInt8(ascii: "["):
                guard let set = IgnoreByteSet(bytes, at: &index) else { return nil }
                tokens.append(.set(set))
            case UInt8(ascii: "*"):
                tokens.append(Self.stars(bytes, at: &index, ofPath))
            default:
                tokens.append(.literal(bytes[index]))
                index += 1
            }
        }
        self.tokens = tokens
        shortest = tokens.count { token in
            switch token {
            case .literal, .any, .set: true
            case .star, .everything, .folders: false
            }
        }
    }

    /// Two or more have a meaning of their own only as a whole component of a path.
    private static func stars(_ bytes: [UInt8], at index: inout Int, _ ofPath: Bool) -> Token {
        let start = index
        while index < bytes.count, bytes[index] == UInt8(ascii: "*") { index += 1 }
        guard ofPath, index - start > 1, start == 0 || bytes[start - 1] == UInt8(ascii: "/") else { return .star }
        if index == bytes.count { return .everything }
        if bytes[index] == UInt8(ascii: "/") {
            index += 1
            return .folders
        }
        let isEscapedSlash = bytes[index...].starts(with: "\\/".utf8)
        return isEscapedSlash ? .everything : .star
    }

    func matches(_ text: ArraySlice<UInt8>) -> Bool {
        guard text.count >= shortest else { return false }
        // Up to where the tokens so far may reach: the bytes before each of these positions.
        var reached = [Bool](repeating: false, count: text.count + 1)
        reached[0] = true
        for token in tokens {
            guard Self.advance(&reached, over: token, text) else { return false }
        }
        return reached[text.count]
    }

    /// - Returns: whether anything is left.
    private static func advance(_ reached: inout [Bool], over token: Token, _ text: ArraySlice<UInt8>) -> Bool {
        let slash = UInt8(ascii: "/")
        switch token {
        case .literal(let byte): step(&reached, text) { $0 == byte }
        case .any: step(&reached, text) { $0 != slash }
        case .set(let set): step(&reached, text) { $0 != slash && set.contains($0) }
        case .star:
            for (index, byte) in text.enumerated() where reached[index] && byte != slash { reached[index + 1] = true }
        case .everything:
            guard let first = reached.firstIndex(of: true) else { return false }
            for position in first..<reached.count { reached[position] = true }
        case .folders:
            guard let first = reached.firstIndex(of: true) else { return false }
            for (index, byte) in text.enumerated().dropFirst(first) where byte == slash { reached[index + 1] = true }
        }
        return reached.contains(true)
    }

    private static func step(_ reached: inout [Bool], _ text: ArraySlice<UInt8>, _ fits: (UInt8) -> Bool) {
        for position in stride(from: text.count, to: 0, by: -1) {
            reached[position] = reached[position - 1] && fits(text[text.startIndex + position - 1])
        }
        reached[0] = false
    }
}
