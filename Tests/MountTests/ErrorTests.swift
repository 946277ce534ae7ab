import Glibc
import TestSupport
import Testing

extension MountTests {
    /// What goes wrong is said clearly, and nothing is lost by it.
    @Suite struct ErrorTests {
        /// One line on stderr, `ubiquity: WHAT: WHY`, with these words in it.
        private func expectError(_ result: Command.Result, code: Int32, _ words: String...) {
            #expect(result.code == code, "\(result)")
            #expect(result.errors.hasPrefix("ubiquity: "), "\(result)")
            #expect(result.errors.split(separator: "\n").count == 1, "\(result)")
            for word in words { #expect(result.errors.lowercased().contains(word), "\(word) in: \(result)") }
        }

        // MARK: - Codes

        @Test func `a mistyped code is told from a wrong one, and a used one from both`() async throws {
            try await withSite { site in
                let servers = [
                    try Server(site, data: site.folder + "/one"), try Server(site, data: site.folder + "/two"),
                ]
                let code = try servers[0].addAccount("anna")
                let c = site.device("c")
                let last = try #require(code.last)
                let mistyped = String(code.dropLast()) + (last == "7" ? "8" : "7")
                expectError(try c.run("join", servers[0].url, mistyped, c.mountPoint), code: 1, "code")
                expectError(try c.run("join", servers[0].url, "hello", c.mountPoint), code: 1, "code")
                expectError(try c.run("join", servers[1].url, code, c.mountPoint), code: 1, "code")
                #expect(!Files.exists(c.mountPoint), "what was made for it is left")
                try c.succeed("join", servers[0].url, code, c.mountPoint)
                let d = site.device("d")
                expectError(try d.run("join", servers[0].url, code, d.mountPoint), code: 1, "code", "used")
            }
        }

        @Test func `an expired code is refused and says so`() async throws {
            try await withSite { site in
                let server = try Server(site, data: site.folder + "/cloud")
                let code = try server.addAccount("anna")
                try server.expireCodes()
                let c = site.device("c")
                expectError(try c.run("join", server.url, code, c.mountPoint), code: 1, "code", "expired")
            }
        }

        @Test func `a server with another certificate is not trusted, and the code stays good`() async throws {
            try await withSite { site in
                let a = site.device("a")
                let other = site.device("other")
                try a.up()
                try other.up()
                let invitation = try a.invite()
                let elsewhere = try other.invite()
                let c = site.device("c")
                let result = try c.run("join", elsewhere.url, invitation.code, c.mountPoint)
                expectError(result, code: 1)
                #expect(result.errors.contains("certificate") || result.errors.contains("fingerprint"), "\(result)")
                try c.join(invitation)
            }
        }

        // MARK: - Servers and devices

        @Test func `no server to be reached is 69`() async throws {
            try await withSite { site in
                let server = try Server(site, data: site.folder + "/cloud")
                let code = try server.addAccount("anna")
                try server.kill()
                let c = site.device("c")
                expectError(try c.run("join", server.url, code, c.mountPoint, limit: .seconds(40)), code: 69)
            }
        }

        @Test func `a server that goes away stops nothing but the travelling`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.write(randomBytes(300_000), to: "dataless.bin")
                try a.write("here", to: "here.txt")
                try a.sync()
                try b.sync()
                try b.evict("dataless.bin")
                #expect(try b.text("here.txt") == "here")
                try a.killServer()
                try b.write("meanwhile", to: "new.txt")
                #expect(try b.text("here.txt") == "here")
                let sync = try b.run("sync", "--timeout", "20", limit: .seconds(40))
                #expect(sync.code == 75, "\(sync)")
                let start = ContinuousClock.now
                let failure = try #require(Files.readFailure(b.path("dataless.bin")))
                #expect([ENETDOWN, ETIMEDOUT].contains(failure), "\(failure)")
                #expect(ContinuousClock.now - start < .seconds(15))
                // From now on it is known.
                let again = ContinuousClock.now
                #expect(Files.readFailure(b.path("dataless.bin")) == ENETDOWN)
                #expect(ContinuousClock.now - again < .seconds(3))
                #expect(try b.succeed("status").isSuccess)
                try a.up()
                try a.waitForText("meanwhile", in: "new.txt", within: .seconds(60))
                try b.sync()
                #expect(try Files.read(b.path("dataless.bin")) == randomBytes(300_000))
            }
        }

        @Test func `a revoked device keeps what it has and gets nothing more`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.write(randomBytes(300_000), to: "dataless.bin")
                try a.write("here", to: "here.txt")
                try a.sync()
                try b.sync()
                #expect(try b.text("here.txt") == "here")
                try b.evict("dataless.bin")
                let name = try #require(b.json("status")["device"]?.string)
                try a.succeed("device", "revoke", name)
                try eventually("B knows that it was revoked") { try b.run("status").output.contains("revoked") }
                #expect(try b.text("here.txt") == "here")
                try b.write("still writable", to: "here.txt")
                #expect(Files.readFailure(b.path("dataless.bin")) == EACCES)
                #expect(try b.run("sync", "--timeout", "5").code != 0)
                try a.sync()
                #expect(try a.text("here.txt") == "here")
                #expect(
                    try a.json("device", "list").elements.filter {
                        $0["name"]?.string == name && !($0["revoked"]?.isTrue ?? false)
                    }.isEmpty
                )
            }
        }

        // MARK: - Full disks

        private static let hasSmallFilesystem = TestSettings.smallFilesystem != nil

        /// Takes all the room that a filesystem has left.
        private func fill(_ folder: String, leaving spare: Int64 = 0) throws -> String {
            let ballast = folder + "/ballast"
            _ = try run("bash", "-c", "cat /dev/zero > '\(ballast)' 2>/dev/null; true", limit: .seconds(120))
            let size = try Files.size(ballast)
            try TestSupport.succeed("truncate", "-s", String(max(0, size - spare)), ballast)
            return ballast
        }

        @Test(.enabled(if: hasSmallFilesystem, "root makes the small filesystem: run Tools/test"))
        func `no space on a device: an error to the program, nothing half-written, nothing lost`() async throws {
            try await withSite(limit: .seconds(300)) { site in
                let a = site.device("a")
                try a.up()
                let small = try site.smallFolder()
                let b = site.device("b", in: small)
                try b.join(a.invite())
                try a.write("old", to: "small.txt")
                try a.shell("head -c 150M /dev/urandom > big.bin")
                try a.sync(limit: .seconds(120))
                try b.sync(limit: .seconds(120))
                #expect(try b.text("small.txt") == "old")

                // Content that does not fit.
                let download = try b.run("download", b.path("big.bin"), limit: .seconds(120))
                #expect(download.code == 1, "\(download)")
                #expect(download.errors.lowercased().contains("space"), "\(download)")
                #expect(try Files.status(b.path("big.bin")).st_size == 150 << 20)
                #expect(try Files.read(b.path("big.bin"), count: 4096) == Files.read(a.path("big.bin"), count: 4096))
                try b.evict("big.bin")

                // Not even a small change fits.
                let ballast = try fill(small)
                #expect(Files.readFailure(b.path("big.bin")) == ENOSPC)
                let write = try b.startShell("head -c 3M /dev/urandom > mine.bin").wait()
                #expect(!write.isSuccess && write.errors.contains("No space left"), "\(write)")
                let newer = String(repeating: "newer ", count: 100_000)
                try a.write(newer, to: "small.txt")
                try a.sync()
                try steadily("what is on B stays whole") { ["old", newer].contains(try b.text("small.txt")) }
                #expect(try b.run("status").code == 0)

                // With room again all goes on by itself.
                try Files.remove(ballast)
                try b.sync(limit: .seconds(60))
                #expect(try b.text("small.txt") == newer)
                try b.write("written after", to: "after.txt")
                try a.waitForText("written after", in: "after.txt")
                #expect(try a.conflicts() == [])
            }
        }

        @Test(.enabled(if: hasSmallFilesystem, "root makes the small filesystem: run Tools/test"))
        func `a new content that does not fit leaves the disk its room`() async throws {
            try await withSite(limit: .seconds(300)) { site in
                let a = site.device("a")
                try a.up()
                let b = site.device("b", in: try site.smallFolder())
                try b.join(a.invite())
                let old = randomBytes(2 << 20)
                try a.write(old, to: "f.bin")
                try a.sync()
                try b.sync()
                try b.succeed("download", b.path("f.bin"))
                // Nothing of what lies between the old content and the whole new one is sent.
                try a.setOffline(true)
                try a.shell("head -c 110M /dev/urandom > f.bin")
                try a.setOffline(false)
                try a.sync(limit: .seconds(120))
                let sync = try b.run("sync", "--timeout", "60", limit: .seconds(80))
                #expect(sync.code == 1 && sync.errors.contains("no space left"), "\(sync)")
                // Programs have it all, and what is here stays as it was.
                try b.shell("head -c 20M /dev/urandom > mine.bin")
                #expect(try Files.read(b.path("f.bin")) == old)
                let staged = try Files.names(in: b.home + "/containers/Documents/staging")
                #expect(!staged.contains { $0.hasSuffix(".part") }, "\(staged)")
            }
        }

        @Test(.enabled(if: hasSmallFilesystem, "root makes the small filesystem: run Tools/test"))
        func `a device and its server that were stopped start on a disk that is full, and evicting makes room`()
            async throws
        {
            try await withSite(limit: .seconds(300)) { site in
                let small = try site.smallFolder()
                let a = site.device("a", in: small)
                try a.up()
                let large = randomBytes(20 << 20)
                try a.write(large, to: "large.bin")
                try a.sync()
                try a.down()
                let ballast = try fill(small)
                try a.up()
                try a.evict("large.bin")
                try a.write("there is room", to: "small.txt")
                try a.sync()
                try Files.remove(ballast)
                #expect(try Files.read(a.path("large.bin")) == large)
            }
        }

        @Test(.enabled(if: hasSmallFilesystem, "root makes the small filesystem: run Tools/test"))
        func `no space on the server's disk: said, waited for, nothing lost`() async throws {
            try await withSite(limit: .seconds(300)) { site in
                let small = try site.smallFolder()
                let server = try Server(site, data: small + "/cloud")
                let a = site.device("a")
                let b = site.device("b")
                try a.join(.init(url: server.url, code: try server.addAccount("anna")))
                let invitation = try Device.invitation(in: a.succeed("invite").output)
                try b.join(invitation)
                try a.write("before", to: "before.txt")
                try a.sync()
                try b.waitForText("before", in: "before.txt")

                let ballast = try fill(small, leaving: 2 << 20)
                let bytes = randomBytes(20 << 20)
                try a.write(bytes, to: "big.bin")
                let sync = try a.run("sync", "--timeout", "10", limit: .seconds(30))
                #expect([1, 75].contains(sync.code), "\(sync)")
                try eventually("status says it") {
                    let words = try a.run("status").output.lowercased()
                    return words.contains("space") || words.contains("full")
                }
                #expect(try Files.read(a.path("big.bin")) == bytes)
                #expect(try a.run("evict", a.path("big.bin")).code != 0)
                // The server goes on serving what it has.
                try b.evict("before.txt")
                #expect(try b.text("before.txt") == "before")

                try Files.remove(ballast)
                try a.sync(limit: .seconds(120))
                try b.sync(limit: .seconds(60))
                #expect(try Files.read(b.path("big.bin")) == bytes)
            }
        }

        // MARK: - Damage and malice

        @Test func `a corrupted chunk is never served`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                let bytes = randomBytes(3 << 20)
                try a.write(bytes, to: "f.bin")
                try a.write("other", to: "other.txt")
                try a.sync()
                try b.sync()
                try b.evict("f.bin")
                // Damage in the middle of everything that is stored.
                let packs = try a.packs()
                let copies = try packs.map { try Files.read($0) }
                for (path, copy) in zip(packs, copies) where copy.count > 1 << 20 {
                    var damaged = copy
                    for place in stride(from: 100_000, to: copy.count, by: 200_000) { damaged[place] ^= 0x55 }
                    try Files.overwrite(damaged, at: path)
                }
                let target = site.outside + "/copy"
                let read = try b.site.start(["dd", "if=" + b.path("f.bin"), "of=" + target, "bs=64K", "status=none"])
                    .wait()
                #expect(!read.isSuccess, "\(read)")
                #expect(read.errors.contains("Input/output error"), "\(read)")
                let served = try Files.read(target)
                #expect(served == Array(bytes[..<served.count]), "a wrong byte was served")
                #expect(try b.run("download", b.path("f.bin")).code == 1)
                #expect(try b.state(of: "f.bin") == "dataless")
                let log = try Files.text(a.home + "/server.log")
                #expect(log.contains("is damaged on the server's disk"), "the server's log: \(log.suffix(500))")
                // What is whole stays whole, and a mended server serves again.
                #expect(try b.text("other.txt") == "other")
                for (path, copy) in zip(packs, copies) { try Files.overwrite(copy, at: path) }
                #expect(try Files.read(b.path("f.bin")) == bytes)
            }
        }

        struct EvilName: Sendable, CustomTestStringConvertible {
            let innocent: String
            let evil: String
            var testDescription: String { evil.replacing("\u{0}", with: "NUL") }
        }

        private static let evilNames = [
            EvilName(innocent: "to-be-renamed", evil: "../../escaped"),
            EvilName(innocent: "inno-cent", evil: "inno/cent"),
            EvilName(innocent: "zz", evil: ".."),
            EvilName(innocent: "nul-inside", evil: "nul\u{0}inside"),
        ]

        @Test(arguments: evilNames)
        func `a name that is none, from the cloud, never reaches the disk`(name: EvilName) async throws {
            try await withSite { site in
                let server = try Server(site, data: site.folder + "/cloud")
                let a = site.device("a")
                try a.join(.init(url: server.url, code: try server.addAccount("anna")))
                try a.write("evil", to: name.innocent)
                try a.write("good", to: "good.txt")
                try a.sync()
                let proxy = try TamperingProxy(site, before: server, .toDevice, name.innocent, becomes: name.evil)
                let b = site.device("b")
                try b.join(.init(url: proxy.url, code: try Device.invitation(in: a.succeed("invite").output).code))
                try b.waitForText("good", in: "good.txt")
                #expect(try b.names() == ["good.txt"])
                let escaped = try TestSupport.succeed("find", site.folder, "-name", "*escaped*").output
                #expect(escaped.isEmpty, "\(escaped)")
                let status = try b.succeed("status").output
                #expect(status.contains("name"), "status tells of it: \(status)")
                try b.write("goes on", to: "b.txt")
                try a.waitForText("goes on", in: "b.txt")
                #expect(try a.text(name.innocent) == "evil")
            }
        }

        @Test(arguments: evilNames)
        func `a name that is none, from a device, is refused by the server`(name: EvilName) async throws {
            try await withSite { site in
                let server = try Server(site, data: site.folder + "/cloud")
                let a = site.device("a")
                try a.join(.init(url: server.url, code: try server.addAccount("anna")))
                let proxy = try TamperingProxy(site, before: server, .toServer, name.innocent, becomes: name.evil)
                let b = site.device("b")
                try b.join(.init(url: proxy.url, code: try Device.invitation(in: a.succeed("invite").output).code))
                try b.write("evil", to: name.innocent)
                try b.write("good", to: "good.txt")
                try a.waitForText("good", in: "good.txt")
                let sync = try b.run("sync", "--timeout", "10")
                #expect(sync.code == 1, "\(sync)")
                #expect(sync.errors.contains(name.innocent), "\(sync)")
                try a.sync()
                #expect(try a.names() == ["good.txt"])
                #expect(try b.text(name.innocent) == "evil")
            }
        }
    }
}
