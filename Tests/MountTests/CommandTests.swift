import Glibc
import TestSupport
import Testing

extension MountTests {
    /// What the command line promises beside its effects: help, exit codes, words, JSON.
    @Suite struct CommandTests {
        static let verbs = [
            ["up"], ["invite"], ["join"], ["down"], ["serve"], ["account"], ["account", "add"], ["account", "list"],
            ["account", "remove"], ["device"], ["device", "list"], ["device", "revoke"], ["container"],
            ["container", "list"],
            ["container", "create"], ["container", "remove"], ["mount"], ["unmount"], ["offline"], ["activity"],
            ["status"],
            ["download"], ["evict"], ["pin"], ["unpin"], ["sync"], ["conflicts"], ["versions"], ["versions", "show"],
            ["versions", "restore"], ["versions", "resolve"], ["deleted"], ["deleted", "list"], ["deleted", "restore"],
            ["deleted", "confirm"], ["deleted", "undo"], ["coordinate"], ["claims"], ["completions"],
            ["policy"], ["policy", "list"], ["policy", "set"], ["policy", "allow"], ["policy", "deny"],
            ["policy", "reset"],
        ]

        @Test func `every verb has --help`() async throws {
            try await withSite { site in
                let a = site.device("a")
                for verb in Self.verbs {
                    let result = try a.run(verb + ["--help"])
                    #expect(result.code == 0 && result.output.contains("USAGE"), "\(result)")
                }
            }
        }

        @Test(arguments: [
            ["no-such-verb"], ["evict"], ["offline", "perhaps"], ["sync", "--timeout", "soon"], ["join", "only-a-url"],
            ["policy", "set", "restic", "perhaps"], ["policy", "allow"],
            ["invite", "--address", "a b"], ["invite", "--address", ""], ["invite", "--address", "box.local:80"],
            ["invite", "--address", "http://box"],
        ])
        func `wrong usage is 64`(words: [String]) async throws {
            try await withSite { site in
                let result = try site.device("a").run(words)
                #expect(result.code == 64, "\(result)")
            }
        }

        @Test(arguments: [
            ["status"], ["sync"], ["activity"], ["conflicts"], ["claims"], ["offline", "on"], ["policy"],
        ])
        func `without a service it is 69`(words: [String]) async throws {
            try await withSite { site in
                let result = try site.device("a").run(words)
                #expect(result.code == 69, "\(result)")
                #expect(result.errors.hasPrefix("ubiquity: "), "\(result)")
                #expect(result.errors.split(separator: "\n").count == 1, "one line: \(result)")
            }
        }

        @Test func `asking for accounts where there is no server makes none`() async throws {
            try await withSite { site in
                let a = site.device("a")
                #expect(try a.json("account", "list").elements.isEmpty)
                let removed = try a.run("account", "remove", "anna")
                #expect(removed.code == 1 && removed.errors.contains("there is no account anna"), "\(removed)")
                #expect(!Files.exists(a.home))
            }
        }

        @Test func `offline no server elsewhere is asked, whether a service runs or not`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                for device in [a, b] { try device.setOffline(true) }
                for words in [
                    ["device", "list"], ["device", "revoke", "a"], ["invite"], ["container", "list"],
                    ["container", "create", "new"], ["container", "remove", "new"],
                ] {
                    let result = try b.run(words)
                    #expect(result.code == 75 && result.errors.contains("`ubiquity offline off`"), "\(result)")
                }
                try b.down()
                #expect(try b.run("device", "list").code == 75)
                // Its own is on its machine.
                #expect(try a.json("device", "list").elements.count == 2)
                #expect(try a.json("container", "list").elements.count == 1)
                try b.up()
                try b.setOffline(false)
                #expect(try b.json("device", "list").elements.count == 2)
            }
        }

        @Test(arguments: ["bash", "zsh", "fish"])
        func `completions are printed for a shell`(shell: String) async throws {
            try await withSite { site in
                let result = try site.device("a").succeed("completions", shell)
                #expect(result.output.contains("ubiquity"))
                #expect(result.output.contains("coordinate"))
                guard shell == "bash" else { return }
                let script = site.outside + "/completions"
                try Files.write(result.bytes, to: script)
                try TestSupport.succeed("bash", "-n", script)
            }
        }

        @Test func `what prints state prints it as JSON too`() async throws {
            try await withSite { site in
                let (a, _) = try site.pair()
                try a.write("text", to: "a.txt")
                try a.sync()
                for words in [
                    ["status"], ["activity"], ["conflicts"], ["claims"], ["deleted", "list"], ["device", "list"],
                    ["container", "list"], ["policy", "list"],
                ] {
                    let result = try a.run(words + ["--json"])
                    #expect(result.code == 0, "\(result)")
                    _ = try JSON(result.bytes)
                    let forPeople = try a.run(words)
                    #expect(forPeople.code == 0, "\(forPeople)")
                    #expect(!forPeople.output.contains("\u{1b}"), "colours without a terminal: \(forPeople)")
                }
                let item = try a.status(of: "a.txt")
                #expect(item["state"]?.string == "current", "\(item)")
                #expect(item["size"]?.integer == 4, "\(item)")
                #expect(item["conflicts"]?.integer == 0, "\(item)")
                #expect(item["percent"]?.number == 100, "\(item)")
                #expect((item["local-bytes"]?.integer ?? 0) >= 4, "\(item)")
                #expect(item["revision"]?.string?.isEmpty == false, "\(item)")
            }
        }

        @Test func `an option that FUSE does not know is named`() async throws {
            try await withSite { site in
                let a = site.device("a")
                try a.up()
                try a.succeed("container", "create", "other")
                let result = try a.run("mount", "other", a.mountPoint + "-other", "-o", "nonsense")
                #expect(result.code == 1, "\(result)")
                #expect(result.errors.contains("unknown option") && result.errors.contains("nonsense"), "\(result)")
                #expect(!Files.exists(a.mountPoint + "-other"), "what was made for it is left")
            }
        }

        @Test func `output that cannot be written is a failure`() async throws {
            try await withSite { site in
                let a = site.device("a")
                try a.up()
                for verb in ["status --json", "config list"] {
                    let result = try a.startShell("$UBIQUITY \(verb) > /dev/full").wait(.seconds(20))
                    #expect(result.code == 1, "\(verb): \(result)")
                    #expect(result.errors.contains("No space left"), "\(verb): \(result)")
                }
                // Whoever reads no further has what he wanted.
                try a.shell("$UBIQUITY status --json | head -c 1")
            }
        }

        @Test func `some of several paths is 2, and each is named with its reason`() async throws {
            try await withSite { site in
                let (a, _) = try site.pair()
                try a.write("good", to: "good.txt")
                try a.sync()
                let result = try a.run("evict", a.path("good.txt"), a.path("absent.txt"))
                #expect(result.code == 2, "\(result)")
                #expect(result.errors.contains("absent.txt"), "\(result)")
                #expect(try a.state(of: "good.txt") == "dataless")
            }
        }

        @Test func `paths may be relative`() async throws {
            try await withSite { site in
                let a = site.device("a")
                try a.up()
                try Files.makeFolder(a.path("sub"))
                try a.write("text", to: "sub/a.txt")
                try a.sync()
                let result = try a.start(["status", "a.txt", "--json"], folder: a.path("sub")).wait()
                #expect(result.isSuccess, "\(result)")
                #expect(try JSON(result.bytes).elements.first?["state"]?.string == "current")
            }
        }

        @Test func `a path outside every mount is an error that says so`() async throws {
            try await withSite { site in
                let a = site.device("a")
                try a.up()
                let result = try a.run("evict", "/etc/hostname")
                #expect(result.code != 0)
                #expect(result.errors.contains("/etc/hostname"), "\(result)")
            }
        }

        @Test func `containers are made, mounted beside one another, and removed`() async throws {
            try await withSite { site in
                let a = site.device("a")
                try a.up()
                try a.succeed("container", "create", "org.example.notes", "--layout", "app")
                let listed = try a.json("container", "list").elements.compactMap { $0["id"]?.string }
                #expect(listed.sorted() == ["Documents", "org.example.notes"])
                let second = site.folder + "/notes"
                try Files.makeFolder(second)
                try a.succeed("mount", "org.example.notes", second)
                try Files.write("note", to: second + "/n.txt")
                try a.write("document", to: "d.txt")
                #expect(try Files.names(in: second) == ["n.txt"])
                #expect(try a.names() == ["d.txt"])
                try a.succeed("unmount", second)
                #expect(!Mounts.isMounted(second))
                #expect(try a.text("d.txt") == "document")
                // Asks on a terminal only.
                try a.succeed("container", "remove", "org.example.notes")
                #expect(try a.json("container", "list").elements.count == 1)
            }
        }

        @Test func `sync is 1 when nothing is mounted: what waits there is not known`() async throws {
            try await withSite { site in
                let a = site.device("a")
                try a.up()
                // What the cloud has is known by then.
                try a.sync()
                try a.setOffline(true)
                try a.write("never sent", to: "a.txt")
                try a.succeed("unmount", a.mountPoint)
                let sync = try a.run("sync", "--timeout", "5", limit: .seconds(20))
                #expect(sync.code == 1 && sync.errors.contains("no container is mounted"), "\(sync)")
            }
        }

        /// The service goes on for another container.
        private func mountSecond(_ device: Device, _ site: Site) throws -> String {
            let second = site.folder + "/notes"
            try Files.makeFolder(second)
            try device.succeed("container", "create", "notes")
            try device.succeed("mount", "notes", second)
            return second
        }

        @Test func `sync ends when what it waits for is unmounted, and that can be mounted again`() async throws {
            try await withSite { site in
                let a = site.device("a")
                try a.up()
                let second = try mountSecond(a, site)
                // All of it would take longer than this waits.
                try a.succeed("config", "set", "bandwidth", "1M/off")
                try TestSupport.succeed("bash", "-c", "head -c 32M /dev/urandom > large", folder: second)
                let sync = try a.start(["sync"])
                try steadily("it is being sent") { sync.isRunning }
                try a.succeed("unmount", second)
                let result = try sync.wait(TestSettings.atOnce)
                #expect(result.code == 75 && result.errors.contains("unmounted meanwhile"), "\(result)")
                try eventually("it is mounted again", within: TestSettings.atOnce) {
                    try a.run("mount", "notes", second).isSuccess
                }
                try a.succeed("config", "reset", "bandwidth")
                try a.sync()
            }
        }

        @Test func `a download ends when its container is unmounted, and goes on when that is mounted again`()
            async throws
        {
            try await withSite { site in
                let (a, b) = try site.pair()
                _ = try mountSecond(b, site)
                try a.shell("head -c 32M /dev/urandom > large")
                try a.sync()
                try b.sync()
                // All of it would take longer than this waits.
                try b.succeed("config", "set", "bandwidth", "off/1M")
                let download = try b.start(["download", b.path("large")])
                try eventually("some of it has come") { try b.localBytes(of: "large") > 0 }
                try b.succeed("unmount", b.mountPoint)
                let result = try download.wait(TestSettings.atOnce)
                #expect(result.code == 75 && result.errors.contains("unmounted meanwhile"), "\(result)")
                try eventually("it is mounted again", within: TestSettings.atOnce) {
                    try b.run("mount", "Documents", b.mountPoint).isSuccess
                }
                try b.succeed("config", "reset", "bandwidth")
                try b.succeed("download", b.path("large"))
                #expect(try Tree.digest(a.path("large")) == Tree.digest(b.path("large")))
            }
        }

        @Test(arguments: ["unmounted by somebody else", "killed"])
        func `up brings back whichever container was there`(end: String) async throws {
            try await withSite { site in
                let a = site.device("a")
                try a.up()
                try a.succeed("container", "create", "notes")
                let second = site.folder + "/second"
                try a.succeed("mount", "notes", second)
                try Files.write("note", to: second + "/n.txt")
                try a.write("document", to: "d.txt")
                if end == "killed" {
                    try a.killService()
                } else {
                    try TestSupport.succeed("fusermount3", "-u", second)
                }
                let up = try a.succeed("up", second)
                #expect(up.output.hasPrefix("notes "), "\(up)")
                #expect(Mounts.points(under: second) == [second])
                #expect(try Files.text(second + "/n.txt") == "note")
                // A service that has just been started does one after the other.
                try eventually("the first one is there as well") { (try? a.text("d.txt")) == "document" }
            }
        }

        /// `XDG_RUNTIME_DIR` comes with the first login and goes with the last: a service that was started before would not be found.
        @Test func `where the service listens does not depend on a login`() async throws {
            try await withSite { site in
                let program = """
                    import os, socket
                    folder = os.environ["HOME"] + "/.local/state/ubiquity"
                    os.makedirs(folder)
                    os.chdir(folder)
                    listener = socket.socket(socket.AF_UNIX)
                    listener.bind("socket")
                    listener.listen()
                    print("listening", flush=True)
                    listener.accept()[0].recv(1)
                    """
                var environment = Command.plainEnvironment
                environment["HOME"] = site.outside
                let listener = try site.start(["python3", "-c", program], environment: environment)
                try eventually("it listens") { listener.outputSoFar.contains("listening") }
                let login = site.folder + "/login"
                try Files.makeFolder(login)
                environment["XDG_RUNTIME_DIR"] = login
                let status = try site.start([TestSettings.binary, "status"], environment: environment).wait()
                // It hangs up, so that there is no answer.
                #expect(!status.isSuccess, "\(status)")
                try eventually("it was asked; \(status)", within: TestSettings.atOnce) { !listener.isRunning }
                #expect(try listener.wait().isSuccess)
                #expect(try Files.names(in: login) == [])
            }
        }

        @Test func `a server of its own serves accounts with their own containers`() async throws {
            try await withSite { site in
                let server = try Server(site, data: site.folder + "/cloud")
                let codes = [try server.addAccount("anna"), try server.addAccount("bert")]
                let devices = [site.device("a"), site.device("b")]
                for (device, code) in zip(devices, codes) {
                    try device.join(.init(url: server.url, code: code))
                    try device.write("only \(device.name)", to: "mine.txt")
                    try device.sync()
                }
                #expect(try devices[0].names() == ["mine.txt"])
                #expect(try devices[0].text("mine.txt") == "only a")
                #expect(try devices[1].text("mine.txt") == "only b")
            }
        }

        @Test func `a path that leads nowhere keeps no other from being asked about`() async throws {
            try await withSite { site in
                let (a, _) = try site.pair()
                try a.write("good", to: "good.txt")
                try a.sync()
                let beneath = a.path("good.txt/beneath/it")
                let both = try a.run("evict", beneath, a.path("good.txt"))
                #expect(both.code == 2 && both.errors == "ubiquity: \(beneath): Not a directory\n", "\(both)")
                #expect(try a.state(of: "good.txt") == "dataless")
                for verb in ["status", "download", "evict", "pin", "unpin"] {
                    let alone = try a.run(verb, beneath)
                    #expect(alone.code == 1 && alone.errors == "ubiquity: \(beneath): Not a directory\n", "\(alone)")
                    #expect(try a.run(verb, "").code == 64)
                }
            }
        }

        @Test func `a name does nothing to the terminal`() async throws {
            try await withSite { site in
                let a = site.device("a")
                try a.up()
                let result = try a.run("evict", a.path("\u{1b}[31mred"))
                #expect(result.code == 1 && result.errors.contains("\u{FFFD}[31mred"), "\(result)")
                #expect(!result.errors.contains("\u{1b}"), "\(result)")
            }
        }

        /// Short to type, and 800 bytes each for the service: more than it takes at once.
        @Test func `as many paths as a command line holds are asked about`() async throws {
            try await withSite { site in
                let a = site.device("a")
                try a.up()
                let deep = Array(repeating: String(repeating: "d", count: 200), count: 4).joined(separator: "/")
                try a.shell("mkdir -p \(deep); touch \(deep)/7")
                let result = try a.startShell("cd \(deep); exec \"$UBIQUITY\" status --json $(seq 6000)").wait()
                #expect(result.code == 2, "\(result)")
                #expect(try JSON(result.bytes).elements.count == 1)
                #expect(result.errors.split(separator: "\n").count == 5999)
            }
        }

        /// More than one answer has.
        @Test func `a folder's status is whole, however much is in it`() async throws {
            try await withSite { site in
                let a = site.device("a")
                try a.up()
                #expect(try a.succeed("status", a.mountPoint, "--json").output == "[]\n")
                try a.shell("mkdir d; touch d/f")
                let few = try a.succeed("status", a.path("d"), "--json").output
                #expect(few.hasPrefix("[\n  {\n    \"path\": ") && few.hasSuffix("\n  }\n]\n"), "\(few)")
                #expect(few.contains("\n  },\n  {\n    \"path\": "), "\(few)")
                try a.shell(
                    "for d in $(seq 4); do mkdir -p $d/in; (cd $d; seq 2000 | xargs touch; cd in; seq 1000 | xargs touch); done"
                )
                let names = try a.shell("find . -mindepth 1 -printf '%P\\n'").output.split(separator: "\n")
                #expect(names.count == 2 + 4 * 3002)
                let paths = try a.json("status", a.mountPoint).elements.compactMap { $0["path"]?.string }
                #expect(paths.count == names.count)
                #expect(Set(paths) == Set(names.map { a.path(String($0)) }))
                let lines = try a.succeed("status", a.mountPoint).output.split(separator: "\n")
                #expect(lines.count == names.count + 1)
                #expect(lines.filter { $0.hasPrefix("STATE") }.count == 1)
            }
        }
    }
}
