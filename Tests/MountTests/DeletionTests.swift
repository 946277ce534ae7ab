import Glibc
import TestSupport
import Testing

extension MountTests {
    /// Deletions are acts, and can be taken back.
    @Suite struct DeletionTests {
        @Test func `what is deleted on A goes from B, and comes back whole`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                let bytes = randomBytes(400_000)
                try Files.makeFolder(a.path("d"))
                try a.write(bytes, to: "d/f.bin")
                try a.sync()
                try b.sync()
                try Files.remove(a.path("d/f.bin"))
                try a.sync()
                try b.sync()
                #expect(!b.exists("d/f.bin"))
                let deleted = try b.json("deleted", "list").elements
                let entry = try #require(
                    deleted.first { $0["path"]?.string?.hasSuffix("d/f.bin") == true },
                    "\(deleted)"
                )
                let id = try #require(entry["id"]?.string)
                try b.succeed("deleted", "restore", id)
                try b.sync()
                try a.sync()
                #expect(try Files.read(a.path("d/f.bin")) == bytes)
                #expect(try Files.read(b.path("d/f.bin")) == bytes)
                #expect(try a.json("deleted", "list").elements.allSatisfy { $0["id"]?.string != id })
            }
        }

        @Test func `a deletion while the service was down is none`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.write("kept", to: "f.txt")
                try a.sync()
                try b.sync()
                let backing = try a.backing("f.txt")
                try a.killService()
                // Nobody deleted it: it is absent, as after a damage of the disk.
                try Files.remove(backing)
                try a.up()
                try a.sync()
                try b.sync()
                #expect(try b.text("f.txt") == "kept")
                #expect(try a.text("f.txt") == "kept")
            }
        }

        @Test func `a deletion just before a kill is not forgotten`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("for i in $(seq 20); do echo $i > f$i; done")
                try a.sync()
                try b.sync()
                try a.setOffline(true)
                try a.shell("rm f1 f2 f3")
                try a.killService()
                try a.up()
                try a.setOffline(false)
                try a.sync()
                try b.sync()
                for i in 1...3 {
                    #expect(!a.exists("f\(i)"))
                    #expect(!b.exists("f\(i)"))
                }
                #expect(try b.names().count == 17)
            }
        }

        @Test func `files in an unmounted folder are not deletions`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.write("kept", to: "f.txt")
                try a.sync()
                try b.sync()
                try a.down()
                #expect(try Files.names(in: a.mountPoint) == [])
                try a.up()
                try a.sync()
                try b.sync()
                #expect(try b.text("f.txt") == "kept")
            }
        }

        @Test(arguments: ["confirm", "undo"])
        func `a deletion of most of a container waits for a word`(answer: String) async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("for i in $(seq 120); do echo $i > f$i; done")
                try a.sync()
                try b.sync()
                try a.shell("rm f*")
                let held = try a.run("sync", "--timeout", "20", limit: .seconds(40))
                #expect(held.code == 75, "\(held)")
                #expect(try a.succeed("status").output.contains("delet"))
                // Some may have gone before it became clear that it would be most of them.
                #expect(try b.names().count >= 60)
                try a.succeed("deleted", answer)
                try a.sync()
                try b.sync()
                #expect(try a.names() == b.names())
                if answer == "confirm" {
                    #expect(try b.names() == [])
                } else {
                    #expect(try a.names().count >= 60)
                    try expectTree(b.mountPoint, is: Tree(a.mountPoint))
                }
            }
        }

        /// A folder that the cloud still has children of is not "another's" as long as only this device's own deletions wait in it.
        @Test func `none of the deletions that were made offline goes before they are seen to be many`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("mkdir d; for i in $(seq 1500); do echo $i > d/f$i; done")
                try a.sync()
                try b.sync()
                try a.setOffline(true)
                try a.shell("find d -type f -delete")
                try a.setOffline(false)
                let held = try a.run("sync", "--timeout", "20", limit: .seconds(40))
                #expect(held.code == 75, "\(held)")
                #expect(try b.names("d").count == 1500)
                try a.succeed("deleted", "undo")
                try a.sync()
                try b.sync()
                for device in [a, b] { #expect(try device.names("d").count == 1500, "on \(device.name)") }
                #expect(try a.text("d/f7") == "7\n")
            }
        }

        @Test func `a folder comes back with what was deleted with it, and an item with the folders above it`()
            async throws
        {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("mkdir -p p/q/r; echo 1 > p/1; echo 2 > p/q/2; echo 3 > p/q/r/3; echo 4 > p/q/4")
                try a.sync()
                try b.sync()
                let right = try Tree(b.mountPoint)
                try a.shell("rm -r p")
                try a.sync()
                try b.sync()
                func id(_ path: String) throws -> String {
                    let rows = try b.succeed("deleted", "list").output.split(separator: "\n")
                    let row = try #require(rows.first { $0.hasSuffix(path) })
                    return String(try #require(row.split(separator: " ").first))
                }
                try b.succeed("deleted", "restore", id("p/q/r/3"))
                try b.sync()
                #expect(try b.text("p/q/r/3") == "3\n")
                #expect(try b.names("p/q") == ["r"])
                try b.shell("rm -r p")
                try b.sync()
                try b.succeed("deleted", "restore", id("/p"))
                try b.sync()
                try a.sync()
                #expect(try b.text("p/q/r/3") == "3\n")
                try b.succeed("deleted", "restore", id("p/1"), id("p/q/2"), id("p/q/4"))
                for device in [b, a] { try device.sync() }
                for device in [a, b] { #expect(try Tree(device.mountPoint).paths == right.paths, "on \(device.name)") }
            }
        }

        @Test func `what was held and is here again is asked about no more`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("mkdir d; for i in $(seq 150); do echo $i > d/f$i; done")
                try a.sync()
                try a.shell("mv d .Trash-1000")
                try eventually("they are held") {
                    try a.json("status")["held-deletions"]?.integer ?? 0 > 100
                }
                try a.shell("mv .Trash-1000 d")
                try eventually("nothing is held") {
                    try a.json("status")["held-deletions"]?.integer ?? 0 == 0
                }
                try a.sync()
                #expect(try b.names("d").count == 150)
            }
        }

        @Test func `more than ten thousand deletions wait for their folder, and go with it`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("mkdir -p kept Photos/2001 Photos/2002")
                try a.shell("cd kept; seq 11000 | xargs touch")
                for year in [2001, 2002] { try a.shell("cd Photos/\(year); seq 5100 | xargs touch") }
                try a.sync()
                try a.shell("rm -r Photos/2001 Photos/2002")
                let held = try a.run("sync", "--timeout", "60", limit: .seconds(90))
                #expect(held.code == 75, "\(held)")
                #expect(try a.json("status")["held-deletions"]?.integer ?? 0 > 0)
                try a.shell("rmdir Photos")
                try a.sync()
                try b.sync()
                #expect(try b.names() == ["kept"])
                #expect(try b.names("kept").count == 11_000)
            }
        }

        @Test func `folders of held deletions do not come back by themselves`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("for i in $(seq 60); do mkdir -p d$i/e; echo $i > d$i/e/f; done")
                try a.sync()
                try b.sync()
                // One after the other, as a program would that removes what it made.
                try a.shell("for i in $(seq 60); do rm d$i/e/f; rmdir d$i/e; rmdir d$i; sleep 0.01; done")
                let held = try a.run("sync", "--timeout", "10", limit: .seconds(40))
                #expect(held.code == 75, "\(held)")
                #expect(try a.names() == [], "while they are held")
                try a.down()
                try a.up()
                #expect(try a.names() == [], "after a restart")
                try a.succeed("deleted", "confirm")
                try a.sync()
                try b.sync()
                #expect(try a.names() == [])
                #expect(try b.names() == [])
            }
        }
    }
}
