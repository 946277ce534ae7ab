import Testing
import UbiquityModel

@testable import FileCoordination

struct CoverageCase: Sendable, CustomTestStringConvertible {
    var held: ClaimItem
    var asked: ClaimItem
    var waits: Bool
    var testDescription: String

    init(_ description: String, _ held: ClaimItem, _ asked: ClaimItem, waits: Bool) {
        self.held = held
        self.asked = asked
        self.waits = waits
        testDescription = description
    }
}

@Suite struct CoverageTests {
    static func cases() throws -> [CoverageCase] {
        [
            CoverageCase("a folder's claim is its own list", try write("d"), try write("d/f"), waits: false),
            CoverageCase("deleting covers the subtree", try write("d", .forDeleting), try read("d/e/f"), waits: true),
            CoverageCase("moving covers the subtree", try write("d", .forMoving), try read("d/e/f"), waits: true),
            CoverageCase("replacing covers the subtree", try write("d", .forReplacing), try read("d/f"), waits: true),
            CoverageCase("merging does not", try write("d", .forMerging), try read("d/f"), waits: false),
            CoverageCase("a subtree waits for what is in it", try read("d/f"), try write("d", .forMoving), waits: true),
            CoverageCase("not for what is beside it", try read("de/f"), try write("d", .forMoving), waits: false),
            CoverageCase(
                "a package is covered",
                try write("p.pages", package: "p.pages"),
                try read("p.pages/x"),
                waits: true
            ),
            CoverageCase(
                "an element is the package",
                try write("p.pages/x", package: "p.pages"),
                try read("p.pages/y", package: "p.pages"),
                waits: true
            ),
            CoverageCase(
                "readers of elements go together",
                try read("p.pages/x", package: "p.pages"),
                try read("p.pages/y", package: "p.pages"),
                waits: false
            ),
            CoverageCase("the root's subtree is everything", try write("", .forMoving), try read("a/b"), waits: true),
            CoverageCase("the root's list is not", try write(""), try write("a"), waits: false),
        ]
    }

    @Test(arguments: try cases())
    func `coverage`(of test: CoverageCase) throws {
        var world = ClaimWorld()
        _ = world.ask(1, test.held)
        let asked = world.ask(2, test.asked)
        #expect(asked.actions.granted == (test.waits ? [] : [asked.claim]))
    }

    @Test func `a granted claim passes the item's path, not the package's`() throws {
        var world = ClaimWorld()
        let claim = world.ask(1, try write("p.pages/x", package: "p.pages"))
        #expect(claim.actions == [.grant(claim.claim, [try target("p.pages/x")])])
    }

    @Test(arguments: ClaimOption.allCases)
    func `options belong to a kind of claim`(option: ClaimOption) {
        #expect(option.applies(to: .read) || option.applies(to: .write))
        #expect(ClaimOption(rawValue: option.rawValue) == option)
    }
}
