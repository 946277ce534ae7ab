import Glibc
import Replica
import SystemPackage
import TestSupport
import Testing
import UbiquityModel

@testable import Driver

struct FoldedNamesTests {
    /// A folder on the disk, and what is known of it; removed at the end.
    private final class Fixture {
        let path: String
        let key: InodeKey
        let descriptor: SharedDescriptor

        init(_ names: String...) throws {
            path = "/tmp/driver-test-\(RevisionID.random())"
            try Files.makeFolder(path)
            descriptor = SharedDescriptor(try Files.open(path, O_RDONLY | O_DIRECTORY))
            key = try InodeKey(descriptor: descriptor.raw)
            for name in names { try make(name) }
        }

        deinit { _ = try? run("rm", "-rf", path) }

        func make(_ name: String) throws { try Files.write("x", to: path + "/" + name) }
        func remove(_ name: String) throws { try Files.remove(path + "/" + name) }
    }

    private static func twin(
        of name: String,
        in folder: Fixture,
        _ names: FoldedNames,
        leaving: String? = nil
    ) throws -> String? {
        let leaving = try leaving.map { try Name($0) }
        return try names.twin(of: Name(name), in: folder.key, folder.descriptor, leaving: leaving)?.description
    }

    struct Pair: Sendable {
        let there: String
        let new: String
        var areEqual = true
    }

    @Test(arguments: [
        Pair(there: "Read Me.txt", new: "read me.TXT"),
        Pair(there: "Straße", new: "STRASSE"),
        Pair(there: "caf\u{E9}", new: "Cafe\u{301}"),
        Pair(there: "ΣΑΣ", new: "σας"),
        Pair(there: "cafe", new: "caf\u{E9}", areEqual: false),
        Pair(there: "a1", new: "a2", areEqual: false),
    ])
    func `a name that is equal without its case is found`(example: Pair) throws {
        let (there, new) = (example.there, example.new)
        let folder = try Fixture(there)
        let found = try Self.twin(of: new, in: folder, FoldedNames())
        #expect(found.map { Array($0.utf8) } == (example.areEqual ? Array(there.utf8) : nil))
    }

    @Test
    func `a name is not its own twin, nor is one that leaves`() throws {
        let folder = try Fixture("foo")
        let names = FoldedNames()
        #expect(try Self.twin(of: "foo", in: folder, names) == nil)
        #expect(try Self.twin(of: "Foo", in: folder, names, leaving: "foo") == nil)
        #expect(try Self.twin(of: "Foo", in: folder, names, leaving: "fOO") == "foo")
    }

    @Test
    func `a name that is there already has no twin, even beside one`() throws {
        let folder = try Fixture("foo", "Foo")
        let names = FoldedNames()
        #expect(try Self.twin(of: "Foo", in: folder, names) == nil)
        #expect(try Self.twin(of: "FOO", in: folder, names, leaving: "foo") == "Foo")
    }

    @Test
    func `names come and go as they are noted`() throws {
        let folder = try Fixture()
        let names = FoldedNames()
        #expect(try Self.twin(of: "Foo", in: folder, names) == nil)
        try folder.make("foo")
        names.came(try Name("foo"), in: folder.key)
        #expect(try Self.twin(of: "Foo", in: folder, names) == "foo")
        try Files.rename(folder.path + "/foo", to: folder.path + "/bar")
        names.went(try Name("foo"), from: folder.key)
        names.came(try Name("bar"), in: folder.key)
        #expect(try Self.twin(of: "Foo", in: folder, names) == nil)
        #expect(try Self.twin(of: "BAR", in: folder, names) == "bar")
    }

    @Test
    func `a name that went unnoticed, or was noted and never came, hinders nobody`() throws {
        let folder = try Fixture("foo")
        let names = FoldedNames()
        #expect(try Self.twin(of: "Foo", in: folder, names) == "foo")
        try folder.remove("foo")
        names.came(try Name("FOO"), in: folder.key)
        #expect(try Self.twin(of: "Foo", in: folder, names) == nil)
        try folder.make("foo")
        #expect(try Self.twin(of: "Foo", in: folder, names) == "foo")
    }

    @Test
    func `what is known keeps its limits, and what was forgotten is listed again`() throws {
        let folders = try (0..<5).map { try Fixture("foo", "number \($0)") }
        let few = FoldedNames(folderLimit: 3)
        let small = FoldedNames(nameLimit: 4)
        for names in [few, small] {
            for folder in folders { #expect(try Self.twin(of: "Foo", in: folder, names) == "foo") }
        }
        #expect(few.folderCount == 3)
        #expect(small.folderCount == 2)
        // The first was forgotten: what came to it since is found nevertheless.
        try folders[0].make("bar")
        few.came(try Name("bar"), in: folders[0].key)
        #expect(few.folderCount == 3)
        #expect(try Self.twin(of: "Bar", in: folders[0], few) == "bar")
        few.forget(folders[0].key)
        #expect(few.folderCount == 2)
    }

    @Test
    func `a folder with more names than all may have is known as long as it is the only one`() throws {
        let large = try Fixture("1", "2", "3", "foo")
        let other = try Fixture("foo")
        let names = FoldedNames(nameLimit: 2)
        #expect(try Self.twin(of: "Foo", in: large, names) == "foo")
        #expect(names.folderCount == 1)
        #expect(try Self.twin(of: "Foo", in: other, names) == "foo")
        #expect(names.folderCount == 1)
        for name in ["4", "5", "6"] { names.came(try Name(name), in: other.key) }
        #expect(names.folderCount == 1)
    }

    @Test
    func `a folder that cannot be listed is tried again`() throws {
        let folder = try Fixture("foo")
        let names = FoldedNames()
        let nothing = SharedDescriptor(try Files.open("/dev/null", O_RDONLY))
        #expect(throws: Errno.notDirectory) {
            try names.twin(of: Name("Foo"), in: folder.key, nothing)
        }
        #expect(try Self.twin(of: "Foo", in: folder, names) == "foo")
    }
}
