import Glibc
import Replica
import TestSupport
import Testing
import UbiquityControl
import UbiquityModel

@testable import DeviceService

@Suite struct ImporterTests {
    /// Where the folder lies that is imported: on the replica's filesystem (entries are renamed), or on another (they are copied).
    static let places = ["/tmp", "/dev/shm"]

    private func withImport(from parent: String, _ body: (String, Replica, Importer) throws -> Void) async throws {
        try await withScratchFolder { folder in
            try await withScratchFolder(in: parent) { source in
                let replica = try Replica(directory: folder + "/replica")
                try body(source, replica, Importer(source: ControlPath(source), replica: replica, progress: { _ in }))
            }
        }
    }

    @Test(arguments: places)
    func `everything is moved, with modes, times, attributes, links and fifos`(parent: String) async throws {
        try await withImport(from: parent) { source, replica, importer in
            try TestSupport.succeed(
                "bash",
                "-ec",
                """
                mkdir -p a/b; echo deep > a/b/deep.txt; echo fixed > fixed; chmod 444 fixed; touch -d '2020-01-02 03:04:05.6789' fixed
                ln -s nowhere link; mkfifo fifo; chmod 555 a; : > $'caf\\xe9'; mkdir .versions; echo v > .versions/v
                """,
                folder: source
            )
            try Files.setAttribute("user.colour", of: source + "/a/b/deep.txt", to: "blue")
            try Files.setAttribute("user.ubiquity..stray", of: source + "/a/b/deep.txt", to: "x")
            let modified = try Files.status(source + "/fixed").st_mtim
            try importer.check(home: try HomeDirectories(home: "/nonexistent"))
            #expect(try importer.run() == 6)
            #expect(try Files.names(in: source) == [])
            let tree = replica.treePath
            #expect(try Files.text(tree + "/a/b/deep.txt") == "deep\n")
            #expect(try Files.attribute("user.colour", of: tree + "/a/b/deep.txt") == "blue")
            #expect(try Files.attribute("user.ubiquity..stray", of: tree + "/a/b/deep.txt") == nil)
            #expect(try Files.text(tree + "/.versions 2/v") == "v\n")
            #expect(try Files.rawNames(in: Array(tree.utf8)).contains(Array("caf".utf8) + [0xE9]))
            #expect(try Files.status(tree + "/link").st_mode & S_IFMT == S_IFLNK)
            #expect(try Files.status(tree + "/fifo").st_mode & S_IFMT == S_IFIFO)
            let fixed = try Files.status(tree + "/fixed").st_mtim
            #expect((fixed.tv_sec, fixed.tv_nsec) == (modified.tv_sec, modified.tv_nsec))
            let state = try #require(try replica.tree.observe(in: replica.tree.rootDescriptor, .init("fixed")))
            #expect(state.mode == 0o444)
            let folder = try #require(try replica.tree.observe(in: replica.tree.rootDescriptor, .init("a")))
            #expect(folder.mode == 0o555)
            #expect(try Files.names(in: replica.stagingPath) == [])
        }
    }

    @Test(arguments: places)
    func `what is there twice becomes one if it is equal, and both stay if not`(parent: String) async throws {
        try await withImport(from: parent) { source, replica, importer in
            let tree = replica.treePath
            for root in [source, tree] {
                try Files.makeFolder(root + "/d")
                try Files.write("equal", to: root + "/d/equal.txt")
                try Files.write("of \(root == source ? "import" : "tree")", to: root + "/d/other.txt")
            }
            try Files.write("only here", to: source + "/d/new.txt")
            _ = try importer.run()
            #expect(try Files.names(in: source) == [])
            #expect(try Files.names(in: tree + "/d").sorted() == ["equal.txt", "new.txt", "other 2.txt", "other.txt"])
            #expect(try Files.text(tree + "/d/other.txt") == "of tree")
            #expect(try Files.text(tree + "/d/other 2.txt") == "of import")
        }
    }

    @Test func `a placeholder of elsewhere is refused before anything is moved`() async throws {
        try await withImport(from: "/tmp") { source, replica, importer in
            try Files.write("fine", to: source + "/a.txt")
            try Files.makeFolder(source + "/d")
            try Files.write("zeros", to: source + "/d/b.txt")
            try Files.setAttribute("user.ubiquity..placeholder", of: source + "/d/b.txt", to: "x")
            let error = #expect(throws: ControlError.self) {
                try importer.check(home: try HomeDirectories(home: "/nonexistent"))
            }
            #expect(error?.what == source + "/d/b.txt")
            #expect(try Files.names(in: replica.treePath) == [])
        }
    }

    @Test func `a folder that holds the device's own state is refused`() async throws {
        try await withImport(from: "/tmp") { source, _, importer in
            #expect(throws: ControlError.self) { try importer.check(home: try HomeDirectories(home: source + "/home")) }
        }
    }
}
