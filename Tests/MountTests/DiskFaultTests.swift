import Glibc
import TestSupport
import Testing

extension MountTests {
    /// At one call out of all that change the disk, the service dies, or the disk fails: for some of these calls each time, for every one
    /// with `UBIQUITY_TEST_FULL=1` (the first thread that makes its Nth call of a kind, for every kind and N).
    ///
    /// The calls are counted, refused and made deadly by strace, so the service is the one that people run. What the kernel had not written
    /// when the *machine* dies is the simulator's subject.
    @Suite struct DiskFaultTests {
        enum Place: CaseIterable {
            case device, server
        }

        enum Fault: String, CaseIterable {
            case death, error, full

            /// What happens at a call, for strace.
            func injection(at call: History.Call) -> String {
                switch self {
                case .death: "inject=\(call.name):signal=KILL:when=\(call.number)"
                case .error: "inject=\(call.name):error=EIO:when=\(call.number)"
                case .full: "inject=\(History.calls):error=ENOSPC:when=\(call.number)..\(call.number + 30)"
                }
            }
        }

        @Test(
            .enabled(if: geteuid() == 0, "strace needs root"),
            .timeLimit(.minutes(60)),
            arguments: Fault.allCases,
            Place.allCases
        )
        func `whatever call fails, each file is the old or the new one, and all comes to rest`(
            fault: Fault,
            place: Place
        )
            async throws
        {
            let seed = TestSettings.seed
            print("UBIQUITY_TEST_SEED=\(seed)")
            try await withSite(limit: .seconds(TestSettings.isFullSize ? 3500 : 400)) { site in
                let (a, b) = try site.pair()
                let all = try History(0, a, b, place).countedCalls()
                // Fewer, and something was not traced.
                try #require(all.count > (place == .device ? 40 : 10), "\(all)")
                var random = SeededGenerator(seed: seed)
                // Which thread does what differs from time to time: some miss, and others are tried instead of them.
                let wanted = TestSettings.isFullSize ? all.count : TestSettings.kills / 2
                var (rounds, hits) = (0, 0)
                for (round, call) in all.shuffled(using: &random).enumerated() {
                    if rounds >= wanted, hits * 3 >= wanted || rounds >= wanted * 4 { break }
                    rounds += 1
                    let history = try History(round + 1, a, b, place)
                    let (isHit, isDead) = try history.run(with: fault.injection(at: call))
                    if isHit { hits += 1 }
                    try #require(
                        !isDead || fault == .death,
                        "\(fault) at \(call.name) \(call.number) has ended the \(place)"
                    )
                    try history.check("\(fault) of the \(place) at \(call.name) \(call.number)")
                }
                print("\(fault) of the \(place): \(hits) of \(rounds) calls hit, out of \(all.count)")
                #expect(hits * 3 >= wanted, "\(hits) of \(rounds)")
            }
        }
    }
}

/// What one person does on two devices, in a folder of its own, while B's disk fails, or the server's.
final class History {
    /// A thread's Nth call of a kind.
    struct Call: Hashable, Comparable {
        var name: String
        var number: Int

        static func < (left: Call, right: Call) -> Bool { (left.name, left.number) < (right.name, right.number) }
    }

    /// One thing that a program does on B, and how to see that it has been done, or not at all.
    private struct Step {
        let script: String
        let path: String
        let old: String?
        let new: String?
        /// What may be seen of a step that was not done: a file is made before something is written to it.
        var half: String? = nil
    }

    private static let steps = [
        Step(script: "printf v2 > .doc~; sync .doc~; mv .doc~ doc; sync .", path: "doc", old: "v1", new: "v2"),
        Step(script: "printf +l2 >> log; sync log", path: "log", old: "l1", new: "l1+l2"),
        Step(
            script: "mkdir made; printf new > made/file; sync made/file made .",
            path: "made/file",
            old: nil,
            new: "new",
            half: ""
        ),
        Step(script: "mv tree moved; sync .", path: "moved/in/file", old: nil, new: "kept"),
        Step(script: "rm gone; sync .", path: "gone", old: "gone", new: nil),
        Step(script: "ln -sfn other link; sync .", path: "link", old: "target", new: "other"),
    ]

    /// The calls that change a disk. Without `write`, which a service needs for its sockets, too; databases and contents use others.
    static let calls = [
        "fsync", "fdatasync", "syncfs", "sync_file_range", "rename", "renameat", "renameat2", "link", "linkat",
        "unlink", "unlinkat",
        "rmdir", "mkdir", "mkdirat", "symlinkat", "truncate", "ftruncate", "fallocate", "setxattr", "lsetxattr",
        "fsetxattr",
        "removexattr", "lremovexattr", "fremovexattr", "pwrite64", "pwritev", "copy_file_range", "utimensat", "chmod",
        "fchmod",
        "fchmodat", "fchown", "fchownat",
    ].joined(separator: ",")

    private let folder: String
    private let a: Device
    private let b: Device
    private let place: MountTests.DiskFaultTests.Place
    private let cold: [UInt8]
    private var done: [Bool] = []

    init(_ number: Int, _ a: Device, _ b: Device, _ place: MountTests.DiskFaultTests.Place) throws {
        folder = "r\(number)"
        (self.a, self.b, self.place) = (a, b, place)
        cold = randomBytes(300_000)
        try a.shell(
            """
            mkdir -p \(folder)/tree/in; cd \(folder)
            printf v1 > doc; printf l1 > log; printf kept > tree/in/file; printf gone > gone; ln -s target link; printf t1 > theirs
            """
        )
        try a.write(cold, to: "\(folder)/cold")
        try a.sync()
        try b.sync()
        try b.succeed("download", b.path(folder))
    }

    /// All calls that change the disk when nothing fails.
    func countedCalls() throws -> [Call] {
        let log = b.site.outside + "/calls"
        try trace(["-o", log]) { self.act() }
        try check("nothing failed")
        var counts: [Substring: [Substring: Int]] = [:]
        var calls: Set<Call> = []
        let names = Set(Self.calls.split(separator: ","))
        for line in try Files.text(log).split(separator: "\n") {
            // `THREAD NAME(…`; what was interrupted by others, or is none of these, has no such name.
            let words = line.split(maxSplits: 2, whereSeparator: { $0 == " " || $0 == "(" })
            guard words.count == 3, names.contains(words[1]) else { continue }
            let name = words[1]
            counts[words[0], default: [:]][name, default: 0] += 1
            calls.insert(Call(name: String(name), number: counts[words[0]]?[name] ?? 0))
        }
        return calls.sorted()
    }

    /// - Returns: whether something was hit, and whether the service died of it.
    func run(with injection: String) throws -> (isHit: Bool, isDead: Bool) {
        let log = b.site.outside + "/calls"
        try trace(["-o", log, "-e", injection]) { self.act() }
        let isDead = place == .device ? b.servicePIDs.isEmpty : a.serverPIDs.isEmpty
        if isDead { try (place == .device ? b : a).up() }
        return (try isDead || Files.text(log).contains("(INJECTED)"), isDead)
    }

    /// Everything that was done and said to be on the disk is there, everything else was done or was not, and both have the same.
    func check(_ what: String) throws {
        for device in [b, a, b] { try device.sync(limit: .seconds(60)) }
        for device in [a, b] {
            for (index, step) in Self.steps.enumerated() {
                let found = text(device, step.path)
                let isDone = index < done.count && done[index]
                let isRight =
                    found == step.new || (!isDone && (found == step.old || (found != nil && found == step.half)))
                try #require(
                    isRight,
                    "\(what), on \(device.name): after `\(step.script)` (done: \(isDone)) \(step.path) is \(found ?? "absent")"
                )
            }
            try #require(
                text(device, "tree/in/file") == (text(device, "moved/in/file") == nil ? "kept" : nil),
                "\(what)"
            )
            try #require(text(device, "theirs") == "t2", "\(what), on \(device.name)")
            try #require(try Files.read(device.path("\(folder)/cold")) == cold, "\(what), on \(device.name)")
        }
        try expectTree(b.mountPoint, is: Tree(a.mountPoint), "\(what)")
        let conflicts = try a.conflicts()
        try #require(conflicts == [], "\(what)")
    }

    private func text(_ device: Device, _ name: String) -> String? {
        let path = device.path("\(folder)/\(name)")
        return (try? Files.target(of: path)) ?? (try? Files.text(path))
    }

    /// Each step may fail, and so may all from one on.
    private func act() {
        done = Self.steps.map { step in (try? b.shell("cd \(folder); \(step.script)", limit: .seconds(30))) != nil }
        // What travels, comes and goes is tried at the same time.
        _ = try? a.shell("cd \(folder); printf t2 > theirs")
        _ = try? a.run("sync", "--timeout", "20")
        _ = try? b.run("sync", "--timeout", "5")
        _ = try? b.run("evict", b.path("\(folder)/cold"))
        _ = try? b.startShell("cat \(folder)/cold").wait(.seconds(30))
    }

    private func trace(_ words: [String], _ body: () -> Void) throws {
        let service = try place == .device ? b.servicePID() : a.serverPID()
        let strace = try b.site.startTracing(service, ["-e", "trace=\(Self.calls)"] + words)
        body()
        // It lets go of the service.
        strace.send(SIGINT)
        // Told so while the service dies, it may wait for the first thread for ever: the kernel reports that one after all others, which
        // strace takes no more. Dead, the service is none of its business.
        if !strace.hasEnded(within: .seconds(5)), !Processes.exists(service) { strace.send(SIGKILL) }
        // Not before the disk lets go of the service's threads.
        _ = try strace.wait(.seconds(60))
    }
}
