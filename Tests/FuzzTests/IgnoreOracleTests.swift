import Foundation
import Reconciliation
import TestSupport
import Testing
import UbiquityModel

/// What git ignores in random trees with random rules, and by which line, is what a `.ubiquityignore` of the same text ignores.
@Suite struct IgnoreOracleTests {
    /// Not in a process that tries spoilt inputs.
    private static var isAlone: Bool { ProcessInfo.processInfo.environment[FuzzRun.variable] == nil }

    @Test(.enabled(if: isAlone)) func `git ignores the same`() throws {
        let first = TestSettings.seed
        let count = TestSettings.givenSeed == nil ? UInt64(max(TestSettings.histories, 40)) : 1
        for seed in first..<first + count {
            let folder = TestSettings.folder + "/ubiquity-ignore-\(UInt64.random(in: .min ... .max))"
            defer { _ = try? run("rm", "-rf", folder) }
            var tree = RandomIgnoreTree(seed: seed)
            try tree.write(to: folder)
            let differences = try differences(tree, folder)
            #expect(differences == [], "again with UBIQUITY_TEST_SEED=\(seed)")
        }
    }

    private func differences(_ tree: RandomIgnoreTree, _ folder: String) throws -> [String] {
        let list = folder + "/.git/list"
        try Files.write(tree.items.map { $0.path + "\0" }.joined(), to: list)
        let words = ["git", "check-ignore", "--no-index", "-v", "-n", "-z", "--stdin"]
        let told = try Command(words, folder: folder, input: list).wait()
        // File, line, pattern and path of each.
        let fields = told.bytes.split(separator: 0, omittingEmptySubsequences: false).map {
            String(decoding: $0, as: UTF8.self)
        }
        guard fields.count > 4 * tree.items.count - 1 else { return ["git: \(told)"] }
        var differences: [String] = []
        for (index, item) in tree.items.enumerated() {
            let told = Array(fields[(4 * index)..<(4 * index + 4)])
            let isIgnored = !told[2].isEmpty && !told[2].hasPrefix("!")
            let expected = isIgnored ? "ignored by \(told[0]), line \(told[1]):" : "sent"
            let reason = try tree.reason(for: item)
            let found = reason.map { String($0.prefix(expected.count)) } ?? "sent"
            if found != expected { differences.append("\(item.path): \(expected), not \(reason ?? "sent")") }
        }
        return differences
    }
}

/// Files, folders and rules that a seed decides.
private struct RandomIgnoreTree {
    struct Item {
        var path: String
        var isFolder: Bool
    }

    private static let pieces = [
        "a", "b", "ab", "c", "*", "**", "?", "[ab]", "[!a]", "[^b]", "[a-c]", "[]a]", "[[:alpha:]]", "[[:digit:]b]",
        "\\a", "\\*", "\\ ", "/", "/", "**/", "/**", "#", "!", ".", " ", "[a", "[[:x:]]", "[a-", "-", "\\", "[\\]a]",
        "***", "é", "[b-]", "[c-a]", "\\#", "\\!", "\t", "[[:]", "[[:a]", "**\\/",
    ]
    private static let usual = [
        "a", "b", "c", "*.o", "a/b", "/a", "b/", "!a", "!b/", "a/**", "**/c", "a/*", "*", "!c", "/*", "!/a/", "a*",
        "x.o", "**/a/b", "a/**/c",
    ]
    private static let names = [
        "a", "b", "c", "ab", "x.o", "abc", "-", "*", "a b", "#", "!", "[a", "\\", "é", "a ", "]", "1b", "#a", "!b",
        "a\nb", "a\t",
    ]

    private var random: SeededGenerator
    private(set) var items: [Item] = []
    /// By folder, with a slash at the end.
    private var rules: [String: String] = [:]

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
    }

    mutating func write(to folder: String) throws {
        try succeed("git", "init", "-q", folder)
        try fill(folder, "", depth: 0)
    }

    private mutating func fill(_ root: String, _ folder: String, depth: Int) throws {
        if chance(depth == 0 ? 90 : 35) {
            let text = randomRules()
            rules[folder] = text
            try Files.write(text, to: "\(root)/\(folder).gitignore")
        }
        let count = Int.random(in: 2...8, using: &random)
        for name in Self.names.shuffled(using: &random).prefix(count) {
            let path = folder + name
            let isFolder = depth < 3 && chance(50)
            items.append(Item(path: path, isFolder: isFolder))
            if isFolder {
                try Files.makeFolder("\(root)/\(path)")
                try fill(root, path + "/", depth: depth + 1)
            } else {
                try Files.write("", to: "\(root)/\(path)")
            }
        }
    }

    private mutating func randomRules() -> String {
        var lines: [String] = []
        for _ in 0..<Int.random(in: 1...6, using: &random) {
            lines.append(chance(60) ? randomLine() : pick(Self.usual))
        }
        let text = lines.joined(separator: "\n") + (chance(70) ? "\n" : "")
        return chance(5) ? "\u{FEFF}" + text : text
    }

    private mutating func randomLine() -> String {
        var line = ""
        for _ in 0..<Int.random(in: 1...5, using: &random) { line += pick(Self.pieces) }
        if chance(20) { line = "!" + line }
        if chance(20) { line += "/" }
        if chance(10) { line += "  " }
        if chance(5) { line += "\r" }
        return line
    }

    private mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }
    private mutating func pick(_ texts: [String]) -> String { texts.randomElement(using: &random) ?? "" }

    /// In git's words.
    func reason(for item: Item) throws -> String? {
        let names = try ItemPath(parsing: item.path).names
        var scope = IgnoreScope.root
        var folder = ""
        if let own = rules[folder] { scope.add(IgnoreRules(Array(own.utf8))) }
        for name in names.dropLast() {
            scope = scope.entering(name)
            folder += "\(name)/"
            if let own = rules[folder] { scope.add(IgnoreRules(Array(own.utf8))) }
        }
        guard let last = names.last, let reason = scope.reason(for: last, isFolder: item.isFolder) else { return nil }
        return reason.description.replacing(IgnoreRules.name.description + ",", with: ".gitignore,")
    }
}
