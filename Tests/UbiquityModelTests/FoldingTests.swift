import Testing
import UbiquityModel

@Suite struct FoldingTests {
    @Test(arguments: [
        ("Report.TXT", "report.txt"), ("Straße", "STRASSE"), ("Σίσυφος", "ΣΊΣΥΦΟΣ"), ("\u{E9}", "e\u{301}"),
        ("É", "e\u{301}"),
        ("\u{212B}", "å"), ("ﬀ", "FF"), ("\u{1E9E}", "ss"), ("Ⅷ", "ⅷ"), ("Ω", "\u{2126}"),
    ])
    func `names that differ in case, or in how they are composed, are one`(one: String, other: String) throws {
        #expect(try Name(one).folded == Name(other).folded)
        #expect(try Name("a " + one + ".b").folded == Name("A " + other + ".B").folded)
    }

    @Test(arguments: [("ı", "i"), ("a", "à"), ("a", "b"), ("a", "a "), ("²", "2"), ("x", "\u{00D7}")])
    func `what differs in more stays two`(one: String, other: String) throws {
        #expect(try Name(one).folded != Name(other).folded)
    }

    @Test func `what is no text is equal to itself only`() throws {
        let name = try Name(bytes: [0xFF, UInt8(ascii: "A")])
        #expect(name.folded == name.folded)
        #expect(try name.folded != Name(bytes: [0xFF, UInt8(ascii: "a")]).folded)
    }

    /// What is stored is compared with what is asked for later.
    @Test func `folding twice changes nothing, for any character`() throws {
        for value in UInt32(1)...0x2FFFF where value != 0x2F {
            guard let scalar = Unicode.Scalar(value) else { continue }
            let folded = try Name("a" + String(Character(scalar))).folded
            guard let again = try? Name(bytes: folded.bytes) else {
                Issue.record("U+\(String(value, radix: 16)) folds to what is no name")
                continue
            }
            #expect(again.folded == folded, "U+\(String(value, radix: 16))")
        }
    }
}
