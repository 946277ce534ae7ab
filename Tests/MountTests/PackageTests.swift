import Glibc
import TestSupport
import Testing

extension MountTests {
    /// Folders that are one document (semantics section 5).
    @Suite struct PackageTests {
        private static let make = """
            mkdir -p $P/sub; echo text > $P/TXT.rtf; head -c 700000 /dev/urandom > $P/picture.png
            echo deep > $P/sub/deep; ln -s sub/deep $P/link; : > $P/empty; chmod 600 $P/sub/deep
            setfattr -n user.note -v kept $P/TXT.rtf
            """

        private func make(_ name: String, on device: Device) throws {
            try device.shell(Self.make.replacing("$P", with: name))
        }

        private func status(_ device: Device, _ path: String) throws -> JSON {
            try #require(try device.json("status", device.path(path)).elements.first)
        }

        @Test func `it is one item, its names and sizes are there at once, its contents when they are read`()
            async throws
        {
            try await withSite { site in
                let (a, b) = try site.pair()
                try make("D.rtfd", on: a)
                try a.sync()
                try b.sync()
                try #expect(
                    b.shell("find D.rtfd -printf '%P %s %y\\n' | sort | grep -v ' d$'").output.contains(
                        "picture.png 700000 f"
                    )
                )
                let dataless = try status(b, "D.rtfd")
                #expect(dataless["kind"]?.string == "package" && dataless["state"]?.string == "dataless")
                #expect(dataless["local-bytes"]?.integer == 0)
                try #expect(b.json("status", b.mountPoint).elements.count == 1)
                // What lies in it is asked of it.
                try #expect(status(b, "D.rtfd/sub/deep")["path"]?.string == b.path("D.rtfd"))
                try expectTree(b.path("D.rtfd"), is: Tree(a.path("D.rtfd")))
                try b.waitForState(["current"], of: "D.rtfd")
                try #expect(status(b, "D.rtfd")["size"]?.integer == status(a, "D.rtfd")["size"]?.integer)
            }
        }

        @Test func `who sends it asks for nothing of it`() async throws {
            try await withSite { site in
                let (a, _) = try site.pair()
                for round in 1...2 {
                    try a.shell("mkdir -p D.rtfd; for i in $(seq 50); do echo \(round) > D.rtfd/$i; done")
                    try a.sync()
                }
                // The feed tells this device of it as well.
                try steadily("nothing has come") {
                    try a.json("status")["mounts"]?.elements.first?["bytes-received"]?.integer == 0
                }
            }
        }

        /// Waits without opening anything: a package in use is not replaced for a while.
        private func wait(_ device: Device, until condition: String) throws {
            let script = "for i in $(seq 200); do if \(condition); then exit 0; fi; sleep 0.2; done; exit 1"
            guard try device.startShell(script).wait(.seconds(60)).isSuccess else {
                throw TestFailure("on \(device.name) it did not come to that: \(condition)")
            }
        }

        @Test func `a change is seen as a whole, and only what changed is another file`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try make("D.rtfd", on: a)
                try a.shell("echo 0 > D.rtfd/one; echo 0 > D.rtfd/two")
                try a.sync()
                try b.sync()
                try b.succeed("download", b.path("D.rtfd"))
                let before = try b.shell("stat -c %i D.rtfd/picture.png").output
                // Whoever keeps the folder open goes on in what it was, and whoever walks there sees one state.
                let old = try b.startShell(
                    "cd D.rtfd; until [ -e \(b.home)/go ]; do sleep 0.05; done; cat one two"
                )
                try a.shell("echo 11 > D.rtfd/one; sleep 0.5; echo 11 > D.rtfd/two")
                try wait(b, until: "[ $(stat -c %s D.rtfd/one) = 3 ]")
                try #expect(b.shell("stat -c %s D.rtfd/two").output == "3\n")
                try b.shell("touch \(b.home)/go")
                try #expect(old.wait(TestSettings.atOnce).output == "0\n0\n")
                try #expect(b.shell("stat -c %i D.rtfd/picture.png").output == before)
                try expectTree(b.path("D.rtfd"), is: Tree(a.path("D.rtfd")))
            }
        }

        @Test func `a copy in it is a file of its own everywhere`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try make("D.rtfd", on: a)
                try a.sync()
                try b.sync()
                try b.succeed("download", b.path("D.rtfd"))
                // With its time, so that nothing but the name tells it from the other one.
                try a.shell("cp -a D.rtfd/sub D.rtfd/copy")
                try a.sync()
                try wait(b, until: "[ -e D.rtfd/copy/deep ]")
                try #expect(b.shell("stat -c %i D.rtfd/copy/deep D.rtfd/sub/deep | uniq | wc -l").output == "2\n")
                try b.shell("echo more >> D.rtfd/sub/deep")
                for device in [b, a] { try device.sync() }
                try wait(a, until: "[ $(wc -l < D.rtfd/sub/deep) = 2 ]")
                for device in [a, b] {
                    try #expect(device.shell("cat D.rtfd/copy/deep").output == "deep\n")
                }
            }
        }

        @Test func `a change goes out when all of it is quiet and closed`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("mkdir W.pages; echo 1 > W.pages/one")
                try wait(b, until: "[ -e W.pages/one ]")
                let go = a.home + "/go"
                let writer = try a.startShell(
                    "exec 3>> W.pages/two; echo begun >&3; until [ -e \(go) ]; do sleep 0.05; done; echo done >&3"
                )
                try wait(a, until: "[ -s W.pages/two ]")
                try a.shell("echo 22 > W.pages/one; sleep 5")
                try #expect(b.shell("ls W.pages; stat -c %s W.pages/one").output == "one\n2\n")
                try a.shell("touch \(go)")
                #expect(try writer.wait(TestSettings.atOnce).isSuccess)
                try wait(b, until: "[ -e W.pages/two ]")
                try #expect(b.shell("cat W.pages/*").output == "22\nbegun\ndone\n")
            }
        }

        /// The driver tells of a file's writing once, until the engine reads it.
        @Test(arguments: ["ordinary", "default"])
        func `the same file written again while it stays open is sent again`(driver: String) async throws {
            try await withSite { site in
                let a = site.device("a", variables: driver == "ordinary" ? ["UBIQUITY_DRIVER": driver] : [:])
                try a.up()
                let pipe = a.home + "/lines"
                try a.shell("mkdir W.pages; echo 1 > W.pages/one; mkfifo \(pipe)")
                try a.sync()
                let writer = try a.startShell(
                    // Open for both, so that it never ends: a pipe reopened while the last writer still closes it would.
                    "exec 3>> W.pages/one 4<> \(pipe); while read -r line <&4; do [ $line != end ] || exit 0; echo $line >&3; done"
                )
                for round in 1...3 {
                    let before = try status(a, "W.pages")["revision"]?.string
                    try a.shell("echo line > \(pipe)")
                    try wait(a, until: "[ $(stat -c %s W.pages/one) = \(2 + 5 * round) ]")
                    try a.sync()
                    try #expect(status(a, "W.pages")["revision"]?.string != before)
                }
                try a.shell("echo end > \(pipe)")
                #expect(try writer.wait(TestSettings.atOnce).isSuccess)
            }
        }

        @Test func `changed on two devices, it is one conflict, and both states are whole`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try make("D.rtfd", on: a)
                try a.sync()
                try b.sync()
                try b.setOffline(true)
                try a.shell("echo of a > D.rtfd/TXT.rtf; echo of a > D.rtfd/a")
                try a.sync()
                try b.shell("echo of b > D.rtfd/b; rm D.rtfd/empty")
                try b.setOffline(false)
                try b.sync()
                try a.sync()
                // Later, so it wins; and there is nothing of A's in it.
                try #expect(
                    a.shell("ls D.rtfd; cat D.rtfd/TXT.rtf").output == "TXT.rtf\nb\nlink\npicture.png\nsub\ntext\n"
                )
                try expectTree(b.path("D.rtfd"), is: Tree(a.path("D.rtfd")))
                for device in [a, b] { try #expect(status(device, "D.rtfd")["conflicts"]?.integer == 1) }
                try a.succeed("versions", "resolve", a.path("D.rtfd"), "--keep", "current")
                try a.sync()
                try b.sync()
                try #expect(status(b, "D.rtfd")["conflicts"]?.integer == 0)
            }
        }

        @Test func `what is evicted stays what it is, and what is changed is sent without the rest`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try make("D.rtfd", on: a)
                try a.sync()
                try b.sync()
                try b.succeed("download", b.path("D.rtfd"))
                try b.waitForState(["current"], of: "D.rtfd")
                try b.succeed("evict", b.path("D.rtfd"))
                try #expect(status(b, "D.rtfd")["local-bytes"]?.integer == 0)
                // Through a restart: what stands for its files still finds them.
                try b.down()
                try b.up()
                try b.shell("echo more >> D.rtfd/TXT.rtf; mv D.rtfd/sub/deep D.rtfd/moved")
                try b.sync()
                try #expect(status(b, "D.rtfd")["local-bytes"]?.integer ?? .max < 1000)
                try a.sync()
                try wait(a, until: "[ -e D.rtfd/moved ]")
                try #expect(a.shell("cat D.rtfd/TXT.rtf").output == "text\nmore\n")
                try expectTree(b.path("D.rtfd"), is: Tree(a.path("D.rtfd")))
                // Not all of it is sent that is not here: it is not evicted before it is sent.
                try b.setOffline(true)
                try b.shell("echo unsent >> D.rtfd/TXT.rtf")
                try #expect(b.run("evict", b.path("D.rtfd")).code != 0)
                try #expect(b.shell("tail -1 D.rtfd/TXT.rtf").output == "unsent\n")
            }
        }

        @Test func `what is moved out before its content is here comes, although the package goes on without it`()
            async throws
        {
            try await withSite { site in
                let (a, b) = try site.pair()
                try make("D.rtfd", on: a)
                try a.sync()
                try b.sync()
                let picture = try Files.read(a.path("D.rtfd/picture.png"))
                try b.setOffline(true)
                try b.shell("mv D.rtfd/picture.png out.png; echo more > D.rtfd/more")
                // Nothing but what is on the disk says of which revision it was a part.
                try b.killService()
                try b.up()
                try b.setOffline(false)
                try b.sync()
                try b.shell("echo again >> D.rtfd/more")
                for device in [b, a] { try device.sync() }
                #expect(try Files.read(b.path("out.png")) == picture)
                #expect(try Files.read(a.path("out.png")) == picture)
                try expectTree(b.mountPoint, is: Tree(a.mountPoint))
            }
        }

        @Test func `folders become packages by name and by attribute, and what is moved in and out follows`()
            async throws
        {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell(
                    "mkdir -p plain/in named/in; echo 1 > plain/in/one; echo 2 > named/in/two; echo file > file"
                )
                try a.sync()
                try b.sync()
                try #expect(status(b, "plain")["kind"]?.string == "folder")
                try a.shell("setfattr -n user.ubiquity.package -v 1 plain; mv named named.rtfd")
                for (name, content) in [("plain", "1\n"), ("named.rtfd", "2\n")] {
                    try wait(b, until: "$UBIQUITY status \(name) --json 2>&1 | grep -q '\"package\"'")
                    try #expect(b.shell("cat \(name)/in/*").output == content)
                }
                try wait(b, until: "[ ! -e named ]")
                try #expect(b.names() == ["file", "named.rtfd", "plain"])
                // In and out again.
                try a.shell("mv file named.rtfd/; mv named.rtfd/in out")
                try wait(b, until: "[ -e out/two -a -e named.rtfd/file -a ! -e file -a ! -e named.rtfd/in ]")
                try #expect(b.shell("cat out/two named.rtfd/file").output == "2\nfile\n")
                try a.sync()
                try #expect(status(b, "out")["kind"]?.string == "folder")
                // Renamed, it is the same item.
                let revision = try status(a, "named.rtfd")["revision"]?.string
                try a.shell("mv named.rtfd other.rtfd")
                try a.sync()
                try b.sync()
                try #expect(b.names() == ["other.rtfd", "out", "plain"])
                try #expect(status(b, "other.rtfd")["revision"]?.string == revision)
                try a.shell("rm -r other.rtfd plain")
                try a.sync()
                try wait(b, until: "[ ! -e other.rtfd -a ! -e plain ]")
                try #expect(b.names() == ["out"])
            }
        }

        @Test func `a safe save by exchange and by renaming goes on as the same document`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try make("D.rtfd", on: a)
                try a.sync()
                try b.sync()
                try a.shell(
                    "cp -r D.rtfd tmp.rtfd; echo saved > tmp.rtfd/TXT.rtf; mv D.rtfd old.rtfd; mv tmp.rtfd D.rtfd; rm -r old.rtfd"
                )
                try a.sync()
                try wait(b, until: "[ $(stat -c %s D.rtfd/TXT.rtf) = 6 -a ! -e tmp.rtfd -a ! -e old.rtfd ]")
                try #expect(b.names() == ["D.rtfd"])
                try #expect(status(b, "D.rtfd")["conflicts"]?.integer == 0)
            }
        }

        @Test func `killed while it changes, no state is lost and none is mixed`() async throws {
            try await withSite(limit: .seconds(180)) { site in
                let (a, b) = try site.pair()
                try a.shell("mkdir K.rtfd; echo 0 > K.rtfd/one; echo 0 > K.rtfd/two")
                try a.sync()
                try b.sync()
                for round in 1...6 {
                    try a.shell("echo \(round) > K.rtfd/one; echo \(round) > K.rtfd/two; mkdir -p K.rtfd/d\(round)")
                    if round % 2 == 0 { try a.sync() }
                    let victim = round % 3 == 0 ? a : b
                    // At once, or with the new state just in its place.
                    if round == 4 { try wait(b, until: "[ -e K.rtfd/d4 ]") }
                    try victim.killService()
                    try victim.up()
                    let seen = try b.shell("cat K.rtfd/one K.rtfd/two").output.split(separator: "\n")
                    #expect(seen.count == 2 && seen[0] == seen[1], "\(seen)")
                }
                try a.sync()
                try wait(
                    b,
                    until:
                        "[ $(ls K.rtfd | wc -l) = 8 -a $(stat -c %Y K.rtfd/one) = $(stat -c %Y \(a.path("K.rtfd/one"))) ]"
                )
                try #expect(b.shell("cat K.rtfd/one K.rtfd/two").output == "6\n6\n")
                for device in [a, b] { try #expect(status(device, "K.rtfd")["conflicts"]?.integer == 0) }
            }
        }
    }
}
