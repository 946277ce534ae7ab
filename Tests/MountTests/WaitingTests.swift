import Glibc
import TestSupport
import Testing

extension MountTests {
    /// What a program sees that waits in vain. Here it waits for 2 s instead of 30.
    @Suite struct WaitingTests {
        private static let patience = 2

        /// Whether something took as long as one waits at most, and not the usual 30 s.
        private func takesPatience(_ duration: Duration) -> Bool {
            duration > .seconds(Self.patience) - .milliseconds(100) && duration < TestSettings.atOnce
        }

        @Test func `a server that stops answering within a read ends it after a while, and what has come is kept`()
            async throws
        {
            try await withSite { site in
                let server = try Server(site, data: site.folder + "/cloud")
                let a = site.device("a")
                let b = site.device("b", patience: Self.patience)
                try a.join(.init(url: server.url, code: try server.addAccount("anna")))
                try b.join(Device.invitation(in: a.succeed("invite").output))
                let bytes = randomBytes(8 << 20)
                try a.write(bytes, to: "f.bin")
                try a.sync()
                try b.sync()
                try b.evict("f.bin")
                #expect(try Files.read(b.path("f.bin"), count: 4096) == Array(bytes[..<4096]))
                server.command.send(SIGSTOP)
                let download = try b.start(["download", b.path("f.bin")])
                let start = ContinuousClock.now
                #expect(Files.readFailure(b.path("f.bin"), at: 7 << 20) == ETIMEDOUT)
                let waited = ContinuousClock.now - start
                #expect(takesPatience(waited), "\(waited)")
                let result = try download.wait(.seconds(20))
                #expect(result.code == 75 && result.errors.contains("stopped answering"), "\(result)")
                #expect(try Files.read(b.path("f.bin"), count: 4096) == Array(bytes[..<4096]))
                server.command.send(SIGCONT)
                #expect(try Files.read(b.path("f.bin")) == bytes)
            }
        }

        @Test func `what its author has not sent is waited for, unless he is gone for good`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair(patience: Self.patience)
                let author = try #require(a.json("status")["device"]?.string)
                // Many bytes to send, and none on any disk.
                try a.shell("truncate -s 4G big.bin")
                try eventually("B has been told of it") { b.exists("big.bin") }
                kill(try a.servicePID(), SIGSTOP)
                let path = b.path("big.bin")
                let status = try b.status(of: "big.bin")
                #expect(status["uploaded"]?.isTrue == false && status["percent-uploaded"]?.integer == 0, "\(status)")
                #expect(status["reason"]?.string == "not yet uploaded by \(author)")

                // At once, as below: whoever waits gets another error.
                for flags in [O_RDONLY, O_RDWR] { #expect(Files.readFailure(path, flags | O_NONBLOCK) == EAGAIN) }

                let download = try b.start(["download", path])
                let start = ContinuousClock.now
                #expect(Files.readFailure(path) == ETIMEDOUT)
                let waited = ContinuousClock.now - start
                #expect(takesPatience(waited), "\(waited)")
                var result = try download.wait(.seconds(20))
                #expect(result.code == 75 && result.errors.contains("not yet uploaded by its author"), "\(result)")

                try b.succeed("device", "revoke", author)
                for flags in [O_RDONLY, O_RDWR] { #expect(Files.readFailure(path, flags) == EHOSTDOWN) }
                result = try b.run("download", path)
                #expect(result.code == 1 && result.errors.contains(author), "\(result)")
                #expect(try b.names() == ["big.bin"])

                // Nor does a package wait for it that it was moved into.
                try b.shell("mkdir P.rtfd; echo 1 > P.rtfd/text; mv big.bin P.rtfd")
                try b.sync()
                #expect(try b.names() == ["P.rtfd"])
                #expect(try b.names("P.rtfd") == ["text"])
                #expect(try b.state(of: "P.rtfd") == "current")
            }
        }
    }
}
