import Glibc
import TestSupport
import Testing

extension MountTests {
    /// Who may fetch content by reading, and what nobody fetches.
    @Suite struct PolicyTests {
        private static let size = 3_000_000

        /// A and B with `f.bin`, `d/g.bin` and `w.bin`, which are dataless on B.
        private func pairWithDataless(_ site: Site) throws -> (a: Device, b: Device) {
            let (a, b) = try site.pair()
            try Files.makeFolder(a.path("d"))
            try a.write(randomBytes(Self.size), to: "f.bin")
            try a.write(randomBytes(Self.size, seed: 2), to: "d/g.bin")
            try a.write(randomBytes(Self.size, seed: 3), to: "w.bin")
            try a.sync()
            try b.sync()
            for path in ["f.bin", "d", "w.bin"] { try b.evict(path) }
            return (a, b)
        }

        private func received(_ device: Device) throws -> Int64 {
            let mounts = try device.json("status")["mounts"]?.elements ?? []
            return mounts.reduce(0) { $0 + ($1["bytes-received"]?.integer ?? 0) }
        }

        /// Runs `body`, which must fetch nothing.
        private func expectNothingFetched(
            _ device: Device,
            _ items: [String] = ["f.bin"],
            _ body: () throws -> Void
        ) throws {
            let before = try received(device)
            try body()
            #expect(try received(device) == before)
            for item in items { #expect(try device.state(of: item) == "dataless") }
        }

        /// Runs `body`, which must not fetch f.bin, beside a program that may fetch: once the file `go` is there that one opens w.bin, and
        /// soon has all of it.
        private func expectNothingFetched(
            _ device: Device,
            _ items: [String],
            besideOther site: Site,
            _ body: () throws -> Void
        ) throws {
            let other = try device.startShell(
                "until [ -e '\(site.outside)/go' ]; do sleep 0.02; done; exec 3< w.bin; \(Self.untilOtherHasAll)"
            )
            let before = try received(device)
            try body()
            #expect(try other.wait().isSuccess)
            // What the other one got, and nothing of this one's.
            #expect(try (0...Self.size / 20).contains(Int(received(device) - before) - Self.size))
            for item in items { #expect(try device.state(of: item) == "dataless") }
        }

        private static let untilOtherHasAll =
            "until [ \"$(getfattr --only-values -n user.ubiquity.state w.bin)\" = current ]; do sleep 0.02; done"

        /// A copy of a program under another name.
        private func copy(_ program: String, as name: String, _ site: Site) throws -> String {
            let copy = site.outside + "/" + name
            try succeed("sh", "-c", "cp \"$(command -v \(program))\" '\(copy)'")
            return copy
        }

        private func script(_ text: String, as name: String, _ site: Site) throws -> String {
            let path = site.outside + "/" + name
            try Files.write(text, to: path)
            chmod(path, 0o755)
            return path
        }

        @Test func `a walk over names, sizes and times fetches nothing, whoever walks`() async throws {
            try await withSite { site in
                let (_, b) = try pairWithDataless(site)
                try expectNothingFetched(b, ["f.bin", "d/g.bin"]) {
                    for walk in [
                        "find . -size +1k -newermt 2020-01-01 -perm -u+r -printf '%p %s %T@ %m %b\\n'", "du -a .",
                        "du -a --apparent-size .",
                        "ls -lR .", "ls -laZ .", "stat f.bin d/g.bin", "getfattr -dR . || true",
                        "test -r f.bin && test -x d", "tar -cf /dev/null .",
                        "cp -r --attributes-only . '\(site.outside)/names'", "rsync -anv ./ '\(site.outside)/copy/'",
                    ] {
                        try b.shell(walk)
                    }
                    let find = try copy("find", as: "updatedb", site)
                    #expect(try b.shell("'\(find)' . -type f -size 2930k").output.split(separator: "\n").count == 3)
                }
            }
        }

        @Test func `who may fetch gets the rest of what it keeps open, who may not does not`() async throws {
            try await withSite { site in
                let (_, b) = try pairWithDataless(site)
                let denied = try script(
                    "exec 3< f.bin; touch '\(site.outside)/go'; \(Self.untilOtherHasAll)",
                    as: "borgmatic",
                    site
                )
                try expectNothingFetched(b, ["f.bin"], besideOther: site) { try b.shell("bash '\(denied)'") }
            }
        }

        @Test func `a script that opens for writing before anything else is known in time`() async throws {
            try await withSite { site in
                let (_, b) = try pairWithDataless(site)
                let program = try script("open('f.bin', 'r+b')", as: "timeshift", site)
                try expectNothingFetched(b) {
                    let result = try b.startShell("exec python3 '\(program)'").wait()
                    #expect(result.code == 1 && result.errors.contains("No data available"), "\(result)")
                }
                // Only its script tells it from others.
                #expect(try b.startShell("exec python3 - < '\(program)'").wait().isSuccess)
            }
        }

        struct Denied: Sendable, CustomTestStringConvertible {
            let testDescription: String
            /// Reads f.bin; `%` is the folder of the programs.
            let command: String
        }

        @Test func `what a denied program reads fails at once and fetches nothing`() async throws {
            try await withSite { site in
                let (_, b) = try pairWithDataless(site)
                _ = try copy("cat", as: "updatedb", site)
                _ = try copy("dash", as: "baloo_file", site)
                _ = try script("#!/bin/sh\ncat f.bin\n", as: "rsnapshot", site)
                _ = try script("#!/usr/bin/env python3\nprint(len(open('f.bin', 'rb').read()))\n", as: "borg", site)
                let readers = [
                    Denied(testDescription: "the program", command: "%/updatedb f.bin"),
                    Denied(testDescription: "the same, reading what another opened", command: "%/updatedb < f.bin"),
                    Denied(testDescription: "its child", command: "%/baloo_file -c 'cat f.bin; exit 1'"),
                    Denied(
                        testDescription: "its grandchild",
                        command: "%/baloo_file -c 'bash -c \"cat f.bin | wc -c; exit 1\"; exit 1'"
                    ),
                    Denied(testDescription: "the child of a script", command: "%/rsnapshot"),
                    Denied(testDescription: "a script", command: "%/borg"),
                    Denied(testDescription: "a script by its interpreter", command: "python3 %/borg"),
                ]
                try expectNothingFetched(b) {
                    for reader in readers {
                        let command = reader.command.replacing("%", with: site.outside)
                        let result = try b.startShell(command).wait()
                        #expect(result.code != 0, "\(reader): \(result)")
                        #expect(result.errors.contains("No data available"), "\(reader): \(result)")
                        #expect(result.duration < TestSettings.atOnce, "\(reader): \(result)")
                    }
                }
                // What is here is theirs too.
                let before = try received(b)
                #expect(try b.shell("cat f.bin | wc -c").output == "\(Self.size)\n")
                #expect(try received(b) - before >= Int64(Self.size))
                try b.sync()
                #expect(
                    try b.shell("'\(site.outside)/updatedb' f.bin | wc -c; '\(site.outside)/borg'").output
                        == "\(Self.size)\n\(Self.size)\n"
                )
            }
        }

        @Test func `a denied program opens, keeps open and changes what it cannot read`() async throws {
            try await withSite { site in
                let (a, b) = try pairWithDataless(site)
                let program = try script(
                    """
                    #!/usr/bin/env python3
                    import errno, os, time
                    def refused(action, *arguments):
                        try: action(*arguments)
                        except OSError as error: assert error.errno == errno.ENODATA, error
                        else: raise AssertionError(action)
                    f = os.open('f.bin', os.O_RDONLY)
                    refused(os.read, f, 1)
                    refused(os.pread, f, 100, 2000000)
                    assert os.lseek(f, 0, os.SEEK_END) == \(Self.size)
                    assert os.read(f, 1) == b''
                    refused(os.open, 'f.bin', os.O_RDWR)
                    refused(os.open, 'f.bin', os.O_WRONLY | os.O_APPEND)
                    refused(os.truncate, 'f.bin', 10)
                    os.utime('f.bin', (1e9, 1e9))
                    os.chmod('f.bin', 0o600)
                    os.rename('f.bin', 'h.bin')
                    open('\(site.outside)/go', 'w').close()
                    deadline = time.monotonic() + 30
                    while os.getxattr('w.bin', 'user.ubiquity.state') != b'current':
                        assert time.monotonic() < deadline, 'the other program has not got its file'
                        time.sleep(0.02)
                    os.close(f)
                    os.close(os.open('d/g.bin', os.O_WRONLY | os.O_TRUNC))
                    assert os.stat('d/g.bin').st_size == 0
                    """,
                    as: "restic",
                    site
                )
                try expectNothingFetched(b, ["h.bin"], besideOther: site) { try b.shell("'\(program)'") }
                try b.sync()
                try a.sync()
                #expect(try Files.status(a.path("h.bin")).st_mtim.tv_sec == 1_000_000_000)
                #expect(try Files.size(a.path("d/g.bin")) == 0)
                #expect(try Files.read(b.path("h.bin")) == randomBytes(Self.size))
            }
        }

        @Test func `a change of the policy counts at once, and after a restart`() async throws {
            try await withSite { site in
                let (_, b) = try pairWithDataless(site)
                let reader = try copy("cat", as: "my-reader", site)
                let indexer = try copy("cat", as: "recollindex", site)
                func mayRead(_ program: String) throws -> Bool {
                    try b.evict("f.bin")
                    return try b.startShell("'\(program)' f.bin > /dev/null").wait().isSuccess
                }
                func access(_ program: String) throws -> String? {
                    try b.json("policy", "list").elements.first { $0["program"]?.string == program }?["access"]?.string
                }
                #expect(try mayRead(reader) && !mayRead(indexer))
                #expect(try access("recollindex") == "deny" && access("my-reader") == nil)

                try b.succeed("policy", "deny", "my-reader")
                try b.succeed("policy", "allow", indexer)
                #expect(try !mayRead(reader) && mayRead(indexer))
                #expect(try access("my-reader") == "deny" && access(indexer) == "allow")
                try b.succeed("policy", "set", "my-reader", "allow")
                try b.succeed("policy", "set", indexer, "deny")
                #expect(try mayRead(reader) && !mayRead(indexer))

                try b.killService()
                try b.up()
                #expect(try access("my-reader") == "allow" && access(indexer) == "deny")
                try b.succeed("policy", "deny", "my-reader")
                #expect(try !mayRead(reader))
                try b.down()
                try b.up()
                #expect(try !mayRead(reader))

                try b.succeed("policy", "reset", "my-reader")
                #expect(try mayRead(reader) && !mayRead(indexer))
                try b.succeed("policy", "reset")
                #expect(try access(indexer) == nil && !mayRead(indexer))
                #expect(try b.run("policy", "deny", "no*name").code == 64)
            }
        }

        @Test func `a change counts for what is open too`() async throws {
            try await withSite { site in
                let (_, b) = try pairWithDataless(site)
                let program = try script(
                    """
                    #!/usr/bin/env python3
                    import sys
                    f = open('f.bin', 'rb', buffering=0)
                    for line in sys.stdin:
                        try: print(len(f.read(1000)), flush=True)
                        except OSError as error: print(error.strerror, flush=True)
                    """,
                    as: "kopia",
                    site
                )
                let fifo = site.outside + "/fifo"
                try #require(mkfifo(fifo, 0o600) == 0)
                let reader = try b.startShell("exec '\(program)' < '\(fifo)'")
                let writer = try Files.open(fifo, O_WRONLY)
                defer { close(writer) }
                for (access, answers) in [("default", "No data available\n"), ("allow", "No data available\n1000\n")] {
                    try b.succeed("policy", "set", "kopia", access)
                    try Files.write(Array("go\n".utf8), descriptor: writer, path: fifo)
                    try eventually("it has read") { reader.outputSoFar.utf8.count >= answers.utf8.count }
                    #expect(reader.outputSoFar == answers)
                }
            }
        }

        @Test func `a policy that cannot be understood is said so, and the defaults count`() async throws {
            try await withSite { site in
                let (_, b) = try pairWithDataless(site)
                let indexer = try copy("cat", as: "updatedb", site)
                try b.down()
                try Files.write("{\"format\": 99}", to: b.home + "/policy.json")
                try b.up()
                let result = try b.run("policy", "list")
                #expect(result.code == 1 && result.errors.contains("newer"), "\(result)")
                #expect(try b.run("policy", "allow", "updatedb").code == 1)
                try expectNothingFetched(b) {
                    let read = try b.startShell("'\(indexer)' f.bin").wait()
                    #expect(!read.isSuccess, "\(read)")
                }
                #expect(try Files.text(b.home + "/policy.json") == "{\"format\": 99}")
                try Files.remove(b.home + "/policy.json")
                try b.succeed("policy", "allow", "updatedb")
                #expect(try b.shell("'\(indexer)' f.bin | wc -c").output == "\(Self.size)\n")
            }
        }
    }
}
