import Glibc
import TestSupport
import Testing

extension MountTests {
    /// Claims against programs, the engine and each other.
    @Suite struct CoordinationTests {
        /// A command that holds claims until it is let go.
        struct Holder {
            let command: Command
            let flag: String

            /// Returns when the claims are held.
            init(_ device: Device, _ claims: [String], name: String = "holder") throws {
                let flag = device.site.outside + "/\(device.name)-\(name)-go"
                let script = "echo held \"$UBIQUITY_ITEM\"; until [ -e '\(flag)' ]; do sleep 0.02; done"
                let command = try device.start(["coordinate"] + claims + ["--", "bash", "-c", script])
                self.command = command
                self.flag = flag
                try eventually("\(name) holds \(claims)") {
                    guard command.isRunning else { throw TestFailure("\(try command.wait())") }
                    return command.outputSoFar.contains("held")
                }
            }

            @discardableResult
            func letGo() throws -> Command.Result {
                try Files.write("", to: flag)
                return try command.wait()
            }
        }

        private func device(_ site: Site, patience: Int? = nil) throws -> Device {
            let a = site.device("a", patience: patience)
            try a.up()
            try a.write("old", to: "f.txt")
            try a.write("old", to: "g.txt")
            try a.sync()
            return a
        }

        @Test func `coordinate runs its command with the path and passes its exit code`() async throws {
            try await withSite { site in
                let a = try device(site)
                let script =
                    "echo \"$UBIQUITY_ITEM|$UBIQUITY_ITEM_1|$UBIQUITY_ITEM_2\"; test -n \"$UBIQUITY_CLAIM\"; echo new > \"$UBIQUITY_ITEM\"; exit 7"
                let result = try a.run(
                    "coordinate",
                    "--write",
                    a.path("f.txt"),
                    "--read",
                    a.path("g.txt"),
                    "--",
                    "bash",
                    "-c",
                    script
                )
                #expect(result.code == 7, "\(result)")
                #expect(result.output == "\(a.path("f.txt"))|\(a.path("f.txt"))|\(a.path("g.txt"))\n")
                #expect(try a.text("f.txt") == "new\n")
                #expect(try a.json("claims").elements.isEmpty)
            }
        }

        @Test func `a plain open waits for another's write claim, and then sees what it wrote`() async throws {
            try await withSite { site in
                let a = try device(site)
                let holder = try Holder(a, ["--write", a.path("f.txt")])
                let writer = try a.startShell("echo from the program >> f.txt")
                let reader = try a.startShell("cat f.txt")
                try steadily("both wait") { writer.isRunning && reader.isRunning }
                try holder.letGo()
                #expect(try writer.wait(TestSettings.atOnce).isSuccess)
                #expect(try reader.wait(TestSettings.atOnce).isSuccess)
                #expect(try a.text("f.txt") == "oldfrom the program\n")
            }
        }

        @Test func `readers do not wait for a read claim, writers do`() async throws {
            try await withSite { site in
                let a = try device(site)
                let holder = try Holder(a, ["--read", a.path("f.txt")])
                let second = try Holder(a, ["--read", a.path("f.txt")], name: "second")
                #expect(try a.shell("cat f.txt", limit: .seconds(5)).output == "old")
                let writer = try a.startShell("echo x > f.txt")
                try steadily("the writer waits") { writer.isRunning }
                try holder.letGo()
                try steadily("the writer waits for the second as well") { writer.isRunning }
                try second.letGo()
                #expect(try writer.wait(TestSettings.atOnce).isSuccess)
            }
        }

        @Test func `other files are not touched by a claim`() async throws {
            try await withSite { site in
                let a = try device(site)
                let holder = try Holder(a, ["--write", a.path("f.txt")])
                try a.shell("cat g.txt; echo x > g.txt; mv g.txt h.txt; ls -l; stat f.txt", limit: .seconds(5))
                try holder.letGo()
            }
        }

        @Test(arguments: [
            "rm f.txt", "mv f.txt other.txt", "mv g.txt f.txt", "python3 -c 'import os; os.truncate(\"f.txt\", 1)'",
        ])
        func `short writes against a claim are refused at once`(script: String) async throws {
            try await withSite { site in
                let a = try device(site)
                let holder = try Holder(a, ["--write", a.path("f.txt")])
                let result = try a.startShell(script).wait(.seconds(40))
                #expect(!result.isSuccess, "\(result)")
                #expect(result.errors.contains("busy"), "\(result)")
                #expect(result.duration < TestSettings.atOnce, "\(result)")
                try holder.letGo()
                #expect(try a.text("f.txt") == "old")
            }
        }

        @Test
        func `nothing is made, moved or removed in a folder that another claims, or under a name that is claimed`()
            async throws
        {
            try await withSite { site in
                let a = try device(site)
                try a.shell("mkdir -p d/e; echo x > d/x")
                let holder = try Holder(a, ["--write", a.path("d"), "--write", a.path("new.txt")])
                let scripts = [
                    "echo > d/new", "mkdir d/new", "mkfifo d/new", "ln -s x d/new", "ln f.txt d/new", "mv f.txt d/new",
                    "mv d/x .", "rm d/x", "rmdir d/e", "echo > new.txt", "ln f.txt new.txt", "mv g.txt new.txt",
                ]
                for script in scripts {
                    let result = try a.startShell(script).wait(.seconds(40))
                    #expect(!result.isSuccess && result.errors.contains("busy"), "\(script): \(result)")
                    #expect(result.duration < TestSettings.atOnce, "\(script): \(result)")
                }
                try holder.letGo()
                #expect(try a.names("d") == ["e", "x"])
                try a.shell("echo > d/new; mv g.txt new.txt")
            }
        }

        @Test
        func
            `an open waits for a claim as long as the limit says, a patient one can be killed, another is told at once`()
            async throws
        {
            try await withSite { site in
                let a = try device(site, patience: 2)
                let holder = try Holder(a, ["--write", a.path("f.txt")])
                // At once: whoever waits gets another error.
                for flags in [O_RDONLY, O_RDWR] {
                    #expect(Files.readFailure(a.path("f.txt"), flags | O_NONBLOCK) == EAGAIN)
                }
                let reader = try a.startShell("exec cat f.txt")
                try steadily("the reader waits", for: .milliseconds(300)) { reader.isRunning }
                reader.send(SIGKILL)
                #expect(try reader.wait(.seconds(20)).code == 128 + SIGKILL)
                let start = ContinuousClock.now
                #expect(Files.readFailure(a.path("f.txt")) == EBUSY)
                let waited = ContinuousClock.now - start
                #expect(waited > .milliseconds(1900) && waited < TestSettings.atOnce, "\(waited)")
                try holder.letGo()
                #expect(Files.readFailure(a.path("f.txt"), O_RDWR | O_NONBLOCK) == nil)
            }
        }

        @Test func `what was claimed is free when coordinate has ended`() async throws {
            try await withSite { site in
                let a = try device(site)
                // The service is slow to hear what happens on its socket.
                let delay = ["-e", "trace=recvmsg", "-e", "inject=recvmsg:delay_enter=30000"]
                let slow = try geteuid() == 0 ? site.startTracing(a.servicePID(), delay) : nil
                // From one process to the next without anything between: a change of what is claimed is refused at once.
                let once = "$UBIQUITY coordinate --write f.txt --read g.txt -- true; mv f.txt h.txt; mv h.txt f.txt"
                try a.shell("for i in $(seq 10); do \(once); done")
                slow?.send(SIGINT)
                _ = try slow?.wait(.seconds(20))
            }
        }

        @Test func `who holds the claim need not wait, and is not told to`() async throws {
            try await withSite { site in
                let a = try device(site)
                let script = "import os; f = os.environ['UBIQUITY_ITEM']; os.open(f, os.O_RDWR | os.O_NONBLOCK)"
                try a.succeed("coordinate", "--write", a.path("f.txt"), "--", "python3", "-c", script)
            }
        }

        @Test func `claims wait for each other, the first come first`() async throws {
            try await withSite { site in
                let a = try device(site)
                let holder = try Holder(a, ["--read", a.path("f.txt")])
                let writer = try a.start([
                    "coordinate", "--write", a.path("f.txt"), "--", "bash", "-c",
                    "echo writer >> '\(site.outside)/order'",
                ])
                try eventually("the writer is in the list") { try a.json("claims").elements.count == 2 }
                let reader = try a.start([
                    "coordinate", "--read", a.path("f.txt"), "--", "bash", "-c",
                    "echo reader >> '\(site.outside)/order'",
                ])
                try eventually("the reader is in the list") { try a.json("claims").elements.count == 3 }
                try steadily("a later reader does not pass the waiting writer", for: .milliseconds(300)) {
                    reader.isRunning
                }
                let listing = try a.succeed("claims").output
                #expect(listing.contains("f.txt"), "\(listing)")
                try holder.letGo()
                try writer.wait(TestSettings.atOnce)
                try reader.wait(TestSettings.atOnce)
                #expect(try Files.text(site.outside + "/order") == "writer\nreader\n")
            }
        }

        @Test func `claims names the holder's pid and program`() async throws {
            try await withSite { site in
                let a = try device(site)
                let holder = try Holder(a, ["--write", a.path("f.txt")])
                let claims = try a.json("claims").elements
                #expect(claims.count == 1)
                #expect(claims.first?["pid"]?.integer == Int64(holder.command.pid), "\(claims)")
                try holder.letGo()
                try eventually("no claim is left") { try a.json("claims").elements.isEmpty }
            }
        }

        @Test func `a time limit ends in 75 with who holds it`() async throws {
            try await withSite { site in
                let a = try device(site)
                let holder = try Holder(a, ["--write", a.path("f.txt")])
                let result = try a.run("coordinate", "--write", a.path("f.txt"), "--timeout", "1", "--", "true")
                #expect(result.code == 75, "\(result)")
                #expect(result.errors.contains(String(holder.command.pid)), "\(result)")
                #expect(result.duration > .milliseconds(900) && result.duration < TestSettings.atOnce, "\(result)")
                try holder.letGo()
            }
        }

        @Test func `several claims are held all or none`() async throws {
            try await withSite { site in
                let a = try device(site)
                let holder = try Holder(a, ["--write", a.path("g.txt")])
                let both = try a.start([
                    "coordinate", "--write", a.path("f.txt"), "--write", a.path("g.txt"), "--", "true",
                ])
                try eventually("it waits") { try a.json("claims").elements.count == 2 }
                // f.txt is free meanwhile: nothing is held in part, and a program that asks for nothing gets it.
                try a.shell("echo more >> f.txt")
                try holder.letGo()
                #expect(try both.wait(TestSettings.atOnce).isSuccess)
            }
        }

        @Test func `a cycle is found at once and refused to the latest`() async throws {
            try await withSite { site in
                let a = try device(site)
                let binary = TestSettings.binary
                func crossing(_ first: String, _ second: String, _ mine: String, _ other: String) throws -> Command {
                    let meeting =
                        "touch '\(site.outside)/\(mine)'; until [ -e '\(site.outside)/\(other)' ]; do sleep 0.02; done"
                    let inner = "'\(binary)' coordinate --write '\(a.path(second))' -- true"
                    return try a.start([
                        "coordinate", "--write", a.path(first), "--", "bash", "-c", "\(meeting); \(inner)",
                    ])
                }
                let one = try crossing("f.txt", "g.txt", "one", "two")
                let two = try crossing("g.txt", "f.txt", "two", "one")
                let codes = [try one.wait(.seconds(15)), try two.wait(.seconds(15))].map(\.code).sorted()
                #expect(codes == [0, 75], "\(codes)")
            }
        }

        @Test func `a plain open that closes a cycle fails, and the other one goes on`() async throws {
            try await withSite { site in
                let a = try device(site)
                func crossing(_ mine: String, _ other: String) throws -> Command {
                    let script = """
                        touch '\(site.outside)/\(mine)'; until [ -e '\(site.outside)/\(other)' ]; do sleep 0.02; done
                        cat '\(a.path(other))'
                        """
                    return try a.start(["coordinate", "--write", a.path(mine), "--", "bash", "-c", script])
                }
                let both = [try crossing("f.txt", "g.txt"), try crossing("g.txt", "f.txt")]
                let results = try both.map { try $0.wait(.seconds(20)) }.sorted { $0.code < $1.code }
                #expect(results[0].code == 0 && results[0].output == "old", "\(results[0])")
                #expect(results[1].code == 1 && results[1].errors.contains("deadlock avoided"), "\(results[1])")
            }
        }

        @Test func `a nested coordinate does not wait for its own claim`() async throws {
            try await withSite { site in
                let a = try device(site)
                let inner =
                    "'\(TestSettings.binary)' coordinate --write '\(a.path("f.txt"))' -- bash -c 'echo inner > \"$UBIQUITY_ITEM\"'"
                try a.succeed("coordinate", "--write", a.path("f.txt"), "--", "bash", "-c", inner, limit: .seconds(10))
                #expect(try a.text("f.txt") == "inner\n")
            }
        }

        @Test func `kill -9 of the holder frees its claims`() async throws {
            try await withSite { site in
                let a = try device(site)
                let holder = try Holder(a, ["--write", a.path("f.txt")])
                let writer = try a.startShell("echo free > f.txt")
                try steadily("the writer waits", for: .milliseconds(300)) { writer.isRunning }
                holder.command.kill()
                #expect(try writer.wait(TestSettings.atOnce).isSuccess)
            }
        }

        @Test func `an incoming change waits for a write claim`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.write("old", to: "f.txt")
                try b.waitForText("old", in: "f.txt")
                let holder = try Holder(b, ["--write", b.path("f.txt")])
                try a.write("new", to: "f.txt")
                try a.sync()
                // Read behind the mount: a plain open would wait for the claim.
                let backing = try b.backing("f.txt")
                try steadily("B keeps what its holder claimed") { try Files.text(backing) == "old" }
                try holder.letGo()
                try b.waitForText("new", in: "f.txt")
                #expect(try b.conflicts() == [])
            }
        }

        @Test func `an incoming change waits while a program has the file open for writing`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.write("old", to: "f.txt")
                try b.waitForText("old", in: "f.txt")
                let file = try Files.open(b.path("f.txt"), O_RDWR)
                try a.write("new", to: "f.txt")
                try a.sync()
                try steadily("the writer's file stays") { try b.text("f.txt") == "old" }
                let result = try b.run("sync", "--timeout", "2")
                #expect(result.code == 75, "\(result)")
                #expect(result.errors.contains("f.txt"), "\(result)")
                close(file)
                try b.waitForText("new", in: "f.txt")
                #expect(try b.conflicts() == [])
            }
        }

        @Test func `an incoming change waits for no reader`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.write("old", to: "f.txt")
                try b.waitForText("old", in: "f.txt")
                let file = try Files.open(b.path("f.txt"), O_RDONLY)
                defer { close(file) }
                try a.write("new", to: "f.txt")
                try b.waitForText("new", in: "f.txt")
            }
        }

        @Test func `an upload waits for a write claim and takes what it left`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.write("old", to: "f.txt")
                try b.waitForText("old", in: "f.txt")
                let flag = site.outside + "/go"
                let script =
                    "echo half > \"$UBIQUITY_ITEM\"; echo held; until [ -e '\(flag)' ]; do sleep 0.02; done; echo whole > \"$UBIQUITY_ITEM\""
                let holder = try a.start(["coordinate", "--write", a.path("f.txt"), "--", "bash", "-c", script])
                try eventually("it holds the claim") { holder.outputSoFar.contains("held") }
                try steadily("B never sees the half") { try b.text("f.txt") == "old" }
                try Files.write("", to: flag)
                #expect(try holder.wait().isSuccess)
                try b.waitForText("whole\n", in: "f.txt")
            }
        }

        @Test func `a coordinated read of a dataless item fetches it first`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                let bytes = randomBytes(1 << 20)
                try a.write(bytes, to: "f.bin")
                try a.sync()
                try b.sync()
                try b.evict("f.bin")
                let result = try b.run("coordinate", "--read", b.path("f.bin"), "--", "cat", b.path("f.bin"))
                #expect(result.bytes == bytes)
                try b.evict("f.bin")
                try b.setOffline(true)
                let offline = try b.run("coordinate", "--read", b.path("f.bin"), "--", "true")
                #expect(offline.code == 75, "\(offline)")
            }
        }

        @Test func `a coordinated read of a dataless item waits for another's write claim, and not for its own`()
            async throws
        {
            try await withSite { site in
                let (a, b) = try site.pair()
                let bytes = randomBytes(100_000)
                try a.write(bytes, to: "f.bin")
                try a.sync()
                try b.sync()
                try b.evict("f.bin")
                let reading = ["coordinate", "--read", b.path("f.bin"), "--", "cat", b.path("f.bin")]
                let holder = try Holder(b, ["--write", b.path("f.bin")])
                let reader = try b.start(reading)
                try steadily("the reader waits") { reader.isRunning }
                try holder.letGo()
                var result = try reader.wait(TestSettings.atOnce)
                #expect(result.isSuccess && result.bytes == bytes, "\(result.code) \(result.errors)")
                try b.evict("f.bin")
                let within = ["coordinate", "--write", b.path("f.bin"), "--", TestSettings.binary]
                result = try b.run(within + reading, limit: TestSettings.atOnce)
                #expect(result.isSuccess && result.bytes == bytes, "\(result.code) \(result.errors)")
            }
        }

        /// What was granted while an eviction was on its way lost its content afterwards.
        @Test(arguments: ["f.bin", "P.rtfd"])
        func `who holds a read claim has the whole content, however often it is given up`(item: String) async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("mkdir P.rtfd; for i in $(seq 40); do head -c 64K /dev/urandom > P.rtfd/$i; done")
                try a.shell("head -c 1M /dev/urandom > f.bin")
                try a.sync()
                try b.sync()
                let flag = site.outside + "/enough"
                let giving = "until [ -e '\(flag)' ]; do \"$UBIQUITY\" evict \(item) > /dev/null 2>&1 || true; done"
                let evicting = try b.startShell(giving)
                // Behind the mount, where nobody brings what is looked at.
                let looking = """
                    sleep 0.1
                    find '\(try b.backing(item))' -type f -printf '%b\\n' |
                        awk '$1 < 100 { lacks = 3 } END { exit NR ? lacks : 4 }'
                    """
                var granted = 0
                for _ in 0..<20 {
                    let result = try b.run("coordinate", "--read", b.path(item), "--", "bash", "-c", looking)
                    // It may end before its grant: what it brings is given up at the same time.
                    #expect(result.code != 3 && result.code != 4, "\(result)")
                    if result.isSuccess { granted += 1 }
                }
                #expect(granted > 0)
                try Files.write("", to: flag)
                #expect(try evicting.wait(.seconds(30)).isSuccess)
            }
        }

        @Test func `a claim on something in a package is a claim on all of it`() async throws {
            try await withSite { site in
                let a = try device(site, patience: 2)
                try a.shell("mkdir -p D.rtfd/pics; echo text > D.rtfd/TXT.rtf; echo p > D.rtfd/pics/p.png")
                try a.sync()
                for item in ["D.rtfd", "D.rtfd/pics/p.png", "D.rtfd/pics/new"] {
                    let holder = try Holder(a, ["--write", a.path(item)], name: "of " + item.replacing("/", with: "-"))
                    #expect(Files.readFailure(a.path("D.rtfd/TXT.rtf"), O_RDONLY | O_NONBLOCK) == EAGAIN, "\(item)")
                    #expect(unlink(a.path("D.rtfd/pics/p.png")) == -1 && errno == EBUSY, "\(item)")
                    #expect(try a.text("f.txt") != "")
                    try holder.letGo()
                }
                #expect(try a.text("D.rtfd/TXT.rtf") == "text\n")
            }
        }

        @Test func `a coordinated read of a package has all of it here`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("mkdir -p D.rtfd/pics; echo text > D.rtfd/TXT.rtf; echo p > D.rtfd/pics/p.png")
                try a.sync()
                try b.sync()
                try b.succeed("coordinate", "--read", b.path("D.rtfd"), "--", "true")
                try b.setOffline(true)
                #expect(try b.text("D.rtfd/TXT.rtf") == "text\n" && b.text("D.rtfd/pics/p.png") == "p\n")
            }
        }

        @Test func `versions are read and resolved as contents are`() async throws {
            try await withSite { site in
                let a = try device(site, patience: 2)
                for text in ["1", "22", "333"] {
                    try a.write(text, to: "g.txt")
                    try a.sync()
                }
                let entries = try a.names(".versions/g.txt")
                let entry = ".versions/g.txt/" + (try #require(entries.first))
                let holder = try Holder(a, ["--write", a.path("g.txt")])
                #expect(Files.readFailure(a.path(entry), O_RDONLY | O_NONBLOCK) == EAGAIN)
                #expect(unlink(a.path(entry)) == -1 && errno == EBUSY)
                #expect(rename(a.path(entry), a.path("g.txt")) == -1 && errno == EBUSY)
                let reader = try a.startShell("cat '\(entry)'")
                let lister = try a.startShell("ls .versions/g.txt")
                try steadily("both wait", for: .milliseconds(300)) { reader.isRunning && lister.isRunning }
                try holder.letGo()
                #expect(try reader.wait().isSuccess && lister.wait().isSuccess)
                #expect(try a.names(".versions/g.txt") == entries)
            }
        }

        @Test func `how long an open waits is a setting, which counts at once and stays`() async throws {
            try await withSite { site in
                let a = try device(site)
                let holder = try Holder(a, ["--write", a.path("f.txt")])
                #expect(try a.succeed("config", "get", "claim-limit").output == "30s\n")
                for (limit, least) in [("1s", 1.0), ("0", 0)] {
                    try a.succeed("config", "set", "claim-limit", limit)
                    let start = ContinuousClock.now
                    #expect(Files.readFailure(a.path("f.txt")) == EBUSY)
                    let waited = ContinuousClock.now - start
                    #expect(waited > .seconds(least) - .milliseconds(50) && waited < TestSettings.atOnce, "\(waited)")
                }
                for words in [["claim-limit", "never"], ["claim-limit", "2h"], ["claimlimit", "1s"]] {
                    let refused = try a.run(["config", "set"] + words)
                    #expect(refused.code == 64 && refused.errors.contains(words[0]), "\(refused)")
                }
                try holder.letGo()
                try a.down()
                let listed = try a.json("config", "list").elements.map { $0["value"]?.string }
                #expect(listed == ["0s", "off", "auto", "on-demand", "off", "off", "on"])
                try a.succeed("config", "set", "claim-limit", "90s")
                try a.up()
                #expect(try a.succeed("config", "get", "claim-limit").output == "90s\n")
                let next = try Holder(a, ["--write", a.path("f.txt")], name: "next")
                let reader = try a.startShell("cat f.txt")
                try steadily("the reader waits") { reader.isRunning }
                try a.succeed("config", "reset", "claim-limit")
                #expect(try a.json("config", "get", "claim-limit")["default"]?.isTrue == true)
                try next.letGo()
                #expect(try reader.wait(TestSettings.atOnce).isSuccess)
            }
        }

        @Test func `a path outside every container is 64`() async throws {
            try await withSite { site in
                let a = try device(site)
                let result = try a.run("coordinate", "--read", "/etc/hostname", "--", "true")
                #expect(result.code == 64, "\(result)")
                #expect(result.errors.contains("not in a container"), "\(result)")
            }
        }
    }
}
