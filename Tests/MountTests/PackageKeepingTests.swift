import Glibc
import TestSupport
import Testing

extension MountTests {
    /// What content of packages is here, and how it goes.
    @Suite struct PackageKeepingTests {
        @Test func `what was read of a part of a file goes as well`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("mkdir D.rtfd; head -c 64M /dev/urandom > D.rtfd/movie; echo text > D.rtfd/text")
                try a.sync()
                try b.sync()
                try b.shell("head -c 1M D.rtfd/movie > /dev/null")
                try #expect(Files.allocated(b.backing("D.rtfd")) >= 1 << 20)
                // That it was closed the kernel tells a moment later.
                try eventually("it goes") {
                    try b.run("evict", b.path("D.rtfd")).isSuccess && Files.allocated(b.backing("D.rtfd")) < 128 << 10
                }
                try expectTree(b.path("D.rtfd"), is: Tree(a.path("D.rtfd")))
            }
        }

        @Test func `a file with two names keeps nothing but itself from going`() async throws {
            try await withSite { site in
                let (a, _) = try site.pair()
                try a.shell(
                    "mkdir D.rtfd; for f in a z; do head -c 300000 /dev/urandom > D.rtfd/$f; done; ln D.rtfd/a D.rtfd/b"
                )
                try a.sync()
                try eventually("what lies behind it goes") {
                    let result = try a.run("evict", a.path("D.rtfd"))
                    return try result.errors.contains("linked more than once")
                        && Files.allocated(a.backing("D.rtfd/z")) < 64 << 10
                }
                try #expect(Files.allocated(a.backing("D.rtfd/a")) >= 300_000)
            }
        }

        @Test func `beyond the limit the package goes of which no file was opened for longest`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                let names = ["P.rtfd", "Q.rtfd", "R.rtfd"]
                try a.shell(
                    "for p in \(names.joined(separator: " ")); do mkdir $p; head -c 1M /dev/urandom > $p/one; done"
                )
                try a.sync()
                try b.sync()
                try b.succeed("config", "set", "local-limit", "2560K")
                for name in names.prefix(2) {
                    try b.succeed("download", b.path(name))
                    try b.waitForState(["current"], of: name)
                }
                try b.shell("cat P.rtfd/one > /dev/null")
                try b.succeed("download", b.path("R.rtfd"))
                for (name, state) in [("Q.rtfd", "dataless"), ("P.rtfd", "current"), ("R.rtfd", "current")] {
                    try b.waitForState([state], of: name)
                }
                try b.succeed("config", "set", "local-limit", "1M")
                for name in names { try b.waitForState(["dataless"], of: name) }
            }
        }

        @Test(.enabled(if: TestSettings.smallFilesystem != nil, "root makes the small filesystem: run Tools/test"))
        func `a change for which there is no room does not take what there is`() async throws {
            try await withSite(limit: .seconds(300)) { site in
                let a = site.device("a")
                try a.up()
                let b = site.device("b", in: try site.smallFolder())
                try b.join(a.invite())
                try a.shell("mkdir D.rtfd; echo 1 > D.rtfd/one")
                for device in [a, b] { try device.sync() }
                try b.succeed("download", b.path("D.rtfd"))
                try b.waitForState(["current"], of: "D.rtfd")
                let before = try Processes.bytesRead(by: b.servicePID())
                try a.shell("head -c 150M /dev/urandom > D.rtfd/large; echo 22 > D.rtfd/one")
                try a.sync(limit: .seconds(120))
                try eventually("it is told", within: .seconds(60)) {
                    try b.json("status")["problems"]?.elements.isEmpty == false
                }
                try #expect(Processes.bytesRead(by: b.servicePID()) - before < 32 << 20)
                try #expect(b.text("D.rtfd/one") == "1\n")
            }
        }
    }
}
