import Testing
import UbiquityModel

@Suite struct NameTests {
    @Test(arguments: [
        ("", NameError.empty), (".", .dots), ("..", .dots), ("a/b", .containsSlash), ("/", .containsSlash),
        ("a\0", .containsNUL),
        (String(repeating: "a", count: 256), .tooLong),
    ])
    func `what is no name is refused`(text: String, error: NameError) {
        #expect(throws: error) { try Name(text) }
        // A C string ends before a NUL.
        if error != .containsNUL { #expect(throws: error) { try Name(cString: text) } }
    }

    @Test(arguments: ["a", "...", ".hidden", "a b", "ü", " ", "\n", "-", String(repeating: "a", count: 255)])
    func `any other bytes are a name, kept exactly`(text: String) throws {
        #expect(try Name(text).bytes == Array(text.utf8))
        #expect(try Name(cString: text) == Name(text))
    }

    @Test func `a name need not be text`() throws {
        let name = try Name(bytes: [0xFF, 0xFE])
        #expect(name.bytes == [0xFF, 0xFE])
        let length = name.withCString { pointer in
            var length = 0
            while pointer[length] != 0 { length += 1 }
            return length
        }
        #expect(length == 2)
    }

    @Test(arguments: [
        ("report.txt", 2, "report 2.txt"), ("report", 3, "report 3"), (".profile", 2, ".profile 2"),
        ("a.tar.gz", 2, "a.tar 2.gz"),
        ("a.", 2, "a 2."),
        ("version 1.this is no extension at all, surely", 2, "version 1.this is no extension at all, surely 2"),
    ])
    func `a second name`(name: String, number: Int, expected: String) throws {
        #expect(try Name(name).numbered(number).description == expected)
    }

    @Test func `a version's name tells the device`() throws {
        #expect(try Name("report.txt").labelled("old laptop").description == "report (old laptop).txt")
        #expect(try Name("report.txt").labelled("a/b").description == "report (ab).txt")
    }

    @Test(arguments: ["a", "ü", "€", "𝄞"], ["", ".txt", ".é"])
    func `a long name is shortened between characters`(character: String, suffix: String) throws {
        for length in 200...255 {
            var text = ""
            while text.utf8.count + character.utf8.count + suffix.utf8.count <= length { text += character }
            let second = try Name(text + suffix).numbered(17)
            #expect(second.bytes.count <= 255)
            #expect(second.description.hasSuffix(" 17\(suffix)"))
            #expect(Array(second.description.utf8) == second.bytes, "valid UTF-8 stays valid")
        }
    }

    @Test func `second names differ from each other`() throws {
        let long = try Name(String(repeating: "a", count: 255))
        let names = Set((2...200).map { long.numbered($0) })
        #expect(names.count == 199)
    }
}

@Suite struct ItemPathTests {
    @Test(arguments: [("", ""), ("a", "a"), ("a/b", "a/b"), ("./a//b/.", "a/b"), ("/a", "a")])
    func `a relative path is parsed`(text: String, expected: String) throws {
        #expect(try ItemPath(parsing: text).description == expected)
    }

    @Test func `the parent folder is refused`() {
        #expect(throws: NameError.dots) { try ItemPath(parsing: "a/../b") }
    }

    @Test(arguments: [("a/b", "a", true), ("a", "a", true), ("ab", "a", false), ("a", "a/b", false), ("x", "", true)])
    func `inside is by whole names`(path: String, ancestor: String, isInside: Bool) throws {
        #expect(try ItemPath(parsing: path).isInside(ItemPath(parsing: ancestor)) == isInside)
    }

    @Test(arguments: [("a/b/c", "a/b", "x", "x/c"), ("a/b", "a/b", "x/y", "x/y"), ("ab/c", "a", "x", "ab/c")])
    func `a path follows the move of a folder`(path: String, old: String, new: String, expected: String) throws {
        let moved = try ItemPath(parsing: path).moved(from: ItemPath(parsing: old), to: ItemPath(parsing: new))
        #expect(moved == (try ItemPath(parsing: expected)))
    }

    @Test func `the root has no name`() {
        #expect(ItemPath.root.isRoot)
        #expect(ItemPath.root.last == nil)
        #expect(ItemPath.root.parent == .root)
    }
}
