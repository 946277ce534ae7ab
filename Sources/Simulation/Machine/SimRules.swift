/// What tokens say where they are the content of a `.ubiquityignore`: a line each.
enum SimRules {
    /// Of the names that programs use, and of second ones.
    private static let lines = ["a", "b/", "*", "!c", "/d", "!*", "e", "c*", "!a", "**/b", "a/*", "# e", "/d/**/e"]

    static func text(_ tokens: [UInt64]) -> [UInt8] {
        Array(tokens.map { lines[Int($0 % UInt64(lines.count))] + "\n" }.joined().utf8)
    }
}
