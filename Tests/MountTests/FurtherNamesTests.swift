import Glibc
import TestSupport
import Testing

extension MountTests {
    /// Files with several names (`ln`), each of which is an item of its own. What such names do on one disk alone is the driver's
    /// (`DriverTests`).
    @Suite struct FurtherNamesTests {
        @Test func `a large new file with two names is sent once under each`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                let content = randomBytes(24_000_000)
                try a.write(content, to: "big.bin")
                try a.shell("ln big.bin other.bin")
                try a.sync()
                try b.sync()
                #expect(try b.names().sorted() == ["big.bin", "other.bin"])
                try b.shell("cmp big.bin other.bin")
                #expect(try Files.read(b.path("other.bin")) == content)
                // What was announced and taken back would be there.
                #expect(try a.succeed("deleted", "list", "--json").output.contains("big.bin") == false)
            }
        }

        @Test func `others set the mode of one of two names`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("echo one > x; ln x y")
                try a.sync()
                try b.sync()
                try b.shell("chmod 600 x")
                try b.sync()
                try a.sync()
                try b.sync()
                try a.sync()
                // One file here, and so it is told of both.
                for device in [a, b] {
                    for name in ["x", "y"] { #expect(try Files.status(device.path(name)).st_mode & 0o777 == 0o600) }
                }
            }
        }

        @Test func `others move an item to a name that its file has got here as well`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("echo one > x")
                try a.sync()
                try b.waitForText("one\n", in: "x")
                try a.setOffline(true)
                try b.setOffline(true)
                try a.shell("ln x y")
                try b.shell("mv x y")
                try b.setOffline(false)
                try b.sync()
                try a.setOffline(false)
                try a.sync()
                try b.sync()
                try a.sync()
                try expectTree(a.mountPoint, is: Tree(b.mountPoint))
                #expect(try a.text("x") == "one\n")
                #expect(try a.text("y") == "one\n")
            }
        }

        /// The file that it was is at the other name still, as which others have it gone: that is no proof that the item went there.
        @Test func `others give a saved item the name of the copy that they have removed`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("echo one > doc; ln doc doc.bak")
                try a.sync()
                try b.waitForText("one\n", in: "doc")
                try b.waitForText("one\n", in: "doc.bak")
                try a.setOffline(true)
                try a.shell("echo mine > tmp; mv tmp doc")
                try b.shell("rm doc.bak; mv doc doc.bak")
                try b.sync()
                try a.setOffline(false)
                try a.sync()
                try b.sync()
                try a.sync()
                try expectTree(a.mountPoint, is: Tree(b.mountPoint))
                // Whether it goes on as what was saved or beside that: the name that others gave it stays, and so does what was saved.
                let names = try a.names()
                #expect(names.contains("doc.bak"))
                #expect(try names.map { try a.text($0) }.filter { $0 == "mine\n" }.count == 1)
            }
        }

        @Test func `what is written in a package is told of the file's other name`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("mkdir D.rtfd; echo one > D.rtfd/x; ln D.rtfd/x y")
                try a.sync()
                try b.waitForText("one\n", in: "y")
                try a.shell("echo two >> D.rtfd/x")
                try a.sync()
                try b.waitForText("one\ntwo\n", in: "y")
                // Nobody reads in it while it is exchanged: a package in use would wait.
                try b.sync()
                #expect(try b.text("D.rtfd/x") == "one\ntwo\n")
            }
        }

        /// Also of two packages, of those that a start has found, and of a mode.
        @Test func `what is written by another name of a package's file is told of the package`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                func told(_ text: String) throws {
                    try a.sync()
                    try b.sync()
                    for name in ["D.rtfd/x", "E.rtfd/z", "y"] { #expect(try b.text(name) == text, "\(name)") }
                }
                try a.shell("mkdir D.rtfd E.rtfd; echo one > D.rtfd/x; ln D.rtfd/x y; ln D.rtfd/x E.rtfd/z")
                try told("one\n")
                try a.shell("echo two >> y")
                try told("one\ntwo\n")
                try a.down()
                try a.up()
                try a.shell("echo three >> E.rtfd/z")
                try told("one\ntwo\nthree\n")
                try a.shell("rm y; chmod 600 D.rtfd/x")
                try a.sync()
                try b.sync()
                #expect(try b.shell("stat -c %a E.rtfd/z").output == "600\n")
            }
        }
    }
}
