import Glibc
import TestSupport
import Testing

extension MountTests {
    /// The documents are there for whoever is signed in, and for nobody else; what was not sent waits for him.
    @Suite struct SignOutTests {
        /// Opens what it can, lets the kernel remember names, and after the signing out tells what has become of each.
        private static let program = """
            import errno, os, sys, time
            mount, go = sys.argv[1:]
            def result(body):
                try:
                    body()
                    return "ok"
                except OSError as error:
                    return errno.errorcode[error.errno]
            here = os.open(mount + "/here.txt", os.O_RDWR | os.O_APPEND)
            far = os.open(mount + "/far.bin", os.O_RDONLY)
            folder = os.open(mount, os.O_RDONLY | os.O_DIRECTORY)
            inside = os.open(mount + "/sub/inside", os.O_RDONLY)
            os.chdir(mount + "/sub")
            for name in ["/here.txt", "/sub/inside", "/sub/other", "/not there", "/sub/not there"]:
                result(lambda: os.stat(mount + name))
            os.listdir(mount), os.listdir(".")
            print("ready", flush=True)
            end = time.monotonic() + 60
            while not os.path.exists(go):
                if time.monotonic() > end: sys.exit("nobody says that it goes on")
                time.sleep(0.01)
            kernel = tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2])
            refused = {
                "stat": lambda: os.stat(mount + "/here.txt"),
                "stat in a folder": lambda: os.stat(mount + "/sub/other"),
                "stat from within": lambda: os.stat("other"),
                "stat of what is open": lambda: os.stat("inside"),
                "open": lambda: os.open(mount + "/here.txt", os.O_RDONLY),
                "open from a folder": lambda: os.open("here.txt", os.O_RDONLY, dir_fd=folder),
                "open anew": lambda: os.open(f"/proc/self/fd/{here}", os.O_RDONLY),
                "create": lambda: os.open(mount + "/new", os.O_WRONLY | os.O_CREAT),
                "mkdir": lambda: os.mkdir("new"),
                "unlink": lambda: os.unlink("other"),
                "rename": lambda: os.rename("other", "another"),
                "list": lambda: os.listdir(mount),
                "list from within": lambda: os.listdir("."),
                "read what is not here": lambda: os.pread(far, 1, 200000),
            }
            # Older kernels cannot forget what they know not to be in the root.
            if kernel >= (6, 16): refused["not there"] = lambda: os.stat(mount + "/not there")
            for name, body in refused.items():
                if result(body) != "EACCES": print(name, result(body))
            for name, body in {
                "read": lambda: os.pread(here, 1, 0),
                "read inside": lambda: os.pread(inside, 1, 0),
                "write": lambda: os.write(here, b"more"),
                "fsync": lambda: os.fsync(here),
                "fstat": lambda: os.fstat(here),
                "close": lambda: os.close(here),
            }.items():
                if result(body) != "ok": print(name, result(body))
            print("done", flush=True)
            """

        private static let users = geteuid() == 0 ? ["the same user", "an ordinary user"] : ["the same user"]

        @Test(arguments: users)
        func `open files stay good, nobody gets in, and signing in again brings all back`(user: String) async throws {
            try await withSite { site in
                let a = site.device("a")
                let b = user == "an ordinary user" ? try site.device("b", of: OrdinaryUser(in: site)) : site.device("b")
                try a.up()
                try b.join(a.invite())
                try a.write("here", to: "here.txt")
                try a.write(randomBytes(300_000), to: "far.bin")
                try a.shell("mkdir sub; echo 1 > sub/inside; echo 2 > sub/other")
                try a.sync()
                try b.sync()
                try b.shell("cat here.txt sub/inside sub/other; \"$UBIQUITY\" evict far.bin; \"$UBIQUITY\" offline on")
                let script = b.home + "/program.py"
                try Files.write(Self.program, to: script)
                let go = b.home + "/go"
                let program = try b.startShell("exec python3 '\(script)' '\(b.mountPoint)' '\(go)'")
                try eventually("the program has opened what it needs") {
                    guard program.isRunning else { throw TestFailure("\(try program.wait())") }
                    return program.outputSoFar.contains("ready")
                }
                try b.shell("echo new > new.txt")

                let signedOut = try b.succeed("sign-out")
                #expect(
                    signedOut.output.contains("sign in again to get your documents back; 1 change that"),
                    "\(signedOut)"
                )
                #expect(signedOut.output.contains("\(b.mountPoint) stays mounted"), "\(signedOut)")
                #expect(signedOut.duration < TestSettings.atOnce, "\(signedOut)")
                #expect(Mounts.isMounted(b.mountPoint))
                #expect(try b.run("identity").code == 1)
                let identity = try b.run("identity", "--json")
                #expect(identity.code == 1, "\(identity)")
                #expect(try JSON(identity.bytes)["signed-in"]?.isTrue == false, "\(identity)")
                try Files.write("", to: go)
                let told = try program.wait(.seconds(10))
                #expect(told.output == "ready\ndone\n", "\(told)")

                let status = try b.succeed("status").output
                #expect(status.contains("signed out") && status.contains("2 changes have not been sent"), "\(status)")
                let mount = try #require(b.json("status")["mounts"]?.elements.first)
                #expect(mount["state"]?.string == "signed-out" && mount["pending"]?.integer == 2, "\(mount)")
                let sync = try b.run("sync", "--timeout", "5")
                #expect(sync.code == 1 && sync.errors.contains("signed out"), "\(sync)")
                #expect(try Files.text(b.home + "/service.log").contains("signed out"))
                try a.sync()
                #expect(try a.names() == ["far.bin", "here.txt", "sub"])

                let invitation = try a.invite()
                let back = try b.succeed("sign-in", invitation.url, "--code", invitation.code)
                #expect(back.output.contains("mounted at \(b.mountPoint)"), "\(back)")
                try b.succeed("offline", "off")
                try b.sync()
                try a.sync()
                #expect(try a.text("here.txt") == "heremore")
                #expect(try a.text("new.txt") == "new\n")
                #expect(try b.shell("cat here.txt; wc -c < far.bin; cat sub/other").output == "heremore300000\n2\n")
                try b.down()
            }
        }

        @Test func `who waits is told at once`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try b.write("here", to: "here.txt")
                try b.sync()
                try a.sync()
                // Many bytes to send, and none on any disk.
                try a.shell("truncate -s 4G big.bin")
                try eventually("B has been told of it") { b.exists("big.bin") }
                kill(try a.servicePID(), SIGSTOP)
                let holder = try CoordinationTests.Holder(b, ["--write", b.path("here.txt")])
                // A read, an open that waits for content, and one that waits for a claim.
                let waiting = try ["head -c 1 big.bin", "echo x >> big.bin", "cat here.txt"].map {
                    try b.startShell($0)
                }
                try steadily("they wait") { waiting.allSatisfy(\.isRunning) }
                try b.succeed("sign-out")
                for command in waiting {
                    let result = try command.wait(TestSettings.atOnce)
                    #expect(result.errors.contains("Permission denied"), "\(result)")
                }
                try holder.letGo()
            }
        }

        @Test func `up brings back what was on a server of one's own, and mixes nothing`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.write("of a", to: "a.txt")
                try a.sync()
                try b.sync()
                try b.succeed("sign-out")
                let refused = try b.run("up", b.mountPoint)
                #expect(refused.code == 1 && refused.errors.contains("sign-in"), "\(refused)")
                #expect(Files.readFailure(b.path("a.txt")) == EACCES)
                try b.down()
                #expect(!Mounts.isMounted(b.mountPoint))
                try eventually("nothing of B runs") { b.servicePIDs.isEmpty }
                try b.up()
                #expect(try b.names() == [])

                try a.setOffline(true)
                try a.write("not sent", to: "late.txt")
                #expect(try a.succeed("sign-out").output.contains("1 change that has not been sent"))
                #expect(Files.readFailure(a.path("a.txt")) == EACCES)
                try a.up()
                #expect(Mounts.points(under: a.mountPoint) == [a.mountPoint])
                #expect(try a.text("a.txt") == "of a")
                #expect(try a.text("late.txt") == "not sent")
                try a.setOffline(false)
                try a.sync()
            }
        }

        @Test func `the mounts of a service that has ended come back to their account`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try b.write("of b", to: "b.txt")
                try b.sync()
                try b.setOffline(true)
                try b.write("not sent", to: "late.txt")
                try b.succeed("sign-out")
                try b.killService()
                #expect([ENOTCONN, ECONNABORTED].contains(Files.readFailure(b.path("b.txt"))))
                let invitation = try a.invite()
                try b.succeed("sign-in", invitation.url, "--code", invitation.code)
                #expect(try b.text("b.txt") == "of b")
                try b.setOffline(false)
                try b.sync()
                try a.sync()
                #expect(try a.text("late.txt") == "not sent")
            }
        }

        @Test func `erase deletes the local copy, but nothing that is only here`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.write("everywhere", to: "f.txt")
                try a.sync()
                try b.sync()
                try b.setOffline(true)
                try b.write("only here", to: "here.txt")
                #expect(try b.run("sign-out", "--erase").code == 75)
                #expect(try b.text("here.txt") == "only here")
                try b.setOffline(false)
                try b.sync()
                try b.succeed("sign-out", "--erase")
                #expect(!Mounts.isMounted(b.mountPoint))
                #expect(try Files.names(in: b.home + "/containers") == [])
                try a.sync()
                #expect(try a.names() == ["f.txt", "here.txt"])
            }
        }

        @Test func `what an erasing left that was interrupted goes at the next start, and at the next sign-out`()
            async throws
        {
            try await withSite { site in
                let a = site.device("a")
                try a.up()
                try a.down()
                let left = a.home + "/containers/.erased-1-0"
                let make = "mkdir -p '\(left)/tree'; echo old > '\(left)/tree/f'"
                try succeed("sh", "-c", make)
                try a.up()
                try eventually("it has gone") { !Files.exists(left) }
                #expect(try Files.names(in: a.home + "/containers") == ["Documents"])
                try succeed("sh", "-c", make)
                try a.succeed("sign-out", "--erase")
                #expect(try Files.names(in: a.home + "/containers") == [])
                try succeed("sh", "-c", make)
                #expect(try a.run("sign-out").code == 1)
                #expect(!Files.exists(left))
            }
        }
    }
}
