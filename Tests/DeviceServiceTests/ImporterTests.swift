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

    private let key = [UInt8](repeating: 7, count: 32)

    private func withImport(from parent: String, _ body: (String, Replica, Importer) throws -> Void) async throws {
        try await withScratchFolder { folder in
            try await withScratchFolder(in: parent) { source in
                let replica = try Replica(directory: folder + "/replica")
                try body(
                    source,
                    replica,
                    Importer(
                        source: ControlPath(source),
                        replica: replica,
                        key: key,
                        stop: ImportStop(),
                        progress: { _ in }
                    )
                )
            }
        }
    }

    private func elsewhere() throws -> HomeDirectories { try HomeDirectories(home: "/nonexistent") }

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
            let found = try importer.check(home: elsewhere())
            #expect(try found.fine.contains(Name("link")) && !found.fine.contains(Name("a")))
            #expect(try importer.run(found) == 6)
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
            _ = try importer.run(importer.check(home: elsewhere()))
            #expect(try Files.names(in: source) == [])
            #expect(try Files.names(in: tree + "/d").sorted() == ["equal.txt", "new.txt", "other 2.txt", "other.txt"])
            #expect(try Files.text(tree + "/d/other.txt") == "of tree")
            #expect(try Files.text(tree + "/d/other 2.txt") == "of import")
        }
    }

    /// A dataless file of the tree, as the cloud has it.
    private func makeDataless(_ name: String, _ text: String, in replica: Replica) throws -> Placeholder {
        let file = try replica.staging.makeFile()
        try Files.write(Array(text.utf8), descriptor: file.descriptor.raw, path: file.name)
        let content = try ContentReader.content(of: file.descriptor.raw, key: key)
        try replica.staging.remove(file.name)
        let placeholder = Placeholder(
            revision: .random(),
            generation: 1,
            size: Int64(text.utf8.count),
            modified: Timestamp(seconds: 1_600_000_000, nanoseconds: 5),
            mode: 0o640
        )
        let staged = try replica.staging.makePlaceholder(placeholder)
        try Files.rename(replica.stagingPath + "/" + staged.name, to: replica.treePath + "/" + name)
        let row = SyncedItem(
            id: .random(),
            place: Place(parent: .root, name: try Name(name)),
            content: .file(FileContent(revision: placeholder.revision, content: content, size: placeholder.size)),
            attributes: ItemAttributes(modified: placeholder.modified, mode: placeholder.mode),
            local: LocalEvidence(staged.state)
        )
        try replica.database.write(synced: [row])
        return placeholder
    }

    @Test(arguments: places)
    func `what the tree has dataless becomes whole if it is equal, and both stay if not`(parent: String) async throws {
        try await withImport(from: parent) { source, replica, importer in
            let tree = replica.treePath
            let placeholder = try makeDataless("a.txt", "of the cloud", in: replica)
            let other = try makeDataless("b.txt", "of the cloud", in: replica)
            try Files.write("of the cloud", to: source + "/a.txt")
            try Files.write("of the DISK!", to: source + "/b.txt")
            _ = try importer.run(importer.check(home: elsewhere()))
            #expect(try Files.names(in: source) == [])
            #expect(try Files.names(in: tree).sorted() == ["a.txt", "b 2.txt", "b.txt"])
            #expect(try Files.text(tree + "/a.txt") == "of the cloud")
            #expect(try Files.text(tree + "/b 2.txt") == "of the DISK!")
            let whole = try #require(try replica.tree.observe(in: replica.tree.rootDescriptor, .init("a.txt")))
            #expect(!whole.isDataless && whole.modified == placeholder.modified && whole.mode == placeholder.mode)
            let dataless = try #require(try replica.tree.observe(in: replica.tree.rootDescriptor, .init("b.txt")))
            #expect(dataless.placeholder == other)
        }
    }

    @Test(arguments: places)
    func `a mode that an import that was killed had hidden is the one that arrives`(parent: String) async throws {
        try await withImport(from: parent) { source, replica, importer in
            try Files.write("x", to: source + "/hidden")
            try succeed("chmod", "644", source + "/hidden")
            try Files.setAttribute("user.ubiquity..mode", of: source + "/hidden", to: "\u{1}\u{24}")
            // Changed by hand since then: what was hidden is out of date.
            try Files.write("x", to: source + "/changed")
            try succeed("chmod", "755", source + "/changed")
            try Files.setAttribute("user.ubiquity..mode", of: source + "/changed", to: "\u{1}\u{24}")
            _ = try importer.run(importer.check(home: elsewhere()))
            let hidden = try #require(try replica.tree.observe(in: replica.tree.rootDescriptor, .init("hidden")))
            #expect(hidden.mode == 0o444)
            let changed = try #require(try replica.tree.observe(in: replica.tree.rootDescriptor, .init("changed")))
            #expect(changed.mode == 0o755)
        }
    }

    @Test func `a copy that was made before a kill is found again`() async throws {
        try await withImport(from: "/dev/shm") { source, replica, importer in
            for (name, text) in [("a.txt", "other"), ("a 2.txt", "mine")] {
                try Files.write(text, to: replica.treePath + "/" + name)
            }
            try Files.write("mine", to: source + "/a.txt")
            _ = try importer.run(importer.check(home: elsewhere()))
            #expect(try Files.names(in: source) == [])
            #expect(try Files.names(in: replica.treePath).sorted() == ["a 2.txt", "a.txt"])
        }
    }

    @Test func `a file whose attributes find no room is not removed`() async throws {
        try await withImport(from: "/dev/shm") { source, replica, importer in
            try Files.write("x", to: source + "/file")
            let long = String(repeating: "x", count: 60_000)
            try Files.setAttribute("user.long", of: source + "/file", to: long)
            do {
                _ = try importer.run(importer.check(home: elsewhere()))
                // A disk with room for it.
                #expect(try Files.attribute("user.long", of: replica.treePath + "/file") == long)
            } catch let error as ControlError {
                #expect(error.what == source + "/file")
                #expect(error.why.contains("user.long"))
                #expect(try Files.attribute("user.long", of: source + "/file") == long)
                #expect(try Files.names(in: replica.treePath) == [])
            }
            #expect(try Files.names(in: replica.stagingPath) == [])
        }
    }

    @Test func `what was saved since it was compared is not removed`() async throws {
        try await withScratchFolder { source in
            try Files.write("seen", to: source + "/file")
            let folder = try LocalFolder(opening: ControlPath(source))
            let name = try Name("file")
            let seen = try #require(try folder.status(of: name))
            try Files.write("save", to: source + "/file")
            let error = #expect(throws: ControlError.self) { try folder.remove(name, ifStill: seen) }
            #expect(error?.status == .tryAgain)
            let now = try #require(try folder.status(of: name))
            try Files.replace(source + "/file", with: Array("save".utf8))
            #expect(throws: ControlError.self) { try folder.remove(name, ifStill: now) }
            #expect(try Files.text(source + "/file") == "save")
            let last = try #require(try folder.status(of: name))
            try folder.remove(name, ifStill: last)
            #expect(try Files.names(in: source) == [])
        }
    }

    @Test func `a placeholder of elsewhere is refused before anything is moved`() async throws {
        try await withImport(from: "/tmp") { source, replica, importer in
            try Files.write("fine", to: source + "/a.txt")
            try Files.makeFolder(source + "/d")
            try Files.write("zeros", to: source + "/d/b.txt")
            try Files.setAttribute("user.ubiquity..placeholder", of: source + "/d/b.txt", to: "x")
            let error = #expect(throws: ControlError.self) {
                try importer.check(home: elsewhere())
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

    @Test(.enabled(if: geteuid() == 0, "only root can make a device"))
    func `a device of another disk is refused, and stays what it is`() async throws {
        try await withImport(from: "/dev/shm") { source, replica, importer in
            try Files.write("fine", to: source + "/a.txt")
            try TestSupport.succeed("mknod", source + "/n", "c", "1", "3")
            let error = #expect(throws: ControlError.self) { try importer.check(home: elsewhere()) }
            #expect(error?.what == source + "/n")
            // Also if it has become one after the look.
            #expect(throws: ControlError.self) { try importer.run(Importer.Found()) }
            #expect(try Files.status(source + "/n").st_rdev == 0x103)
            #expect(try Files.names(in: replica.treePath) == [])
        }
    }

    @Test func `a copy has the owner, the access list and the special bits of what it was made from`() async throws {
        try await withImport(from: "/dev/shm") { source, replica, importer in
            try TestSupport.succeed(
                "bash",
                "-ec",
                """
                echo x > file; mkdir folder; mkfifo -m 666 pipe; ln -s file link; [ $EUID != 0 ] || chown -h 12345:12345 *
                setfacl -m u:54321:rw file; setfacl -d -m u:54321:rx folder; chmod 4750 file; chmod 2775 folder
                """,
                folder: source
            )
            let look = "stat -c '%n %u %g %a %F' *; getfacl -np file folder"
            let before = try TestSupport.succeed("bash", "-ec", look, folder: source).output
            _ = try importer.run(importer.check(home: elsewhere()))
            #expect(try Files.names(in: source) == [])
            #expect(try TestSupport.succeed("bash", "-ec", look, folder: replica.treePath).output == before)
        }
    }

    /// A folder of the tree is a package that the cloud has.
    private func agree(onPackage name: String, in replica: Replica) throws {
        let folder = try Files.open(replica.treePath + "/" + name, O_RDONLY | O_DIRECTORY)
        defer { close(folder) }
        let state = try PackageTree(folder: folder).state
        let content = try #require(ContentID(bytes: [UInt8](repeating: 1, count: 32)))
        let row = SyncedItem(
            id: .random(),
            place: Place(parent: .root, name: try Name(name)),
            content: .file(
                FileContent(revision: .random(), content: content, size: state.size, isPackage: true)
            ),
            attributes: ItemAttributes(modified: state.modified, mode: state.mode),
            local: LocalEvidence(state)
        )
        try replica.database.write(synced: [row])
    }

    @Test(arguments: places)
    func `a package that is not in the tree's keeps a name of its own, and is not mixed with it`(
        parent: String
    ) async throws {
        try await withImport(from: parent) { source, replica, importer in
            let tree = replica.treePath
            try Files.makeFolder(tree + "/Doc.rtfd")
            for name in ["a", "b"] { try Files.write("x", to: tree + "/Doc.rtfd/" + name) }
            try agree(onPackage: "Doc.rtfd", in: replica)
            for (text, names) in [("x", ["Doc.rtfd"]), ("y", ["Doc 2.rtfd", "Doc.rtfd"])] {
                try Files.makeFolder(source + "/Doc.rtfd")
                try Files.write(text, to: source + "/Doc.rtfd/a")
                _ = try importer.run(importer.check(home: elsewhere()))
                #expect(try Files.names(in: source) == [])
                #expect(try Files.names(in: tree).sorted() == names)
            }
            #expect(try Files.names(in: tree + "/Doc.rtfd").sorted() == ["a", "b"])
            #expect(try Files.text(tree + "/Doc.rtfd/a") == "x")
            #expect(try Files.names(in: tree + "/Doc 2.rtfd") == ["a"])
            #expect(try Files.text(tree + "/Doc 2.rtfd/a") == "y")
        }
    }

    @Test(arguments: places)
    func `packages of the source stay what they are, also under the name that another one would get`(
        parent: String
    ) async throws {
        try await withImport(from: parent) { source, replica, importer in
            let tree = replica.treePath
            try Files.makeFolder(tree + "/Doc.rtfd")
            try Files.write("x", to: tree + "/Doc.rtfd/a")
            try agree(onPackage: "Doc.rtfd", in: replica)
            for (name, text) in [("Doc.rtfd", "y"), ("Doc 2.rtfd", "z")] {
                try Files.makeFolder(source + "/" + name)
                try Files.write(text, to: source + "/" + name + "/a")
            }
            _ = try importer.run(importer.check(home: elsewhere()))
            #expect(try Files.names(in: source) == [])
            #expect(try Files.names(in: tree).sorted() == ["Doc 2.rtfd", "Doc 3.rtfd", "Doc.rtfd"])
            for (name, text) in [("Doc.rtfd", "x"), ("Doc 2.rtfd", "z"), ("Doc 3.rtfd", "y")] {
                #expect(try Files.names(in: tree + "/" + name) == ["a"])
                #expect(try Files.text(tree + "/" + name + "/a") == text)
            }
        }
    }

    @Test func `the copy of a package that was begun before a kill is gone on with, and no other one`() async throws {
        try await withImport(from: "/dev/shm") { source, replica, importer in
            let tree = replica.treePath
            for (name, text) in [("Doc.rtfd", "x"), ("Doc 2.rtfd", "y")] {
                try Files.makeFolder(tree + "/" + name)
                try Files.write(text, to: tree + "/" + name + "/a")
            }
            try agree(onPackage: "Doc.rtfd", in: replica)
            for text in ["y", "z"] {
                try Files.makeFolder(source + "/Doc.rtfd")
                for name in ["a", "b"] { try Files.write(text, to: source + "/Doc.rtfd/" + name) }
                _ = try importer.run(importer.check(home: elsewhere()))
                #expect(try Files.names(in: source) == [])
            }
            for (name, text) in [("Doc 2.rtfd", "y"), ("Doc 3.rtfd", "z")] {
                #expect(try Files.names(in: tree + "/" + name).sorted() == ["a", "b"])
                #expect(try Files.text(tree + "/" + name + "/a") == text)
            }
            #expect(try Files.names(in: tree).sorted() == ["Doc 2.rtfd", "Doc 3.rtfd", "Doc.rtfd"])
            #expect(try Files.names(in: tree + "/Doc.rtfd") == ["a"])
        }
    }

    @Test(arguments: places)
    func `what a program has open for writing is not imported, nor anything else`(parent: String) async throws {
        try await withImport(from: parent) { source, replica, importer in
            try Files.write("one", to: source + "/a.txt")
            try Files.makeFolder(source + "/d")
            try Files.write("two", to: source + "/d/b.txt")
            let found = try importer.check(home: elsewhere())
            let writer = try Files.open(source + "/d/b.txt", O_WRONLY | O_APPEND)
            let error = #expect(throws: ControlError.self) { try importer.check(home: elsewhere()) }
            #expect(error?.status == .tryAgain && error?.what == source + "/d/b.txt")
            #expect(try Files.names(in: replica.treePath) == [])
            if parent == "/dev/shm" {
                // Opened after the look: it would be copied, and written to when it has no name any more.
                #expect(throws: ControlError.self) { try importer.run(found) }
                #expect(try Files.text(source + "/d/b.txt") == "two")
            }
            close(writer)
            _ = try importer.run(importer.check(home: elsewhere()))
            #expect(try Files.names(in: source) == [])
            #expect(try Files.text(replica.treePath + "/a.txt") == "one")
            #expect(try Files.text(replica.treePath + "/d/b.txt") == "two")
        }
    }

    @Test func `the backing tree is not imported into itself`() async throws {
        try await withImport(from: "/tmp") { source, replica, importer in
            try Files.write("only copy", to: replica.treePath + "/a.txt")
            for path in [replica.treePath, replica.directory] {
                var importer = importer
                importer.source = ControlPath(path)
                #expect(throws: ControlError.self) { try importer.check(home: elsewhere()) }
            }
            // By another path, which names nothing of it.
            try Files.makeFolder(source + "/bound")
            if geteuid() == 0 {
                try TestSupport.succeed("mount", "--bind", replica.treePath, source + "/bound")
                defer { _ = try? TestSupport.run("umount", source + "/bound") }
                var importer = importer
                importer.source = ControlPath(source + "/bound")
                #expect(throws: ControlError.self) { try importer.check(home: elsewhere()) }
            }
            #expect(try Files.text(replica.treePath + "/a.txt") == "only copy")
        }
    }

    @Test(.enabled(if: geteuid() == 0, "only root can mount"))
    func `what is mounted in the folder is not imported`() async throws {
        try await withImport(from: "/tmp") { source, replica, importer in
            for name in ["d", "e"] { try Files.makeFolder(source + "/" + name) }
            try Files.write("x", to: source + "/d/file")
            try TestSupport.succeed("mount", "--bind", source + "/d", source + "/e")
            defer { _ = try? TestSupport.run("umount", source + "/e") }
            let error = #expect(throws: ControlError.self) { try importer.check(home: elsewhere()) }
            #expect(error?.what == source + "/e")
            #expect(try Files.names(in: replica.treePath) == [])
        }
    }

    @Test func `what the tree has already stays while a program has it open for writing`() async throws {
        try await withImport(from: "/tmp") { source, replica, importer in
            for root in [source, replica.treePath] { try Files.write("equal", to: root + "/a.txt") }
            let found = try importer.check(home: elsewhere())
            let writer = try Files.open(source + "/a.txt", O_WRONLY | O_APPEND)
            let error = #expect(throws: ControlError.self) { try importer.run(found) }
            #expect(error?.status == .tryAgain)
            #expect(try Files.text(source + "/a.txt") == "equal")
            close(writer)
            _ = try importer.run(importer.check(home: elsewhere()))
            #expect(try Files.names(in: source) == [])
            #expect(try Files.names(in: replica.treePath) == ["a.txt"])
        }
    }

    @Test func `an import that ends in the middle of a folder of another disk goes on there`() async throws {
        try await withImport(from: "/dev/shm") { source, replica, importer in
            try TestSupport.succeed(
                "bash",
                "-ec",
                "mkdir -p a/b; chmod 750 a; for n in $(seq -w 600); do echo $n > a/b/$n; done; echo last > a/b/z",
                folder: source
            )
            try Files.setAttribute("user.colour", of: source + "/a", to: "blue")
            let found = try importer.check(home: elsewhere())
            let writer = try Files.open(source + "/a/b/z", O_WRONLY | O_APPEND)
            #expect(throws: ControlError.self) { try importer.run(found) }
            let moved = try Files.names(in: replica.treePath + "/a/b")
            let left = try Files.names(in: source + "/a/b")
            #expect(moved.count >= 400 && moved.count + left.count == 601)
            #expect(Set(moved).isDisjoint(with: left))
            #expect(try Files.names(in: replica.stagingPath) == [])
            close(writer)
            _ = try importer.run(importer.check(home: elsewhere()))
            #expect(try Files.names(in: source) == [])
            #expect(try Files.names(in: replica.treePath + "/a/b").count == 601)
            let folder = try #require(try replica.tree.observe(in: replica.tree.rootDescriptor, .init("a")))
            #expect(folder.mode == 0o750)
            #expect(try Files.attribute("user.colour", of: replica.treePath + "/a") == "blue")
        }
    }

    @Test func `a folder whose attributes find no room is not imported without them`() async throws {
        try await withImport(from: "/dev/shm") { source, replica, importer in
            try Files.makeFolder(source + "/d")
            try Files.write("x", to: source + "/d/file")
            let long = String(repeating: "x", count: 60_000)
            try Files.setAttribute("user.long", of: source + "/d", to: long)
            // What the first one left is no folder that the second one may merge with.
            for _ in 0..<2 {
                do {
                    _ = try importer.run(importer.check(home: elsewhere()))
                } catch let error as ControlError {
                    #expect(error.what == source + "/d")
                    #expect(try Files.names(in: replica.treePath) == [])
                }
            }
            // The tree's disk may have room for it.
            let parent = Files.exists(source + "/d") ? source : replica.treePath
            #expect(try Files.attribute("user.long", of: parent + "/d") == long)
            #expect(try Files.text(parent + "/d/file") == "x")
            #expect(try Files.names(in: replica.stagingPath) == [])
        }
    }

    @Test(arguments: places) func `an import that is stopped goes on where it was`(parent: String) async throws {
        try await withImport(from: parent) { source, replica, importer in
            try TestSupport.succeed(
                "bash",
                "-ec",
                "mkdir -p a/b; for n in $(seq 900); do echo $n > a/b/$n; done; echo last > z; touch -d 2020-01-01 a",
                folder: source
            )
            let found = try importer.check(home: elsewhere())
            let stop = importer.stop
            stop.ask()
            let error = #expect(throws: ControlError.self) { try importer.run(found) }
            #expect(error?.status == .tryAgain)
            #expect(try Files.text(source + "/z") == "last\n")
            stop.takeBack()
            _ = try importer.run(importer.check(home: elsewhere()))
            #expect(try Files.names(in: source) == [])
            #expect(try Files.names(in: replica.treePath + "/a/b").count == 900)
            #expect(try Files.text(replica.treePath + "/a/b/77") == "77\n")
            #expect(try Files.status(replica.treePath + "/a").st_mtim.tv_sec == 1_577_836_800)
            #expect(try Files.names(in: replica.stagingPath) == [])
        }
    }
}
