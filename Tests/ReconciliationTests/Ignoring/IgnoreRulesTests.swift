import Reconciliation
import Testing
import UbiquityModel

/// The grammar of gitignore(5), line by line. That it is git's own in all that can be written, `IgnoreOracleTests` asks git.
@Suite struct IgnoreRulesTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var rules: String
        /// Folders end in a slash.
        var ignored: [String]
        var sent: [String]

        init(_ rules: String, ignored: [String] = [], sent: [String] = []) {
            self.rules = rules
            self.ignored = ignored
            self.sent = sent
        }

        var testDescription: String { rules.debugDescription }
    }

    @Test(arguments: [
        Case("", sent: ["a", "a/b"]),
        Case("# a\n\n   \na", ignored: ["a"], sent: ["# a", "b"]),
        Case("\\#a", ignored: ["#a"], sent: ["a"]),
        Case("\\!a", ignored: ["!a"], sent: ["a"]),
        Case("a  \nb\\ \nc\t", ignored: ["a", "b ", "c\t"], sent: ["a  ", "b", "c"]),
        Case("a\r\nb\r\n", ignored: ["a", "b"], sent: ["a\r"]),
        Case("\u{FEFF}a", ignored: ["a"]),
        Case("a", ignored: ["a", "x/a", "x/y/a/", "a/b", "x/a/b/c"], sent: ["ab", "A"]),
        Case("a/", ignored: ["a/", "x/a/", "a/b"], sent: ["a", "x/a"]),
        Case("/a", ignored: ["a", "a/b"], sent: ["x/a"]),
        Case("x/a", ignored: ["x/a"], sent: ["a", "y/x/a"]),
        Case("x/a/", ignored: ["x/a/"], sent: ["x/a", "y/x/a/"]),
        Case("*.o", ignored: [".o", "a.o", "x/a.o"], sent: ["a.O", "a.o.c"]),
        Case("a*b?c", ignored: ["abxc", "axxbxc"], sent: ["abc", "abxcd"]),
        Case("x/*.o", ignored: ["x/a.o"], sent: ["a.o", "x/y/a.o"]),
        Case("x/*/a", ignored: ["x/y/a"], sent: ["x/a", "x/y/z/a"]),
        Case("**/a", ignored: ["a", "x/a", "x/y/a"]),
        Case("**/x/a", ignored: ["x/a", "y/x/a"], sent: ["a"]),
        Case("x/**", ignored: ["x/a", "x/y/a"], sent: ["x/", "a"]),
        Case("x/**/a", ignored: ["x/a", "x/y/a", "x/y/z/a"], sent: ["a", "y/x/a"]),
        Case("x**a", ignored: ["xa", "xya"], sent: ["x/b", "x/y"]),
        Case("/**/*.o\n/*", ignored: ["a", "a.o"], sent: []),
        Case("[ab]", ignored: ["a", "b"], sent: ["c", "ab"]),
        Case("[!ab]\n[^d]x", ignored: ["c", "cx"], sent: ["a", "dx"]),
        Case("[a-c]-[0-2]", ignored: ["b-1"], sent: ["d-1", "b-3"]),
        Case("[]a]x\n[a-]y", ignored: ["]x", "ax", "-y"], sent: ["bx", "by"]),
        Case("[[:digit:][:upper:]]", ignored: ["7", "Q"], sent: ["q", "["]),
        Case("[[:nothing:]]\n[a\na\\", sent: ["a", "[a", "a\\"]),
        Case("[\\]]\n\\*", ignored: ["]", "*"], sent: ["\\", "a"]),
        Case("x/[!a]", ignored: ["x/b"], sent: ["x/a"]),
        Case("*.o\n!a.o", ignored: ["b.o"], sent: ["a.o", "x/a.o"]),
        Case("!a.o\n*.o", ignored: ["a.o"]),
        Case("x/\n!x/a", ignored: ["x/a", "x/b"]),
        Case("x/*\n!x/a", ignored: ["x/b"], sent: ["x/a", "x/"]),
        Case("/*\n!/x/\n/x/*\n!/x/a", ignored: ["b", "x/b"], sent: ["x/", "x/a"]),
    ])
    func `one file says what is ignored`(_ example: Case) throws {
        var root = IgnoreScope.root
        root.add(IgnoreRules(Array(example.rules.utf8)))
        for path in example.ignored { #expect(try reason(path, root) != nil, "\(path)") }
        for path in example.sent { #expect(try reason(path, root) == nil, "\(path)") }
    }

    /// What one file at the root says of an item.
    private func reason(_ path: String, _ root: IgnoreScope) throws -> LocalOnly.Reason? {
        let names = try ItemPath(parsing: path).names
        var scope = root
        for name in names.dropLast() { scope = scope.entering(name) }
        return scope.reason(for: try #require(names.last), isFolder: path.hasSuffix("/"))
    }

    @Test func `a deeper file decides before one above it`() throws {
        var root = IgnoreScope.root
        root.add(IgnoreRules(Array("*.o\n/x/b".utf8)))
        var x = root.entering(try Name("x"))
        x.add(IgnoreRules(Array("# of x\n!*.o\n/c".utf8)))
        #expect(x.reason(for: try Name("a.o"), isFolder: false) == nil)
        let above = x.reason(for: try Name("b"), isFolder: false)
        #expect(above?.description == "ignored by .ubiquityignore, line 2: /x/b")
        let own = x.reason(for: try Name("c"), isFolder: true)
        #expect(own?.description == "ignored by x/.ubiquityignore, line 3: /c")
        let y = x.entering(try Name("y"))
        #expect(y.reason(for: try Name("c"), isFolder: false) == nil)
    }

    @Test func `what a file in an ignored folder says does not count`() throws {
        var root = IgnoreScope.root
        root.add(IgnoreRules(Array("x/".utf8)))
        var x = root.entering(try Name("x"))
        x.add(IgnoreRules(Array("!*".utf8)))
        #expect(x.reason(for: try Name("a"), isFolder: false)?.description == "ignored by .ubiquityignore, line 1: x/")
    }

    /// A backtracking matcher would take longer than anybody waits.
    @Test func `no pattern takes long`() throws {
        var root = IgnoreScope.root
        let stars = String(repeating: "*a", count: 60)
        let folders = String(repeating: "**/a*/", count: 40)
        root.add(IgnoreRules(Array("\(stars)b\n\(folders)b\n".utf8)))
        var scope = root
        for _ in 0..<200 { scope = scope.entering(try Name("aaaaaaaaaa")) }
        let name = try Name(String(repeating: "a", count: 250))
        #expect(scope.reason(for: name, isFolder: false) == nil)
    }
}
