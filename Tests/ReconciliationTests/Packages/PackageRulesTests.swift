import Reconciliation
import Testing
import UbiquityModel

@Suite struct PackageRulesTests {
    @Test(arguments: ["a.rtfd", "A.RtfD", "a.b.rtfd", ".x.rtfd"])
    func `a folder is one by its extension, in any case`(name: String) throws {
        #expect(PackageRules().isPackage(try Name(name)))
    }

    @Test(arguments: ["rtfd", ".rtfd", "a.rtfd.", "a.rtf", "a.rtfd "])
    func `what only looks like it is none`(name: String) throws {
        #expect(!PackageRules().isPackage(try Name(name)))
    }

    @Test func `a container adds to the usual ones, and takes from them`() throws {
        let rules = PackageRules(PackageDeclaration(added: ["foo"], removed: ["rtfd"]))
        for name in ["x.FOO", "x.pages"] { #expect(rules.isPackage(try Name(name))) }
        #expect(!rules.isPackage(try Name("x.rtfd")))
        #expect(rules.extensions == PackageRules.usual.union(["foo"]).subtracting(["rtfd"]))
        #expect(PackageRules(PackageDeclaration()) == PackageRules())
    }
}
