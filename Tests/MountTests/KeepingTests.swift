import Glibc
import TestSupport
import Testing

extension MountTests {
    /// What content is here: all of it, or as much as the user wants.
    @Suite struct KeepingTests {
        private static let mebibyte: Int64 = 1 << 20

        private func keeping(_ device: Device) throws -> JSON {
            try #require(try device.json("status")["mounts"]?.elements.first?["keeping"])
        }

        private func localBytes(_ device: Device) throws -> Int64 {
            try #require(try keeping(device)["local-bytes"]?.integer)
        }

        /// A has these files of one MiB each in `d`, and they are listed on B, without content.
        private func pair(_ site: Site, _ names: [String]) throws -> (a: Device, b: Device) {
            let (a, b) = try site.pair()
            try a.shell("mkdir d; for n in \(names.joined(separator: " ")); do head -c 1M /dev/urandom > d/$n; done")
            try a.sync()
            try b.sync()
            return (a, b)
        }

        private func read(_ device: Device, _ names: String...) throws {
            for name in names { try device.shell("cat d/\(name) > /dev/null") }
            for name in names { try device.waitForState(["current"], of: "d/\(name)") }
        }

        private func expectStates(_ device: Device, _ expected: [String: String]) throws {
            for (name, state) in expected.sorted(by: { $0.key < $1.key }) {
                try device.waitForState([state], of: "d/\(name)")
            }
        }

        // MARK: Greedy

        @Test(arguments: [["pin", "."], ["config", "set", "download", "greedy"]])
        func `a tree that is new comes whole, without anybody looking into it`(words: [String]) async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                #expect(try b.run(words.map { $0 == "." ? b.mountPoint : $0 }).code == 0)
                try a.shell(
                    "for d in $(seq 40); do mkdir -p d/$d; for f in $(seq 40); do head -c 4096 /dev/urandom > d/$d/$f; done; done"
                )
                try a.sync()
                // What is asked of the mount would come for that.
                try eventually("all of it is on the disk") {
                    guard Files.exists(try b.backing("d")) else { return false }
                    let full = "find \(try b.backing("d")) -type f -printf '%b\\n' | grep -c '^8$' || true"
                    return try b.shell(full).output == "1600\n"
                }
                try b.setOffline(true)
                try expectTree(b.mountPoint, is: Tree(a.mountPoint))
            }
        }

        @Test func `greedy fetches all that is there and all that comes, also in folders that nobody has looked into`()
            async throws
        {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("mkdir -p x/y; for i in $(seq 30); do head -c 20000 /dev/urandom > x/y/f$i; done")
                try a.shell("head -c 3M /dev/urandom > x/large; : > x/empty")
                try a.sync()
                try b.sync()
                try b.succeed("config", "set", "download", "greedy")
                try eventually("all is there") { try keeping(b)["missing-files"]?.integer == 0 }
                #expect(try localBytes(b) == 30 * 20000 + 3 << 20)
                // New ones, small and large, in old folders and new ones.
                try a.shell("mkdir x/new; head -c 5M /dev/urandom > x/new/large; echo small > x/new/small")
                try a.sync()
                try b.waitForState(["current"], of: "x/new/large")
                try b.waitForState(["current"], of: "x/new/small")
                // What was set, and what happened meanwhile.
                try b.down()
                try a.shell("head -c 2M /dev/urandom > x/meanwhile")
                try a.sync()
                try b.up()
                try b.sync()
                try b.waitForState(["current"], of: "x/meanwhile")
                try b.setOffline(true)
                try expectTree(b.mountPoint, is: Tree(a.mountPoint))
            }
        }

        @Test func `over a link that costs greedy waits, and goes on afterwards`() async throws {
            try await withSite { site in
                let (a, b) = try pair(site, ["f1", "f2"])
                try b.succeed("config", "set", "metered", "on")
                try b.succeed("config", "set", "download", "greedy", "--container", "Documents")
                try a.shell("head -c 100000 /dev/urandom > d/f3; echo small > d/f4")
                try a.sync()
                try b.sync()
                try steadily("nothing comes") { try localBytes(b) == 0 }
                #expect(try keeping(b)["obstacle"]?.string?.contains("metered") == true)
                try b.succeed("config", "set", "metered", "off")
                try expectStates(b, ["f1": "current", "f2": "current", "f3": "current", "f4": "current"])
                #expect(try b.succeed("status").output.contains("all is here"))
                // On demand again, nothing comes by itself.
                try b.succeed("config", "reset", "download", "--container", "Documents")
                try a.shell("head -c 100000 /dev/urandom > d/f5")
                try a.sync()
                try b.sync()
                #expect(try b.state(of: "d/f5") == "dataless")
            }
        }

        /// What the machine says of itself, also when it begins to only later.
        @Test func `on battery, and over a link that the system says costs, greedy waits`() async throws {
            try await withSite { site in
                let bus = try SystemBus(site)
                let a = site.device("a")
                let b = site.device("b", variables: bus.variables)
                let power = try bus.serve(
                    "org.freedesktop.UPower",
                    at: "/org/freedesktop/UPower",
                    "OnBattery",
                    .boolean(true)
                )
                try a.up()
                try a.shell("mkdir d; for i in 1 2; do head -c 100000 /dev/urandom > d/f$i; done")
                try a.sync()
                try b.join(a.invite())
                try b.sync()
                try b.succeed("config", "set", "download", "greedy")
                try eventually("it says why") { try keeping(b)["obstacle"]?.string?.contains("battery") == true }
                try steadily("nothing comes") { try localBytes(b) == 0 }
                power.set(.boolean(false))
                try expectStates(b, ["f1": "current", "f2": "current"])

                let network = try bus.serve(
                    "org.freedesktop.NetworkManager",
                    at: "/org/freedesktop/NetworkManager",
                    "Metered",
                    .number(3)
                )
                try eventually("it says why") { try keeping(b)["obstacle"]?.string?.contains("metered") == true }
                try a.shell("head -c 100000 /dev/urandom > d/f3")
                try a.sync()
                try b.sync()
                try steadily("it does not come") { try b.state(of: "d/f3") == "dataless" }
                // Whoever wants all at once says so.
                try b.succeed("config", "set", "metered", "off")
                try expectStates(b, ["f3": "current"])
                try b.succeed("config", "reset", "metered")
                try eventually("it says why again") { try keeping(b)["obstacle"]?.string?.contains("metered") == true }
                try network.end()
                try a.shell("head -c 100000 /dev/urandom > d/f4")
                try a.sync()
                try expectStates(b, ["f4": "current"])
                try power.end()
                try b.down()
            }
        }

        /// The kernel reads and writes the file on the disk for it, whether or not a service is there: the new one sees no handle.
        @Test func `what a program has open since an earlier mount is not given up`() async throws {
            try await withSite { site in
                let (a, _) = try site.pair()
                try a.write("text", to: "f")
                try a.sync()
                let driver = try a.succeed("status").output.split(separator: "\n").first { $0.hasPrefix("driver ") }
                guard driver?.hasSuffix(" kernel passthrough") == true else { return }
                let reader = try a.startShell("exec 3<f; sleep 60")
                poll(nil, 0, 500)
                defer { reader.kill() }
                try a.killService()
                try a.up()
                try a.sync()
                #expect(try !a.run("evict", a.path("f")).isSuccess)
                reader.kill()
                _ = try? reader.wait()
                try eventually("it goes") { try a.run("evict", a.path("f")).isSuccess }
                #expect(try a.text("f") == "text")
            }
        }

        @Test func `a connection that is lost ends nothing for good`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("mkdir d; for i in $(seq 12); do head -c 4M /dev/urandom > d/f$i; done")
                try a.sync(limit: .seconds(120))
                try b.sync()
                try b.succeed("config", "set", "bandwidth", "off/8M")
                try b.succeed("config", "set", "download", "greedy")
                try eventually("some of it comes") { try localBytes(b) > 0 }
                try b.setOffline(true)
                #expect(try keeping(b)["missing-files"]?.integer ?? 0 > 0)
                try b.setOffline(false)
                try b.succeed("config", "reset", "bandwidth")
                try eventually("all is there", within: .seconds(60)) { try keeping(b)["missing-files"]?.integer == 0 }
                try expectTree(b.mountPoint, is: Tree(a.mountPoint))
            }
        }

        @Test func `greedy ends below the limit, and goes on when it is raised`() async throws {
            try await withSite { site in
                let (a, b) = try pair(site, ["f1", "f2", "f3", "f4", "f5", "f6"])
                try b.succeed("config", "set", "local-limit", "4M")
                try b.succeed("config", "set", "download", "greedy")
                try eventually("it has stopped") { try keeping(b)["obstacle"]?.string?.contains("limit") == true }
                try a.shell("head -c 1M /dev/urandom > d/f7")
                try a.sync()
                try b.sync()
                try steadily("the limit is kept") { try localBytes(b) <= 4 * Self.mebibyte }
                #expect(try localBytes(b) == 3 * Self.mebibyte)
                #expect(try b.succeed("status").output.contains("the local limit is reached"))
                try b.succeed("config", "set", "local-limit", "off")
                try eventually("all is there") { try keeping(b)["missing-files"]?.integer == 0 }
            }
        }

        @Test(.enabled(if: TestSettings.smallFilesystem != nil, "root makes the small filesystem: run Tools/test"))
        func `greedy leaves room on the disk, and says so`() async throws {
            try await withSite { site in
                let a = site.device("a")
                try a.up()
                let small = try site.smallFolder()
                let b = site.device("b", in: small)
                try b.join(a.invite())
                try b.succeed("config", "set", "download", "greedy")
                try a.shell("for i in $(seq 24); do head -c 5M /dev/urandom > f$i; done")
                try a.sync(limit: .seconds(120))
                try b.sync(limit: .seconds(120))
                try eventually("it has stopped") { try keeping(b)["obstacle"]?.string?.contains("disk") == true }
                var room = statvfs()
                #expect(statvfs(small, &room) == 0)
                #expect(Int64(room.f_bavail) * Int64(room.f_frsize) > 15 << 20)
                #expect(try localBytes(b) > 10 << 20)
                // Who reads is served.
                let rest = try (1...24).map { "f\($0)" }.filter { try b.state(of: $0) == "dataless" }
                let wanted = try #require(rest.first)
                #expect(try Tree.digest(b.path(wanted)) == Tree.digest(a.path(wanted)))
            }
        }

        // MARK: The limit

        @Test func `beyond the limit goes what was opened least recently, also if it was opened before a restart`()
            async throws
        {
            try await withSite { site in
                let (a, b) = try pair(site, ["f1", "f2", "f3", "f4", "f5"])
                try b.succeed("config", "set", "local-limit", "3584K")
                try read(b, "f1", "f2", "f3")
                try read(b, "f1")
                try expectStates(b, ["f1": "current", "f2": "current", "f3": "current"])
                try b.down()
                try b.up()
                try b.sync()
                try read(b, "f4")
                // One is enough, whether the last has come whole or in part when the limit is looked at.
                try expectStates(b, ["f1": "current", "f2": "dataless", "f3": "current", "f4": "current"])
                #expect(try localBytes(b) == 3 * Self.mebibyte)
                #expect(try b.succeed("status").output.contains("3 MiB here, of 3.5 MiB at most"))
                // Down to a twentieth below it: with one less, 2 MiB would be less than the limit, and more than that.
                try b.succeed("config", "set", "local-limit", "2100K")
                try expectStates(b, ["f1": "dataless", "f3": "dataless", "f4": "current"])
                #expect(try localBytes(b) == Self.mebibyte)
                // It comes again, whole.
                #expect(try Tree.digest(b.path("d/f2")) == Tree.digest(a.path("d/f2")))
                try b.succeed("config", "set", "local-limit", "off")
                try b.succeed("download", b.path("d"))
                try b.sync()
                try steadily("without a limit all stays") { try b.state(of: "d/f1") == "current" }
            }
        }

        @Test func `the limit is kept while much more is read, in whole and in part, and while others' edits come`()
            async throws
        {
            try await withSite { site in
                let names = (1...12).map { "f\($0)" }
                let (a, b) = try pair(site, names)
                try a.shell("for i in 1 2 3 4; do head -c 20M /dev/urandom > d/big$i; done")
                try a.sync()
                try b.sync()
                try b.succeed("config", "set", "local-limit", "4M")
                try b.shell("cat d/f* | sha256sum > /dev/null")
                try eventually("it is kept") { try localBytes(b) <= 4 * Self.mebibyte }
                try b.shell("for i in 1 2 3 4; do head -c 2M d/big$i > /dev/null; done")
                try eventually("it is kept") { try localBytes(b) <= 4 * Self.mebibyte }
                #expect(try Files.allocated(b.backing("d")) <= 5 * Self.mebibyte)
                // One alone that is larger is served, and goes.
                #expect(try Tree.digest(b.path("d/big1")) == Tree.digest(a.path("d/big1")))
                try eventually("it is kept") { try localBytes(b) <= 4 * Self.mebibyte }
                try read(b, "f1", "f2")
                try a.shell("head -c 3M /dev/urandom > d/f1")
                try a.sync()
                try b.sync()
                try eventually("it is kept") { try localBytes(b) <= 4 * Self.mebibyte }
                try expectTree(b.mountPoint, is: Tree(a.mountPoint))
                #expect(try b.conflicts() == [])
            }
        }

        @Test func `what is pinned, open, or cannot be confirmed stays, and goes when that is over`() async throws {
            try await withSite { site in
                let (a, b) = try pair(site, ["pinned", "open", "edited", "other"])
                try b.succeed("pin", b.path("d/pinned"))
                try read(b, "open", "edited", "other")
                let reader = try b.startShell("exec 3< d/open; head -c 10 <&3 > /dev/null; echo open; exec sleep 600")
                try eventually("it is open") { reader.outputSoFar.contains("open") }
                try b.setOffline(true)
                try b.shell("printf mine | dd of=d/edited conv=notrunc status=none")
                try b.succeed("config", "set", "local-limit", "1M")
                try steadily("offline all stays") { try localBytes(b) == 4 * Self.mebibyte }
                try b.setOffline(false)
                try expectStates(b, ["other": "dataless", "edited": "dataless"])
                try a.sync()
                #expect(try Files.read(a.path("d/edited"), count: 4) == Array("mine".utf8))
                #expect(try Tree.digest(b.path("d/edited")) == Tree.digest(a.path("d/edited")))
                try expectStates(b, ["edited": "dataless", "open": "current", "pinned": "current"])
                reader.kill()
                try expectStates(b, ["open": "dataless", "pinned": "current"])
                try b.succeed("config", "set", "evict-after", "1s")
                try b.succeed("unpin", b.path("d/pinned"))
                try expectStates(b, ["pinned": "dataless"])
            }
        }

        // MARK: Age

        @Test func `what nobody opens for long goes by itself, not what is open or pinned`() async throws {
            try await withSite { site in
                let (_, b) = try pair(site, ["f1", "f2", "open", "pinned"])
                try b.succeed("pin", b.path("d/pinned"))
                try read(b, "f1", "f2", "open")
                let reader = try b.startShell("exec 3< d/open; echo open; exec sleep 600")
                try eventually("it is open") { reader.outputSoFar.contains("open") }
                try b.succeed("config", "set", "evict-after", "2s")
                try expectStates(b, ["f1": "dataless", "f2": "dataless"])
                // With nothing else happening.
                try b.shell("cat d/f1 > /dev/null")
                try expectStates(b, ["f1": "dataless", "open": "current", "pinned": "current"])
                reader.kill()
                try expectStates(b, ["open": "dataless", "pinned": "current"])
            }
        }

        // MARK: Settings

        @Test func `wrong values are refused, a container may have its own, all survive a restart`() async throws {
            try await withSite { site in
                let a = site.device("a")
                try a.up()
                for words in [
                    ["download", "everything"], ["local-limit", "lots"], ["local-limit", "1K"],
                    ["evict-after", "soon"], ["evict-after", "0"], ["metered", "on", "--container", "Documents"],
                    ["local-limit", "20G", "--container", "a/b"],
                ] {
                    let result = try a.run(["config", "set"] + words)
                    #expect(result.code == 64, "\(words): \(result)")
                }
                #expect(try a.json("status")["mounts"]?.elements.first?["keeping"] == nil)
                try a.succeed("config", "set", "local-limit", "20G")
                try a.succeed("config", "set", "evict-after", "60d", "--container", "Documents")
                try a.succeed("config", "set", "local-limit", "5G", "--container", "other")
                try a.down()
                try a.up()
                #expect(try a.succeed("config", "get", "local-limit").output == "20G\n")
                #expect(try a.succeed("config", "get", "evict-after").output == "off\n")
                let keeping = try keeping(a)
                #expect(keeping["local-limit"]?.integer == 20 << 30)
                #expect(keeping["evict-after"]?.string == "60d")
                #expect(keeping["download"]?.string == "on-demand")
            }
        }

        @Test func `of a folder that is evicted each file that stays is named, with its reason`() async throws {
            try await withSite { site in
                let (_, b) = try pair(site, ["f1", "f2", "f3"])
                try read(b, "f1", "f2", "f3")
                try b.succeed("pin", b.path("d/f2"))
                let some = try b.run("evict", b.path("d"))
                #expect(some.code == 2 && some.errors == "ubiquity: \(b.path("d/f2")): pinned\n", "\(some)")
                try expectStates(b, ["f1": "dataless", "f2": "current", "f3": "dataless"])
                // The folder is what counts, for what lies in it.
                try b.succeed("pin", b.path("d"))
                try b.succeed("unpin", b.path("d/f2"))
                try expectStates(b, ["f1": "current", "f2": "current", "f3": "current"])
                let none = try b.run("evict", b.path("d"))
                #expect(none.code == 1 && none.errors.split(separator: "\n").count == 3, "\(none)")
                #expect(try b.json("status", b.path("d")).elements.allSatisfy { $0["pinned"]?.isTrue == true })
                try b.succeed("unpin", b.path("d"))
                try b.succeed("evict", b.path("d"))
            }
        }
    }
}
