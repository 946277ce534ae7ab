/// One line of a `.ubiquityignore`, in the grammar of gitignore(5).
struct IgnorePattern: Hashable, Sendable {
    /// As it stands in the file, for people.
    let text: [UInt8]
    /// From 1.
    let line: Int
    /// Takes back what patterns before it say.
    let isNegated: Bool
    private let isForFoldersOnly: Bool
    private let shape: Shape

    private enum Shape: Hashable, Sendable {
        /// Of a name, in whatever folder below.
        case name([UInt8])
        case nameEnding([UInt8])
        case nameLike(IgnoreGlob)
        /// Of a path from the file's folder: how it begins, and the rest of it.
        case path([UInt8], IgnoreGlob?)
        case nothing
    }

    /// - Parameter raw: the line without its end.
    /// - Returns: `nil` for an empty line and for a comment.
    init?(_ raw: ArraySlice<UInt8>, line: Int) {
        guard let first = raw.first, first != UInt8(ascii: "#") else { return nil }
        // Git's lines are C strings.
        text = Array(Self.withoutTrailingBlanks(raw.prefix { $0 != 0 }))
        self.line = line
        var pattern = text[...]
        isNegated = pattern.first == UInt8(ascii: "!")
        if isNegated { pattern = pattern.dropFirst() }
        isForFoldersOnly = pattern.last == UInt8(ascii: "/")
        if isForFoldersOnly { pattern = pattern.dropLast() }
        shape = Self.shape(of: pattern)
    }

    /// Blanks at the end, unless a backslash protects them.
    private static func withoutTrailingBlanks(_ line: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var end = line.startIndex
        var index = line.startIndex
        while index < line.endIndex {
            if line[index] == UInt8(ascii: "\\") {
                index += 1
                // It protects nothing: then nothing is taken away.
                if index == line.endIndex { return line }
                end = index + 1
            } else if line[index] != UInt8(ascii: " ") {
                end = index + 1
            }
            index += 1
        }
        return line[..<end]
    }

    private static func shape(of pattern: ArraySlice<UInt8>) -> Shape {
        let isOfName = !pattern.contains(UInt8(ascii: "/"))
        if isOfName {
            if pattern.isEmpty { return .nothing }
            if !pattern.contains(where: isSpecial) { return .name(Array(pattern)) }
            let rest = pattern.dropFirst()
            if pattern.first == UInt8(ascii: "*"), !rest.contains(where: isSpecial) { return .nameEnding(Array(rest)) }
            return IgnoreGlob(pattern, ofPath: false).map { .nameLike($0) } ?? .nothing
        }
        let path = pattern.first == UInt8(ascii: "/") ? pattern.dropFirst() : pattern
        let literal = path.prefix { !isSpecial($0) }
        let rest = path[literal.endIndex...]
        if rest.isEmpty { return .path(Array(literal), nil) }
        // As in git, what follows the plain beginning is a pattern by itself: in `ab**/c`, too, the stars begin one.
        return IgnoreGlob(rest, ofPath: true).map { .path(Array(literal), $0) } ?? .nothing
    }

    private static func isSpecial(_ byte: UInt8) -> Bool {
        [UInt8(ascii: "*"), UInt8(ascii: "?"), UInt8(ascii: "["), UInt8(ascii: "\\")].contains(byte)
    }

    /// - Parameters:
    ///   - path: from the file's folder.
    ///   - name: its last component.
    func matches(_ path: ArraySlice<UInt8>, name: ArraySlice<UInt8>, isFolder: Bool) -> Bool {
        guard isFolder || !isForFoldersOnly else { return false }
        switch shape {
        case .name(let own): return name.elementsEqual(own)
        case .nameEnding(let ending):
            return name.count >= ending.count && name.suffix(ending.count).elementsEqual(ending)
        case .nameLike(let glob): return glob.matches(name)
        case .path(let beginning, nil): return path.elementsEqual(beginning)
        case .path(let beginning, let rest?):
            return path.starts(with: beginning) && rest.matches(path.dropFirst(beginning.count))
        case .nothing: return false
        }
    }
}
