import Glibc
import Synchronization
import TestSupport
import Testing

extension MountTests {
    /// `kill -9` at any moment: what was closed and fsynced is on both, and the same `up` brings everything back.
    @Suite struct KillTests {
        enum Victim: CaseIterable {
            case serviceOfA, serviceOfB, server
        }

        @Test(.timeLimit(.minutes(30))) func `kill -9 under writing loses nothing that was fsynced`() async throws {
            let seed = TestSettings.seed
            print("UBIQUITY_TEST_SEED=\(seed)")
            try await withSite(limit: .seconds(60 + 30 * TestSettings.kills)) { site in
                let (a, b) = try site.pair()
                var random = SeededGenerator(seed: seed)
                let ledgers = [Ledger(a), Ledger(b)]
                for device in [a, b] { try Files.makeFolder(device.path("of-\(device.name)")) }
                var hits = 0
                var rounds = 0
                while hits < TestSettings.kills {
                    // Every kill has to hit something that was not sent; one that did not proves nothing, and is repeated.
                    try #require(rounds < 3 * TestSettings.kills, "only \(hits) of \(rounds) kills hit unsent data")
                    let victim = Victim.allCases[rounds % Victim.allCases.count]
                    rounds += 1
                    let unsent = try killUnderWriting(victim, a, b, ledgers, &random)
                    if unsent > 0 { hits += 1 }
                    try (victim == .serviceOfB ? b : a).up()
                    for device in [a, b, a] { try device.sync(limit: .seconds(60)) }
                    for ledger in ledgers {
                        for device in [a, b] {
                            let lost = ledger.violations(on: device)
                            try #require(
                                lost.isEmpty,
                                "round \(rounds), \(victim), on \(device.name): \(lost.prefix(5))"
                            )
                        }
                    }
                }
                print("\(hits) kills hit unsent data, in \(rounds) rounds")
                // Each device wrote in a folder of its own.
                let conflicts = try (a.conflicts(), b.conflicts())
                try #require(conflicts.0 == [] && conflicts.1 == [], "\(conflicts)")
                try expectTree(b.mountPoint, is: Tree(a.mountPoint))
            }
        }

        /// Writes on both, kills one process at a random moment, and gives how many fsynced files had not been sent by then.
        private func killUnderWriting(
            _ victim: Victim,
            _ a: Device,
            _ b: Device,
            _ ledgers: [Ledger],
            _ random: inout SeededGenerator
        ) throws -> Int {
            let writers = ledgers.map { Writer($0, seed: random.next()) }
            let counts = ledgers.map(\.count)
            for writer in writers { writer.start() }
            try eventually("both write") { zip(ledgers, counts).allSatisfy { $0.count > $1 } }
            poll(nil, 0, Int32.random(in: 20...500, using: &random))
            switch victim {
            case .serviceOfA: try a.killService()
            case .serviceOfB: try b.killService()
            case .server: try a.killServer()
            }
            for writer in writers { try writer.stop() }
            switch victim {
            case .serviceOfA: return try absent(ledgers[0], on: b)
            case .serviceOfB: return try absent(ledgers[1], on: a)
            case .server: return try waiting(ledgers[0], on: a) + waiting(ledgers[1], on: b)
            }
        }

        /// Small files of the dead service that the other device has not got, once it has all that the cloud has: they were
        /// not sent. (Big ones are announced, and listed before they are sent.)
        private func absent(_ ledger: Ledger, on other: Device) throws -> Int {
            try other.sync(limit: .seconds(60))
            return ledger.smallFiles.filter { !other.exists($0) }.count
        }

        /// Files that their own device still has to send.
        private func waiting(_ ledger: Ledger, on device: Device) throws -> Int {
            let paths = ledger.smallFiles.suffix(40).map { device.path($0) }
            guard !paths.isEmpty else { return 0 }
            let result = try device.run(["status", "--json"] + paths)
            let states = try JSON(result.bytes).elements.compactMap { $0["state"]?.string }
            return states.filter { $0 == "waiting" || $0 == "uploading" }.count
        }

        @Test(.timeLimit(.minutes(10))) func `kill -9 while content comes and goes never shows a wrong byte`()
            async throws
        {
            let seed = TestSettings.seed
            print("UBIQUITY_TEST_SEED=\(seed)")
            try await withSite(limit: .seconds(120 + 15 * TestSettings.kills)) { site in
                let (a, b) = try site.pair()
                var random = SeededGenerator(seed: seed)
                try Files.makeFolder(a.path("d"))
                for i in 0..<12 { try a.write(random.bytes(200_000 * (i + 1)), to: "d/f\(i)") }
                try a.sync()
                try b.sync()
                let right = try Tree(a.mountPoint)
                for round in 0..<max(4, TestSettings.kills / 3) {
                    if round % 2 == 0 { try b.succeed("evict", b.path("d")) }
                    let busy = try b.site.start(
                        ["bash", "-c", round % 2 == 0 ? "cat d/* > /dev/null" : "'\(TestSettings.binary)' evict d"],
                        environment: b.environment,
                        folder: b.mountPoint
                    )
                    poll(nil, 0, Int32.random(in: 0...60, using: &random))
                    try b.killService()
                    try busy.wait()
                    try b.up()
                    try expectTree(b.mountPoint, is: right, "round \(round)")
                    try b.sync()
                    try a.sync()
                    try expectTree(a.mountPoint, is: right, "nothing was taken for an edit in round \(round)")
                }
                #expect(try a.conflicts() == [])
            }
        }

        @Test func `what was applied when the service died, and not recorded, is not taken for the newest`()
            async throws
        {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("echo old > f; touch -d @1000 f")
                try a.sync()
                try b.sync()
                try b.killService()
                // As it is when the apply has done its work on the disk and the row has not been written.
                try succeed("sqlite3", b.stateDatabase(), "delete from synced where name = cast('f' as blob)")
                try a.shell("echo newest > f; touch -d @2000 f")
                try a.sync()
                try b.up()
                try b.sync()
                #expect(try b.text("f") == "newest\n")
                try a.sync()
                for device in [a, b] { #expect(try device.shell("stat -c %Y f").output == "2000\n") }
            }
        }

        @Test func `what an apply left half-way is read as the version that it is while the newest may not come yet`()
            async throws
        {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("mkdir d; echo old > d/f")
                try a.sync()
                try b.sync()
                let (go, read) = (site.outside + "/go", site.outside + "/read")
                let script = "echo held; until [ -e '\(go)' ]; do sleep 0.02; done; cat d/f > '\(read)'"
                // With that option the claim covers what lies in the folder, and fetches nothing.
                let holder = try b.start([
                    "coordinate", "--write", b.path("d"), "--option", "for-replacing", "--", "bash", "-c",
                    "cd '\(b.mountPoint)'; \(script)",
                ])
                try eventually("the folder is claimed") { holder.outputSoFar.contains("held") }
                try a.shell("echo newest > d/f")
                try a.sync()
                // As the next start writes it down when the service died between the disk and the row.
                let statement = "update synced set content = null where name = cast('f' as blob)"
                try succeed("sqlite3", b.stateDatabase(), statement)
                try Files.write("", to: go)
                let result = try holder.wait()
                #expect(try Files.text(read) == "old\n", "\(result)")
                try b.waitForText("newest\n", in: "d/f")
            }
        }

        @Test func `what a lookup had made when the service died is read before its row is written`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("mkdir d; echo text > d/f")
                try a.sync()
                try b.sync()
                try b.shell("stat d/f")
                try b.killService()
                try b.up()
                try b.sync()
                // As it is between the lookup and the row, and after the death between these two.
                try succeed("sqlite3", b.stateDatabase(), "delete from synced where name = cast('f' as blob)")
                #expect(try b.text("d/f") == "text\n")
            }
        }

        @Test func `what was fetched of a large file when the service died is not fetched again`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("head -c 60000000 /dev/urandom > big")
                try a.sync()
                try b.sync()
                try b.succeed("config", "set", "bandwidth", "4M")
                try b.succeed("download", "--no-wait", b.path("big"))
                try eventually("a good part of it is here", within: .seconds(30)) {
                    try b.status(of: "big")["local-bytes"]?.integer ?? 0 > 35_000_000
                }
                try b.killService()
                try b.up()
                try b.succeed("config", "set", "bandwidth", "off")
                let here = try b.status(of: "big")["local-bytes"]?.integer ?? 0
                #expect(here > 8_000_000)
                try b.succeed("download", b.path("big"))
                #expect(try a.shell("sha256sum big").output == b.shell("sha256sum big").output)
            }
        }

        @Test func `a partly downloaded content that nobody wants is gone after a start`() async throws {
            try await withSite { site in
                let a = site.device("a")
                try a.up()
                try a.write("text", to: "f.txt")
                try a.sync()
                let present = try #require(try a.status(of: "f.txt")["revision"]?.string)
                try a.down()
                // One is here as a whole, and no item has the other, as after a newer one came.
                let staging = a.home + "/containers/Documents/staging"
                for revision in [present, String(repeating: "a1", count: 16)] {
                    try Files.write("some of it", to: "\(staging)/\(revision).part")
                }
                try a.up()
                try eventually("both are gone") {
                    try Files.names(in: staging).allSatisfy { !$0.hasSuffix(".part") }
                }
                #expect(try a.text("f.txt") == "text")
            }
        }

        @Test(arguments: ["service", "server"])
        func `a transfer that was killed goes on and arrives whole`(victim: String) async throws {
            try await withSite(limit: .seconds(300)) { site in
                let (a, b) = try site.pair()
                let source = site.outside + "/big.bin"
                try SampleTree.makeBigFile(at: source, size: SampleTree.bigFileSize)
                let before = try a.storedBytes()
                try a.shell("cp '\(source)' big.bin", limit: .seconds(120))
                try eventually("some of it is sent") { try a.storedBytes() > before + (4 << 20) }
                if victim == "service" { try a.killService() } else { try a.killServer() }
                try a.up()
                try a.sync(limit: .seconds(200))
                try b.sync(limit: .seconds(200))
                #expect(try Tree.digest(b.path("big.bin")) == Tree.digest(source))
                // It did not start over: no chunk is there twice.
                #expect(try a.storedBytes() - before < SampleTree.bigFileSize * 11 / 10)
            }
        }
    }
}

/// What one device has promised to a program: every fsynced write that succeeded.
private final class Ledger: Sendable {
    struct Document {
        /// Digests of everything that was written, in order.
        var attempts: [String] = []
        /// How many of them were certainly done.
        var done = 0
    }

    private struct State {
        /// New files by path: digest and size.
        var files: [String: (digest: String, size: Int)] = [:]
        /// Files that are saved again and again.
        var documents: [String: Document] = [:]
        var smallFiles: [String] = []
        var checked: Set<String> = []
        var next = 0
    }

    let device: Device
    private let state = Mutex(State())

    init(_ device: Device) {
        self.device = device
    }

    var count: Int { state.withLock { $0.files.count + $0.documents.values.reduce(0) { $0 + $1.done } } }

    /// The new files of at most 64 KiB, oldest first.
    var smallFiles: [String] { state.withLock { $0.smallFiles } }

    func freshPath() -> String {
        state.withLock {
            $0.next += 1
            return "of-\(device.name)/n\($0.next)"
        }
    }

    func record(_ path: String, _ bytes: [UInt8]) {
        let digest = Tree.digest(of: bytes)
        state.withLock {
            $0.files[path] = (digest, bytes.count)
            if bytes.count <= 64 << 10 { $0.smallFiles.append(path) }
        }
    }

    func attempt(_ path: String, _ bytes: [UInt8]) {
        let digest = Tree.digest(of: bytes)
        state.withLock { $0.documents[path, default: Document()].attempts.append(digest) }
    }

    func confirm(_ path: String) {
        state.withLock {
            guard let count = $0.documents[path]?.attempts.count else { return }
            $0.documents[path]?.done = count
        }
    }

    /// What is not on a device as it was promised, a line each. New files are never written again: once they were right,
    /// the comparison of the trees in the end is enough.
    func violations(on other: Device) -> [String] {
        let (files, documents, checked) = state.withLock { ($0.files, $0.documents, $0.checked) }
        var lines: [String] = []
        for (path, token) in files.sorted(by: { $0.key < $1.key }) where !checked.contains(other.name + path) {
            let digest = other.digest(path)
            if digest == token.digest {
                state.withLock { _ = $0.checked.insert(other.name + path) }
            } else {
                lines.append("\(path) of \(token.size) bytes is \(digest)")
            }
        }
        for (path, document) in documents.sorted(by: { $0.key < $1.key }) where document.done > 0 {
            let digest = other.digest(path)
            if !document.attempts[(document.done - 1)...].contains(digest) {
                let place = document.attempts.lastIndex(of: digest).map { "is \(document.done - 1 - $0) saves behind" }
                lines.append("\(path) \(place ?? "has a content that was never written: \(digest)")")
            }
        }
        return lines
    }
}

extension Device {
    /// Of what a program reads there, or why it cannot.
    fileprivate func digest(_ name: String) -> String {
        do { return try Tree.digest(path(name)) } catch { return "\(error)" }
    }
}

/// A program that writes as fast as it may, until it is stopped or its mount dies.
private final class Writer: Sendable {
    private let ledger: Ledger
    private let seed: UInt64
    private let isStopped = Mutex(false)
    private let isDone = Mutex(false)

    init(_ ledger: Ledger, seed: UInt64) {
        self.ledger = ledger
        self.seed = seed
    }

    func start() {
        startThread { self.write() }
    }

    func stop() throws {
        isStopped.withLock { $0 = true }
        try eventually("the writer on \(ledger.device.name) has ended") { isDone.withLock { $0 } }
    }

    private func write() {
        var random = SeededGenerator(seed: seed)
        defer { isDone.withLock { $0 = true } }
        while !isStopped.withLock({ $0 }) {
            do {
                switch Int.random(in: 0..<10, using: &random) {
                case 0..<6: try writeNew(random.bytes(Int.random(in: 0...40_000, using: &random)))
                case 6: try writeNew(random.bytes(Int.random(in: 100_000...1_000_000, using: &random)))
                case let choice: try save(choice % 2 == 0, random.bytes(Int.random(in: 1...100_000, using: &random)))
                }
            } catch {
                // The mount is dead, as it should be: what did not succeed was not promised.
                return
            }
        }
    }

    private func writeNew(_ bytes: [UInt8]) throws {
        let path = ledger.freshPath()
        try Files.write(bytes, to: ledger.device.path(path), isSynchronized: true)
        ledger.record(path, bytes)
    }

    /// As editors save, over the same file again and again.
    private func save(_ isFirst: Bool, _ bytes: [UInt8]) throws {
        let path = "of-\(ledger.device.name)/document \(isFirst ? 1 : 2)"
        ledger.attempt(path, bytes)
        try Files.replace(ledger.device.path(path), with: bytes, isSynchronized: true)
        ledger.confirm(path)
    }
}
