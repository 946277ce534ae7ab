import Glibc
import TestSupport
import Testing

extension MountTests {
    /// Content that comes when it is opened, and goes when it is told to.
    @Suite struct OnDemandTests {
        /// A and B with a file that is dataless on B. Gives its digest.
        private func pairWithDataless(_ site: Site, _ item: String, bytes: [UInt8]) throws -> (a: Device, b: Device) {
            let (a, b) = try site.pair()
            try a.write(bytes, to: item)
            try a.sync(limit: .seconds(120))
            try b.sync(limit: .seconds(120))
            try b.evict(item)
            return (a, b)
        }

        @Test func `evict frees the disk, changes nothing to see, and cat is right again`() async throws {
            try await withSite { site in
                let bytes = randomBytes(32 << 20)
                let (_, b) = try pairWithDataless(site, "f.bin", bytes: bytes)
                try b.shell("cat f.bin > /dev/null")
                try b.sync()
                let before = try Files.status(b.path("f.bin"))
                #expect(try Files.allocated(b.backing("f.bin")) >= 32 << 20)
                try b.evict("f.bin")
                #expect(try Files.allocated(b.backing("f.bin")) < 64 << 10)
                let after = try Files.status(b.path("f.bin"))
                #expect(after.st_size == before.st_size)
                #expect(after.st_mode == before.st_mode)
                #expect(after.st_ino == before.st_ino)
                #expect(
                    after.st_mtim.tv_sec == before.st_mtim.tv_sec && after.st_mtim.tv_nsec == before.st_mtim.tv_nsec
                )
                #expect(after.st_blocks >= 1, "cp and tar take a file without blocks for empty")
                #expect(try b.state(of: "f.bin") == "dataless")
                #expect(try Files.read(b.path("f.bin")) == bytes)
            }
        }

        @Test func `the head of a big file comes at once and moves little`() async throws {
            try await withSite(limit: .seconds(600)) { site in
                let (a, b) = try site.pair()
                let source = site.outside + "/big.bin"
                try SampleTree.makeBigFile(at: source, size: SampleTree.bigFileSize)
                try a.shell("cp '\(source)' big.bin", limit: .seconds(200))
                try a.sync(limit: .seconds(200))
                try b.sync(limit: .seconds(200))
                for _ in 0..<5 {
                    try b.evict("big.bin")
                    let service = try b.servicePID()
                    let before = try Processes.bytesRead(by: service)
                    let head = try b.site.start(["head", "-c", "4096", b.path("big.bin")]).wait()
                    #expect(head.bytes == (try Files.read(source, count: 4096)))
                    #expect(try b.localBytes(of: "big.bin") < 16 << 20)
                    #expect(try Files.allocated(b.backing("big.bin")) < 16 << 20)
                    #expect(try Processes.bytesRead(by: service) - before < 16 << 20)
                }
                #expect(try Tree.digest(b.path("big.bin")) == Tree.digest(source))
            }
        }

        @Test func `evict refuses what is not in the cloud yet`() async throws {
            try await withSite { site in
                let (a, _) = try site.pair()
                try a.write("sent", to: "a.txt")
                try a.sync()
                try a.setOffline(true)
                try a.write("not sent", to: "a.txt")
                let result = try a.run("evict", a.path("a.txt"))
                #expect(result.code != 0)
                #expect(result.errors.contains("a.txt"), "\(result)")
                #expect(try a.text("a.txt") == "not sent")
                try a.setOffline(false)
                try a.sync()
                try a.evict("a.txt")
                #expect(try a.text("a.txt") == "not sent")
            }
        }

        @Test func `evict refuses while it cannot ask the cloud`() async throws {
            try await withSite { site in
                let (a, _) = try site.pair()
                try a.write("sent", to: "a.txt")
                try a.sync()
                try a.setOffline(true)
                let result = try a.run("evict", a.path("a.txt"))
                #expect(result.code == 75, "\(result)")
                #expect(try Files.allocated(a.backing("a.txt")) > 0)
            }
        }

        struct Refusal: Sendable, CustomTestStringConvertible {
            let testDescription: String
            /// What a shell does before, with the item as `$1`.
            let preparation: String
            /// A word of the reason.
            let word: String
        }

        @Test(arguments: [
            Refusal(testDescription: "open for reading", preparation: "exec 3< a.txt", word: "open"),
            Refusal(testDescription: "open for writing", preparation: "exec 3>> a.txt", word: "open"),
            Refusal(testDescription: "pinned", preparation: "\"$UBIQUITY\" pin a.txt", word: "pinned"),
            Refusal(
                testDescription: "linked twice",
                preparation: "ln a.txt second.txt; \"$UBIQUITY\" sync",
                word: "link"
            ),
        ])
        func `evict refuses with the reason what is`(refusal: Refusal) async throws {
            try await withSite { site in
                let (a, _) = try site.pair()
                try a.write("content", to: "a.txt")
                try a.sync()
                let script = refusal.preparation + "; set +e; \"$UBIQUITY\" evict a.txt 2>&1; echo \"code $?\""
                let result = try a.shell(script)
                // 75: worth trying again when it is closed; 1: not by itself.
                #expect(result.output.contains("code 1") || result.output.contains("code 75"), "\(result)")
                #expect(result.output.contains("a.txt") && result.output.contains(refusal.word), "\(result)")
                #expect(try a.text("a.txt") == "content")
                // Who had it open for writing has just closed it: whether it has changed is looked at first.
                try a.waitForState(["current"], of: "a.txt")
            }
        }

        @Test func `pin fetches, holds, and takes newer revisions by itself; unpin lets go`() async throws {
            try await withSite { site in
                let (a, b) = try pairWithDataless(site, "f.bin", bytes: randomBytes(1 << 20))
                try b.succeed("pin", b.path("f.bin"))
                try b.waitForState(["current"], of: "f.bin")
                #expect(try b.run("evict", b.path("f.bin")).code == 1)
                let newer = randomBytes(1 << 20, seed: 2)
                try a.write(newer, to: "f.bin")
                try a.sync()
                try b.sync()
                try b.waitForState(["current"], of: "f.bin")
                #expect(try Files.allocated(b.backing("f.bin")) >= 1 << 20)
                try b.succeed("unpin", b.path("f.bin"))
                try b.evict("f.bin")
                #expect(try Files.read(b.path("f.bin")) == newer)
            }
        }

        @Test func `download brings a folder, twice does nothing, evict of what is dataless neither`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("mkdir -p d/e; for i in 1 2 3 4 5; do head -c 300000 /dev/urandom > d/e/f$i; done")
                try a.sync()
                try b.sync()
                try b.succeed("evict", b.path("d"))
                try b.succeed("evict", b.path("d"))
                #expect(try Files.allocated(b.backing("d")) < 200_000)
                try b.succeed("download", b.path("d"))
                for i in 1...5 { #expect(try b.state(of: "d/e/f\(i)") == "current") }
                try b.succeed("download", b.path("d"))
                try b.setOffline(true)
                try expectTree(b.mountPoint, is: Tree(a.mountPoint))
            }
        }

        /// They come together: one of them hinders no other, and none that nobody has looked at yet is left out.
        @Test func `download brings many small files, all but one that the server has lost`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("mkdir -p d/e; for i in $(seq 600); do head -c 3000 /dev/urandom > d/e/f$i; done")
                try a.sync()
                try b.sync()
                let pack = try #require(try a.packs().first { try Files.read($0).count > 1_000_000 })
                let whole = try Files.read(pack)
                var damaged = whole
                damaged[whole.count / 2] ^= 0x55
                try Files.overwrite(damaged, at: pack)
                func count(of state: String) throws -> Int {
                    try b.json("status", b.path("d/e")).elements.filter { $0["state"]?.string == state }.count
                }
                #expect(try b.run("download", b.path("d")).code == 1)
                #expect(try count(of: "dataless") == 1)
                try Files.overwrite(whole, at: pack)
                try b.succeed("download", b.path("d"))
                #expect(try count(of: "current") >= 600)
                try expectTree(b.mountPoint, is: Tree(a.mountPoint))
                try b.succeed("evict", b.path("d"))
                #expect(try count(of: "dataless") == 600)
            }
        }

        /// Each sync of the disk by its service takes a while longer.
        private func slowDisk(_ device: Device) throws -> Command {
            let inject = "inject=fsync,fdatasync,syncfs:delay_enter=150000"
            return try device.site.startTracing(
                device.servicePID(),
                ["-e", "trace=fsync,fdatasync,syncfs", "-e", inject]
            )
        }

        @Test func `what is evicted right after it was read stays so, although the last of it was still coming`()
            async throws
        {
            try await withSite { site in
                let (a, b) = try site.pair()
                // So small that on the disk they look the same with content and without.
                try a.shell("mkdir d; for i in $(seq 12); do head -c 3000 /dev/urandom > d/f$i; done")
                try a.sync()
                try b.sync()
                try b.succeed("evict", b.path("d"))
                // A slow disk: who reads has the bytes long before the file is whole.
                let slow = try geteuid() == 0 ? slowDisk(b) : nil
                for read in 0..<5 {
                    try b.shell("cat d/f\(read + 1) d/f\(read + 2) d/f\(read + 3) > /dev/null")
                    try b.succeed("evict", b.path("d"))
                    for look in ["at once", "later"] {
                        let states = try b.shell("getfattr --only-values -n user.ubiquity.state d/*").output
                        #expect(states == String(repeating: "dataless", count: 12), "\(read), \(look)")
                        // Whatever was still coming has come.
                        try b.sync()
                    }
                }
                slow?.send(SIGINT)
                _ = try slow?.wait(.seconds(20))
                try expectTree(b.mountPoint, is: Tree(a.mountPoint))
            }
        }

        @Test func `who reads the small files of a folder gets the next ones before asking; one alone brings no other`()
            async throws
        {
            try await withSite { site in
                let (a, b) = try site.pair()
                let make = "head -c 5000 /dev/urandom"
                try a.shell(
                    "mkdir d; for i in $(seq 10 39); do \(make) > d/f$i; done; head -c 100000 /dev/urandom > d/f30-large"
                )
                try a.sync()
                try b.sync()
                try b.succeed("evict", b.path("d"))
                #expect(try Files.read(b.path("d/f10")) == Files.read(a.path("d/f10")))
                try b.sync()
                #expect(try (11...39).allSatisfy { try b.state(of: "d/f\($0)") == "dataless" })
                // Soon one after the other, as programs do that go through a folder.
                try b.shell("cat d/f11 d/f12 d/f13 > /dev/null")
                try eventually("the others come") {
                    try (14...39).allSatisfy { try b.state(of: "d/f\($0)") == "current" }
                }
                #expect(try b.state(of: "d/f30-large") == "dataless")
                try b.setOffline(true)
                #expect(
                    try (10...39).allSatisfy { try Files.read(b.path("d/f\($0)")) == Files.read(a.path("d/f\($0)")) }
                )
                try b.setOffline(false)
                try b.sync()
                try b.succeed("evict", b.path("d"))
                #expect(try b.state(of: "d/f20") == "dataless")
            }
        }

        @Test
        func
            `who reads folder after folder gets what is in the next one with its first file; who turns to single files does not`()
            async throws
        {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell(
                    "for d in $(seq 8); do mkdir d$d; for f in $(seq 12); do head -c 5000 /dev/urandom > d$d/f$f; done; done"
                )
                try a.sync()
                try b.sync()
                try b.succeed("evict", b.mountPoint)
                try b.shell("for d in 1 2 3 4 5; do cat d$d/* > /dev/null; done; cat d6/f1 > /dev/null")
                try eventually("the others come") {
                    try (2...12).allSatisfy { try b.state(of: "d6/f\($0)") == "current" }
                }
                // Nobody reads those: it ends.
                try b.shell("cat d7/f1 d8/f1 > /dev/null")
                try b.sync()
                #expect(try (2...12).allSatisfy { try b.state(of: "d8/f\($0)") == "dataless" })
                try expectTree(b.mountPoint, is: Tree(a.mountPoint))
            }
        }

        @Test func `who reads small new files as they come gets some of the next ones whole, and never all of them`()
            async throws
        {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("mkdir d")
                try a.sync()
                try b.sync()
                try b.shell("ls d")
                var whole: [Int] = []
                for round in 0..<30 where whole.last ?? 0 == 0 {
                    try a.shell("for i in $(seq 20); do head -c 3000 /dev/urandom > d/\(round)-$i; done")
                    try a.sync()
                    try b.sync()
                    let states = try b.shell("getfattr --only-values -n user.ubiquity.state d/\(round)-*").output
                    whole.append(states.ranges(of: "current").count)
                    try b.shell("cat d/\(round)-* > /dev/null")
                }
                // Nothing had been read before the first came.
                #expect(whole.first == 0 && whole.last ?? 0 > 0 && whole.allSatisfy { $0 < 20 }, "\(whole)")
                try expectTree(b.mountPoint, is: Tree(a.mountPoint))
            }
        }

        @Test func `what is new in a pinned folder comes whole, with its attributes, and can be evicted later`()
            async throws
        {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("mkdir d")
                try a.sync()
                try b.sync()
                try b.succeed("pin", b.path("d"))
                try a.shell("for i in $(seq 60); do head -c $((i * 100)) /dev/urandom > d/$i; done; chmod 440 d/*0")
                try a.shell("setfattr -n user.color -v red d/7; touch -d 2001-02-03 d/8; : > d/empty")
                try a.sync()
                try b.sync()
                for i in 1...60 { try b.waitForState(["current"], of: "d/\(i)") }
                try b.setOffline(true)
                try expectTree(b.mountPoint, is: Tree(a.mountPoint))
                #expect(try b.shell("getfattr --only-values -n user.color d/7").output == "red")
                try b.setOffline(false)
                try b.succeed("unpin", b.path("d"))
                try b.evict("d/7")
                try expectTree(b.mountPoint, is: Tree(a.mountPoint))
            }
        }

        @Test func `over a link that costs, nothing comes that nobody reads, and what is pinned comes later`()
            async throws
        {
            try await withSite { site in
                let (a, b) = try site.pair()
                try b.succeed("config", "set", "metered", "on")
                let make = "head -c 5000 /dev/urandom"
                try a.shell("mkdir d kept; for i in $(seq 10 39); do \(make) > d/f$i; done")
                try a.shell("head -c 9000000 /dev/urandom > large")
                try a.sync()
                try b.sync()
                try b.succeed("pin", b.path("kept"))
                try a.shell("\(make) > kept/new")
                try a.sync()
                try b.sync()
                try b.shell("cat d/f11 d/f12 d/f13 > /dev/null")
                let reader = try b.startShell("exec < large; head -c 10 > /dev/null; sleep 4; head -c 10 > /dev/null")
                try steadily("only what is read comes", for: .seconds(3)) {
                    try b.state(of: "d/f14") == "dataless" && b.state(of: "kept/new") == "dataless"
                        && b.localBytes(of: "large") < 1 << 20
                }
                #expect(try reader.wait().isSuccess)
                #expect(try b.state(of: "d/f12") == "current")
                #expect(try Tree.digest(b.path("large")) == Tree.digest(a.path("large")))
                // Also if nobody was there to hear it.
                try b.down()
                try b.succeed("config", "reset", "metered")
                try b.up()
                try b.waitForState(["current"], of: "kept/new")
                try b.succeed("config", "set", "metered", "on")
                try a.shell("\(make) > kept/newer")
                try a.sync()
                try b.sync()
                #expect(try b.state(of: "kept/newer") == "dataless")
                try b.succeed("config", "reset", "metered")
                try b.waitForState(["current"], of: "kept/newer")
                try b.shell("cat d/f21 d/f22 d/f23 > /dev/null")
                try b.waitForState(["current"], of: "d/f24")
            }
        }

        @Test func `the rest of a file that is coming waits while the link costs, and comes afterwards`() async throws {
            try await withSite { site in
                let (_, b) = try pairWithDataless(site, "large", bytes: randomBytes(64 << 20))
                try b.succeed("config", "set", "bandwidth", "off/4M")
                let reader = try b.startShell("exec < large; head -c 10 > /dev/null; sleep 100")
                defer { reader.kill() }
                try eventually("the rest is coming") { try b.localBytes(of: "large") > 8 << 20 }
                try b.succeed("config", "set", "metered", "on")
                // What has been asked for still comes; without a limit it would be more than this by then.
                try steadily("no more comes", for: .seconds(9)) { try b.localBytes(of: "large") < 40 << 20 }
                try b.succeed("config", "reset", "bandwidth")
                #expect(try b.shell("tail -c 10 large").bytes == Array(randomBytes(64 << 20).suffix(10)))
                #expect(try b.state(of: "large") == "dataless")
                try b.succeed("config", "reset", "metered")
                try b.waitForState(["current"], of: "large")
            }
        }

        @Test func `while the system's bus is away a link that costs is taken to cost`() async throws {
            try await withSite { site in
                let bus = try SystemBus(site)
                let a = site.device("a")
                let b = site.device("b", variables: bus.variables)
                let network = try bus.serve(
                    "org.freedesktop.NetworkManager",
                    at: "/org/freedesktop/NetworkManager",
                    "Metered",
                    .number(1)
                )
                try a.up()
                try b.join(a.invite())
                try b.succeed("config", "set", "download", "greedy")
                try eventually("it says why nothing comes") {
                    let keeping = try b.json("status")["mounts"]?.elements.first?["keeping"]
                    return keeping?["obstacle"]?.string?.contains("metered") == true
                }
                try TestSupport.succeed("pkill", "-KILL", "-f", "dbus-daemon .*\(site.folder)/bus.conf")
                try network.end()
                try a.write("text", to: "f")
                try a.sync()
                try b.sync()
                try steadily("it does not come") { try b.state(of: "f") == "dataless" }
                #expect(try b.text("f") == "text")
                try b.down()
            }
        }

        @Test func `programs read dataless files right, however they read`() async throws {
            let readers = [
                "cp f.bin '%'", "cp --sparse=always f.bin '%'", "tar -cf - f.bin | tar -xOf - f.bin > '%'",
                "tar -cSf - f.bin | tar -xOf - f.bin > '%'", "rsync -a f.bin '%'",
                "dd if=f.bin of='%' bs=7777 status=none",
                "tail -c +1 f.bin > '%'", "cp f.bin inside.bin; cp inside.bin '%'; rm inside.bin",
                "python3 -c \"import mmap,sys; f=open('f.bin','rb'); open('%','wb').write(mmap.mmap(f.fileno(),0,prot=mmap.PROT_READ)[:])\"",
                "python3 -c \"import os; f=os.open('f.bin',0); s=os.fstat(f).st_size; open('%','wb').write(b''.join(reversed([os.pread(f,99999,o) for o in reversed(range(0,s,99999))])))\"",
            ]
            try await withSite { site in
                let bytes = randomBytes(3_000_001)
                let (_, b) = try pairWithDataless(site, "f.bin", bytes: bytes)
                for (number, reader) in readers.enumerated() {
                    let target = site.outside + "/copy\(number)"
                    try b.shell(reader.replacing("%", with: target))
                    #expect(try Files.read(target) == bytes, "\(reader)")
                    try b.sync()
                    try b.evict("f.bin")
                }
            }
        }

        @Test func `writing into a dataless file keeps the rest of it`() async throws {
            try await withSite { site in
                var bytes = randomBytes(2_000_000)
                let (a, b) = try pairWithDataless(site, "f.bin", bytes: bytes)
                try b.shell("printf tail >> f.bin; printf HEAD | dd of=f.bin conv=notrunc status=none")
                bytes.replaceSubrange(..<4, with: Array("HEAD".utf8))
                bytes += Array("tail".utf8)
                #expect(try Files.read(b.path("f.bin")) == bytes)
                try b.sync()
                try a.sync()
                #expect(try Files.read(a.path("f.bin")) == bytes)
                try b.evict("f.bin")
                try b.shell("truncate -s 1000 f.bin")
                #expect(try Files.read(b.path("f.bin")) == Array(bytes[..<1000]))
            }
        }

        @Test func `replacing a dataless file's content fetches nothing`() async throws {
            try await withSite { site in
                let (a, b) = try pairWithDataless(site, "f.bin", bytes: randomBytes(2_000_000))
                try b.setOffline(true)
                try b.write("new", to: "f.bin")
                #expect(try b.text("f.bin") == "new")
                try b.setOffline(false)
                try a.waitForText("new", in: "f.bin")
            }
        }

        @Test func `offline, what is not here fails at once and what is here works`() async throws {
            try await withSite { site in
                let (a, b) = try pairWithDataless(site, "f.bin", bytes: randomBytes(200_000))
                try a.write("here", to: "here.txt")
                try a.sync()
                try b.sync()
                #expect(try b.text("here.txt") == "here")
                try b.setOffline(true)
                let start = ContinuousClock.now
                #expect(Files.readFailure(b.path("f.bin")) == ENETDOWN)
                #expect(ContinuousClock.now - start < TestSettings.atOnce)
                #expect(try Files.status(b.path("f.bin")).st_size == 200_000)
                #expect(try b.text("here.txt") == "here")
                try b.write("written offline", to: "new.txt")
                try Files.rename(b.path("f.bin"), to: b.path("g.bin"))
                try b.setOffline(false)
                try a.waitForText("written offline", in: "new.txt")
                try b.sync()
                try a.sync()
                #expect(try a.names() == ["g.bin", "here.txt", "new.txt"])
                #expect(try Files.read(b.path("g.bin")) == randomBytes(200_000))
            }
        }

        @Test func `a dataless file that changes elsewhere is the new one here`() async throws {
            try await withSite { site in
                let (a, b) = try pairWithDataless(site, "f.bin", bytes: randomBytes(200_000))
                let newer = randomBytes(300_000, seed: 9)
                try a.write(newer, to: "f.bin")
                try a.sync()
                try b.sync()
                #expect(try Files.status(b.path("f.bin")).st_size == 300_000)
                #expect(try Files.read(b.path("f.bin")) == newer)
            }
        }

        @Test func `a read that is interrupted frees its process`() async throws {
            try await withSite { site in
                let (a, b) = try pairWithDataless(site, "f.bin", bytes: randomBytes(8 << 20))
                // The server is stopped, not gone: reads wait for it.
                kill(try a.serverPID(), SIGSTOP)
                let reader = try b.site.start(["cat", b.path("f.bin")])
                try steadily("the reader waits", for: .milliseconds(300)) { reader.isRunning }
                reader.send(SIGKILL)
                let result = try reader.wait(.seconds(20))
                #expect(result.code == 128 + SIGKILL)
                kill(try a.serverPID(), SIGCONT)
                #expect(try Files.read(b.path("f.bin")) == randomBytes(8 << 20))
            }
        }
    }
}
