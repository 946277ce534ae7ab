import Testing
import UbiquityModel

@Suite struct PackageDeclarationTests {
    @Test(arguments: [
        ("foo", "foo"), (".foo", "foo"), ("FoO", "foo"), ("\u{DC}ber", "\u{DC}ber"), ("a-b_c+1", "a-b_c+1"),
        (String(repeating: "a", count: 64), String(repeating: "a", count: 64)),
    ])
    func `an extension is kept without its dot, in lower case`(text: String, expected: String) {
        #expect(PackageDeclaration.checked(text) == expected)
    }

    @Test(arguments: [
        "", ".", "..foo", "a.b", "foo.", "a/b", "a b", "a\nb", "a\0", "a\u{7F}", "a\u{85}b", "a\u{A0}b",
        String(repeating: "a", count: 65), String(repeating: "\u{E9}", count: 33),
    ])
    func `what is no extension is none`(text: String) {
        #expect(PackageDeclaration.checked(text) == nil)
        #expect(PackageDeclaration(added: [text], removed: [text]).isEmpty)
    }

    @Test func `the last word counts`() {
        let added = PackageDeclaration().applying(PackageDeclaration(added: ["foo", "bar"]))
        #expect(added == PackageDeclaration(added: ["bar", "foo"]))
        let removed = added.applying(PackageDeclaration(removed: ["foo", "rtfd"]))
        #expect(removed == PackageDeclaration(added: ["bar"], removed: ["foo", "rtfd"]))
        #expect(removed.applying(PackageDeclaration(removed: ["foo"])) == removed)
        let again = removed.applying(PackageDeclaration(added: ["rtfd"]))
        #expect(again == PackageDeclaration(added: ["bar", "rtfd"], removed: ["foo"]))
    }

    @Test func `an extension is not both`() {
        #expect(PackageDeclaration(added: ["foo"], removed: ["foo"]) == PackageDeclaration(removed: ["foo"]))
    }
}
