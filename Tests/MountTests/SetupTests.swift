import Glibc
import TestSupport
import Testing

extension MountTests {
    /// `up`, `invite`, `join`, `down`: the two commands of the README and what belongs to them.
    @Suite struct SetupTests {
        @Test func `up mounts a folder that programs can use`() async throws {
            try await withSite { site in
                let a = site.device("a")
                try a.up()
                #expect(Mounts.isMounted(a.mountPoint))
                #expect(try a.names() == [])
                try a.write("hello", to: "a.txt")
                #expect(try a.text("a.txt") == "hello")
                try a.sync()
                #expect(try a.state(of: "a.txt") == "current")
            }
        }

        @Test func `a second up is harmless`() async throws {
            try await withSite { site in
                let a = site.device("a")
                try a.up()
                try a.write("hello", to: "a.txt")
                let before = (try a.servicePID(), try a.serverPID())
                let again = try a.succeed("up", a.mountPoint, limit: .seconds(20))
                #expect(again.duration < TestSettings.atOnce, "\(again)")
                #expect((try a.servicePID(), try a.serverPID()) == before)
                #expect(Mounts.points(under: a.mountPoint) == [a.mountPoint])
                #expect(try a.text("a.txt") == "hello")
            }
        }

        @Test func `a second up needs nothing of what is not here yet`() async throws {
            try await withSite { site in
                let (_, b) = try site.pair()
                try b.setOffline(true)
                try b.down()
                // Not even the names of its top folder are there, and nobody to ask for them.
                _ = try run("sh", "-c", #"rm -r "$(dirname "$0")""#, b.stateDatabase())
                try b.up()
                try b.succeed("up", b.mountPoint, limit: .seconds(20))
            }
        }

        @Test func `offline stays on over a restart and a crash`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                // Before it knows what its top folder has, nothing can be created there without asking.
                try b.sync()
                try b.setOffline(true)
                try b.down()
                try b.up()
                #expect(try b.run("sync", "--timeout", "5", limit: .seconds(20)).code == 75)
                try b.killService()
                try b.up()
                try b.write("later", to: "b.txt")
                #expect(try b.run("sync", "--timeout", "5", limit: .seconds(20)).code == 75)
                try a.sync()
                #expect(try a.names() == [])
                try b.setOffline(false)
                try b.sync()
                try a.sync()
                #expect(try a.text("b.txt") == "later")
            }
        }

        @Test func `up leaves no pipe open behind it`() async throws {
            try await withSite { site in
                let a = site.device("a")
                let command = try site.start(
                    ["bash", "-c", "'\(TestSettings.binary)' up '\(a.mountPoint)' 2>&1 | cat"],
                    environment: a.environment
                )
                let result = try command.wait(.seconds(30))
                #expect(result.isSuccess, "\(result)")
                #expect(Mounts.isMounted(a.mountPoint))
            }
        }

        @Test func `the state lies in UBIQUITY_HOME and nowhere else`() async throws {
            try await withSite { site in
                let a = site.device("a")
                try a.up()
                try a.write("hello", to: "a.txt")
                try a.sync()
                #expect(try Files.names(in: site.userFolder) == [])
                let open = try Files.status(a.home)
                #expect(open.st_mode & 0o077 == 0, "others can look into the device's state")
            }
        }

        @Test func `invite on A and join on B give both the same folder`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.write("from a", to: "a.txt")
                try b.waitForText("from a", in: "a.txt")
                try b.write("from b", to: "b.txt")
                try a.waitForText("from b", in: "b.txt")
                let devices = try a.json("device", "list").elements
                #expect(devices.count == 2, "\(devices)")
            }
        }

        @Test func `what was there before B came is on B`() async throws {
            try await withSite { site in
                let a = site.device("a")
                let b = site.device("b")
                try a.up()
                try Files.makeFolder(a.path("folder"))
                try a.write("old", to: "folder/old.txt")
                try a.sync()
                try b.join(a.invite())
                try b.waitForText("old", in: "folder/old.txt")
            }
        }

        @Test func `invite prints one line to type, with a code of one use`() async throws {
            try await withSite { site in
                let a = site.device("a")
                try a.up()
                let line = try a.succeed("invite").output.split(separator: "\n").filter {
                    $0.contains("ubiquity join ")
                }
                #expect(line.count == 1, "\(line)")
                let first = try a.invite()
                let second = try a.invite()
                #expect(first.code != second.code)
                #expect(first.url.hasPrefix("https://127.0.0.1:"), "\(first.url)")
            }
        }

        @Test func `down unmounts, stops everything, and loses nothing`() async throws {
            try await withSite { site in
                let a = site.device("a")
                try a.up()
                try a.write("kept", to: "a.txt")
                try a.down()
                #expect(!Mounts.isMounted(a.mountPoint))
                try eventually("nothing of the device runs") { a.servicePIDs.isEmpty && a.serverPIDs.isEmpty }
                #expect(try Files.names(in: a.mountPoint) == [])
                try a.up()
                #expect(try a.text("a.txt") == "kept")
                try a.sync()
                try a.down()
            }
        }

        @Test func `down without up says so and does no harm`() async throws {
            try await withSite { site in
                let a = site.device("a")
                let result = try a.run("down", a.mountPoint)
                #expect([0, 1, 69].contains(result.code), "\(result)")
            }
        }

        @Test func `an unmount by fusermount3 is taken for the wish that it is`() async throws {
            try await withSite { site in
                let a = site.device("a")
                try a.up()
                try a.write("kept", to: "a.txt")
                try TestSupport.succeed("fusermount3", "-u", a.mountPoint)
                #expect(!Mounts.isMounted(a.mountPoint))
                try a.up()
                #expect(try a.text("a.txt") == "kept")
            }
        }

        @Test(arguments: ["service", "server", "both"])
        func `the same up brings a killed device back`(victim: String) async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.write("before", to: "before.txt")
                try a.sync()
                if victim != "server" { try a.killService() }
                if victim != "service" { try a.killServer() }
                try a.up()
                #expect(Mounts.points(under: a.mountPoint) == [a.mountPoint])
                #expect(try a.text("before.txt") == "before")
                try a.write("after", to: "after.txt")
                try b.waitForText("after", in: "after.txt", within: .seconds(40))
            }
        }

        @Test func `up does not rely on a service that is dying`() async throws {
            try await withSite { site in
                let a = site.device("a")
                let dying = try startDying(a, site)
                try a.up()
                #expect(try dying.wait().isSuccess)
                #expect(try a.text("a.txt") == "kept")
            }
        }

        @Test(arguments: [true, false]) func `nor does down`(namesMount: Bool) async throws {
            try await withSite { site in
                let a = site.device("a")
                let dying = try startDying(a, site)
                let down = try a.run(namesMount ? ["down", a.mountPoint] : ["down"])
                #expect(down.isSuccess, "\(down)")
                #expect(try dying.wait().isSuccess)
                #expect(Mounts.points(under: a.mountPoint) == [])
                #expect(a.serverPIDs == [])
                try a.up()
                #expect(try a.text("a.txt") == "kept")
            }
        }

        /// Sets a device up with a file, kills its service, and starts what stands in for that: it still takes a connection, and its last thread is
        /// gone before it answers.
        private func startDying(_ device: Device, _ site: Site) throws -> Command {
            try device.up()
            try device.write("kept", to: "a.txt")
            try device.killService()
            let program = """
                import os, socket
                os.chdir(os.environ["UBIQUITY_HOME"])
                listener = socket.socket(socket.AF_UNIX)
                listener.bind("dying")
                listener.listen()
                os.rename("dying", "socket")
                listener.accept()[0].recv(1)
                """
            let socket = device.home + "/socket"
            let before = try Files.status(socket).st_ino
            let dying = try site.start(["python3", "-c", program], environment: device.environment)
            try eventually("it listens") { try Files.status(socket).st_ino != before }
            return dying
        }

        @Test func `the embedded server keeps its address over a restart`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.down()
                try a.up()
                try a.write("after", to: "after.txt")
                try b.waitForText("after", in: "after.txt", within: .seconds(40))
            }
        }

        @Test func `a folder that is not empty is refused, and imported with --import`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.write("in the cloud", to: "same name.txt")
                try a.write("equal", to: "equal.txt")
                try a.sync()
                let c = site.device("c")
                try Files.makeFolder(c.mountPoint)
                try Files.makeFolder(c.path("sub"))
                try c.write("mine", to: "sub/mine.txt")
                try c.write("equal", to: "equal.txt")
                try c.write("here", to: "same name.txt")
                let invitation = try a.invite()
                let refused = try c.run("join", invitation.url, invitation.code, c.mountPoint)
                #expect(refused.code == 1, "\(refused)")
                #expect(refused.errors.contains("--import"), "\(refused)")
                #expect(try c.text("sub/mine.txt") == "mine")
                // The refusal came before the code was used.
                try c.succeed("join", invitation.url, invitation.code, c.mountPoint, "--import")
                try c.sync()
                try b.sync()
                for device in [a, b, c] {
                    try device.waitForText("mine", in: "sub/mine.txt")
                    try device.waitForText("equal", in: "equal.txt")
                    let texts = try device.names().filter { $0.hasPrefix("same name") }.map { try device.text($0) }
                    #expect(texts.sorted() == ["here", "in the cloud"], "on \(device.name)")
                    #expect(try device.names().filter { $0.hasPrefix("equal") }.count == 1, "on \(device.name)")
                }
            }
        }

        @Test func `what is imported where it was before stays, though others have deleted it meanwhile`() async throws
        {
            try await withSite { site in
                let (a, b) = try site.pair()
                try Files.makeFolder(a.path("folder"))
                for name in ["equal.txt", "here.txt", "gone.txt", "folder/inner.txt"] { try a.write(name, to: name) }
                try a.shell("ln -s here.txt link")
                try a.sync()
                try b.sync()
                try b.succeed("download", b.path("here.txt"))
                try b.down()
                try a.shell("rm -r equal.txt here.txt gone.txt folder link")
                try a.sync()
                try Files.makeFolder(b.path("folder"))
                for name in ["equal.txt", "here.txt", "folder/inner.txt"] { try b.write(name, to: name) }
                try b.shell("ln -s here.txt link")
                try b.succeed("up", b.mountPoint, "--import")
                try b.sync()
                try a.sync()
                for device in [a, b] {
                    for name in ["equal.txt", "here.txt", "folder/inner.txt"] { try device.waitForText(name, in: name) }
                    #expect(
                        try device.names().sorted() == ["equal.txt", "folder", "here.txt", "link"],
                        "on \(device.name)"
                    )
                }
                // From now on a deletion is one.
                try a.shell("rm equal.txt")
                try a.sync()
                try b.waitForAbsence(of: "equal.txt")
            }
        }

        @Test func `up of a full folder imports it on the first device`() async throws {
            try await withSite { site in
                let a = site.device("a")
                try Files.makeFolder(a.mountPoint)
                try a.write("mine", to: "mine.txt")
                let refused = try a.run("up", a.mountPoint)
                #expect(refused.code == 1)
                #expect(refused.errors.contains("--import"), "\(refused)")
                try a.succeed("up", a.mountPoint, "--import")
                #expect(try a.text("mine.txt") == "mine")
                try a.sync()
            }
        }

        @Test func `nothing is imported while a program has a file there open for writing`() async throws {
            try await withSite { site in
                let a = site.device("a")
                try Files.makeFolder(a.mountPoint)
                try a.write("one", to: "a.txt")
                try a.write("two", to: "b.txt")
                let writer = try Files.open(a.path("b.txt"), O_WRONLY | O_APPEND)
                let refused = try a.run("up", a.mountPoint, "--import")
                #expect(refused.code == 75, "\(refused)")
                #expect(refused.errors.contains("open for writing"), "\(refused)")
                #expect(try a.names() == ["a.txt", "b.txt"])
                try Files.write(Array(" and three".utf8), descriptor: writer, path: a.path("b.txt"))
                close(writer)
                try a.succeed("up", a.mountPoint, "--import")
                #expect(try a.text("a.txt") == "one")
                #expect(try a.text("b.txt") == "two and three")
                try a.sync()
            }
        }

        @Test func `the device's own folders are not imported, whatever leads there`() async throws {
            try await withSite { site in
                let a = site.device("a")
                try a.up()
                try a.write("the only copy", to: "a.txt")
                try a.down()
                let tree = try a.backingTree()
                let link = site.outside + "/link"
                try TestSupport.succeed("ln", "-s", tree, link)
                for folder in [tree, link, a.serverFolder] {
                    let refused = try a.run("up", folder, "--import")
                    #expect(refused.code == 1, "\(refused)")
                    #expect(Mounts.points(under: site.folder) == [])
                }
                try a.up()
                #expect(try a.text("a.txt") == "the only copy")
                try a.sync()
            }
        }

        @Test(.enabled(if: geteuid() == 0, "only root can mount"))
        func `what lies where nothing can be mounted is not imported`() async throws {
            try await withSite { site in
                let a = site.device("a")
                try Files.makeFolder(a.mountPoint)
                try TestSupport.succeed("mount", "-t", "tmpfs", "none", a.mountPoint)
                try a.write("mine", to: "mine.txt")
                let refused = try a.run("up", a.mountPoint, "--import")
                #expect(refused.code == 1, "\(refused)")
                #expect(refused.errors.contains("already mounted"), "\(refused)")
                #expect(try a.text("mine.txt") == "mine")
            }
        }

        @Test(.enabled(if: TestSettings.smallFilesystem != nil, "root makes the small filesystem: run Tools/test"))
        func `down ends an import from another disk, and the next up goes on`() async throws {
            try await withSite { site in
                let a = site.device("a")
                try a.up()
                try a.down()
                let point = try site.smallFolder() + "/mount"
                try Files.makeFolder(point)
                let files = "mkdir d; for n in $(seq 4000); do echo $n > d/$n; done"
                try TestSupport.succeed("bash", "-ec", files, folder: point)
                let tree = try a.backingTree()
                let up = try a.start(["up", point, "--import"])
                try eventually("it has begun") { Files.exists(tree + "/d") || !up.isRunning }
                // So that the import is not done before `down` has asked: `up`, which waits for it, does not keep others waiting.
                let service = try a.servicePID()
                kill(service, SIGSTOP)
                let down = try a.start(["down"])
                try eventually("down asks the service") {
                    let files = "/proc/\(down.pid)/fd"
                    let targets = ((try? Files.names(in: files)) ?? []).map { try? Files.target(of: files + "/" + $0) }
                    return targets.contains { $0?.hasPrefix("socket:") == true }
                }
                kill(service, SIGCONT)
                let ended = try down.wait(.seconds(20))
                #expect(ended.isSuccess, "\(ended)")
                let stopped = try up.wait(.seconds(20))
                #expect(stopped.code == 75 && stopped.errors.contains("the import was stopped"), "\(stopped)")
                try a.succeed("up", point)
                #expect(try Files.names(in: point + "/d").count == 4000)
                #expect(try Files.text(point + "/d/77") == "77\n")
            }
        }

        @Test func `a mount point that is a file, or in use, is refused`() async throws {
            try await withSite { site in
                let (a, _) = try site.pair()
                let c = site.device("c")
                try Files.write("a file", to: c.mountPoint)
                let file = try c.run("up", c.mountPoint)
                #expect(file.code == 1, "\(file)")
                #expect(file.errors.hasPrefix("ubiquity: "), "\(file)")
                let taken = try c.run("up", a.mountPoint)
                #expect(taken.code == 1, "\(taken)")
                #expect(taken.errors.contains("mounted"), "\(taken)")
                #expect(Mounts.points(under: a.mountPoint) == [a.mountPoint])
                try a.write("still works", to: "a.txt")
            }
        }

        @Test func `a device that may only read follows, and keeps nothing that it could never send`() async throws {
            try await withSite { site in
                let a = site.device("a")
                try a.up()
                try a.shell("mkdir d; echo one > d/f; echo two > g")
                try a.sync()
                let invitation = try Device.invitation(
                    in: a.succeed("invite", "--address", "127.0.0.1", "--read-only").output
                )
                let reader = site.device("reader")
                try reader.join(invitation)
                #expect(try reader.text("d/f") == "one\n")
                for change in [
                    "echo x > new", "echo x >> g", "mkdir e", "rm -f g", "mv g h", "chmod 600 g", "ln g h", "ln -s g h",
                    "truncate -s 1 g", "touch g", "rmdir d", "mkfifo p", "setfattr -n user.x -v 1 g",
                ] {
                    let result = try reader.shell("\(change) || true")
                    #expect(result.errors.contains("Read-only file system"), "\(change): \(result)")
                }
                try reader.shell("test ! -w g; test -r g; test -x d")
                try a.shell("echo three > d/f; mv g h; mkdir e")
                try a.sync()
                try reader.waitForText("three\n", in: "d/f")
                try reader.waitForAbsence(of: "g")
                try reader.sync()
                #expect(try reader.names() == ["d", "e", "h"])
                try reader.succeed("evict", reader.path("d/f"))
                #expect(try reader.state(of: "d/f") == "dataless")
                try reader.succeed("download", reader.path("d/f"))
                try reader.shell("setfattr -n user.ubiquity.control -v evict d/f")
                try reader.waitForState(["dataless"], of: "d/f")
                try reader.down()
                try reader.up()
                #expect(try reader.text("d/f") == "three\n")
                #expect(try a.names() == ["d", "e", "h"])

                // Nor does it take what is there already.
                let other = site.device("other")
                let another = try Device.invitation(
                    in: a.succeed("invite", "--address", "127.0.0.1", "--read-only").output
                )
                try succeed("sh", "-c", "mkdir -p '\(other.mountPoint)'; echo own > '\(other.mountPoint)/own'")
                let refused = try other.run("join", another.url, another.code, other.mountPoint, "--import")
                #expect(refused.code == 1 && refused.errors.contains("may only read"), "\(refused)")
                #expect(try Files.text(other.mountPoint + "/own") == "own\n")
            }
        }

        @Test func `a relative UBIQUITY_HOME means the same for everything that is started`() async throws {
            try await withSite { site in
                let a = site.device("a")
                let words = [TestSettings.binary, "up", a.mountPoint]
                let environment = a.environment.merging(["UBIQUITY_HOME": "a"]) { $1 }
                let up = try site.start(words, environment: environment, folder: site.folder).wait()
                #expect(up.isSuccess, "\(up)")
                try a.write("hello", to: "a.txt")
                try a.sync()
                #expect(a.servicePIDs.count == 1 && a.serverPIDs.count == 1)
                try a.down()
            }
        }

        @Test func `a mount in the foreground starts the device's own server, and keeps nobody waiting`() async throws {
            try await withSite { site in
                let a = site.device("a")
                try a.up()
                try a.down()
                try eventually("nothing of the device runs") { a.servicePIDs.isEmpty && a.serverPIDs.isEmpty }
                let service = try a.start(["mount", "Documents", a.mountPoint, "--foreground"])
                try eventually("it is mounted") {
                    guard service.isRunning else { throw TestFailure("\(try service.wait())") }
                    return service.outputSoFar.contains("mounted at")
                }
                #expect(a.serverPIDs.count == 1)
                try a.write("hello", to: "a.txt")
                try a.sync()
                try a.succeed("config", "set", "metered", "off", limit: .seconds(20))
                service.send(SIGTERM)
                let ended = try service.wait()
                #expect(ended.isSuccess, "\(ended)")
                try a.down()
            }
        }
    }
}
