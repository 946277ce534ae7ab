import Glibc
import TestSupport
import Testing

extension MountTests {
    /// What programs do on one device, while nobody else changes anything, comes out on all of them as on an ordinary disk: step by step on the
    /// device itself, and in the end on the other one.
    ///
    /// `UBIQUITY_TEST_HISTORIES=500` plays more, from the seed `UBIQUITY_TEST_SEED` on.
    @Suite struct OrdinaryDiskTests {
        @Test(.timeLimit(.minutes(20))) func `random histories of one device come out as on an ordinary disk`()
            async throws
        {
            let first = TestSettings.givenSeed ?? 1
            try await withSite(limit: .seconds(60 + 10 * TestSettings.histories)) { site in
                let (a, b) = try site.pair()
                let plain = site.outside + "/plain"
                try Files.makeFolder(plain)
                for seed in first..<first + UInt64(TestSettings.histories) {
                    var history = DiskHistory(seed: seed)
                    let name = "h\(seed)"
                    let folders = [plain, a.mountPoint].map { "\($0)/\(name)" }
                    for folder in folders { try Files.makeFolder(folder) }
                    try history.build(folders)
                    try a.sync()
                    try b.sync()
                    // It has seen none of it yet, or has made it.
                    let (here, there) = seed % 4 == 0 ? (a, b) : (b, a)
                    let differences = history.play(on: folders[0], and: "\(here.mountPoint)/\(name)")
                    #expect(differences == [], "again with UBIQUITY_TEST_SEED=\(seed)")
                    try here.sync()
                    try there.sync()
                    try here.sync()
                    let expected = try Tree(folders[0]).withoutTimes
                    for device in [here, there] {
                        let found = try Tree("\(device.mountPoint)/\(name)").withoutTimes
                        let wrong = Set(found.keys).union(expected.keys).filter { found[$0] != expected[$0] }.sorted()
                            .map {
                                "\($0): \(String(describing: found[$0])), and not \(String(describing: expected[$0]))"
                            }
                        #expect(wrong == [], "on \(device.name), again with UBIQUITY_TEST_SEED=\(seed)")
                    }
                    #expect(try a.conflicts() == [], "again with UBIQUITY_TEST_SEED=\(seed)")
                }
            }
        }
    }
}

extension Tree {
    /// The clocks of two trees may be in different seconds.
    fileprivate var withoutTimes: [String: Entry] {
        entries.mapValues { entry in
            guard case .file(let size, _, let mode, let digest) = entry else { return entry }
            return .file(size: size, modified: 0, mode: mode, digest: digest)
        }
    }
}

/// What a seed has programs do to two folders, one after the other.
private struct DiskHistory {
    private enum Step: CaseIterable {
        case rename, renameAgain, renameAndMakeFolder, swap, makeFolder, removeFolder, removeTree
        case create, truncate, append, saveSafely, remove, read, list, setMode
        case link, linkAgain, makeSymlink, replaceSymlink, renewFolder, renewFile
    }

    private static let names = ["a", "b", "c", "d", "e.txt", "f"]
    private var random: SeededGenerator

    init(seed: UInt64) { random = SeededGenerator(seed: seed) }

    private mutating func below(_ limit: Int) -> Int { Int(random.next() % UInt64(limit)) }
    private mutating func text() -> [UInt8] {
        Array(String(repeating: "text \(random.next())\n", count: [1, 1, 4, 400, 30_000][below(5)]).utf8)
    }

    mutating func build(_ folders: [String], depth: Int = 0) throws {
        for name in Self.names where below(2) == 0 {
            let paths = folders.map { "\($0)/\(name)" }
            if depth < 3, below(5) < 2 {
                for path in paths { try Files.makeFolder(path) }
                try build(paths, depth: depth + 1)
            } else {
                let bytes = text()
                for path in paths { try Files.write(bytes, to: path) }
            }
        }
    }

    /// - Returns: the steps that came out differently.
    mutating func play(on plain: String, and mounted: String) -> [String] {
        var differences: [String] = []
        for _ in 0..<(3 + below(35)) {
            let step = Step.allCases[below(Step.allCases.count)]
            let (one, other, bytes) = (somePath(in: plain), somePath(in: plain), text())
            // As a person, or the next program, comes a moment later: nothing is waited for, the engine is only somewhere else each time.
            if below(7) == 0 { usleep([1_000, 3_000, 10_000, 100_000][below(4)]) }
            let expected = outcome(step, plain, one, other, bytes)
            let found = outcome(step, mounted, one, other, bytes)
            if found != expected { differences.append("\(step) \(one) \(other): \(found), and not \(expected)") }
        }
        return differences
    }

    /// What is there, or might be.
    private mutating func somePath(in folder: String) -> String {
        var path = ""
        while true {
            path += "/\(Self.names[below(Self.names.count)])"
            guard let status = try? Files.status(folder + path), status.st_mode & S_IFMT == S_IFDIR, below(3) != 0
            else {
                return path
            }
        }
    }

    private func outcome(_ step: Step, _ folder: String, _ one: String, _ other: String, _ bytes: [UInt8]) -> String {
        let (one, other) = (folder + one, folder + other)
        do {
            switch step {
            case .rename, .renameAgain: try rename(one, other)
            case .renameAndMakeFolder:
                try rename(one, other)
                try Files.makeFolder(one)
                try Files.write(bytes, to: one + "/new")
            case .swap:
                try rename(one, one + ".swap")
                try rename(other, one)
                try rename(one + ".swap", other)
            case .makeFolder: try Files.makeFolder(one)
            case .removeFolder: try called(rmdir(one))
            case .removeTree: try removeTree(one)
            case .create:
                let file = open(one, O_WRONLY | O_CREAT | O_EXCL, 0o644)
                try called(file)
                defer { close(file) }
                try Files.write(bytes, descriptor: file, path: one)
            case .truncate: try Files.write(bytes, to: one)
            case .append: try Files.append(String(decoding: bytes, as: UTF8.self), to: one)
            case .saveSafely:
                try Files.write(bytes, to: one + ".tmp")
                try rename(one + ".tmp", one)
            case .remove: try called(unlink(one))
            case .read: return Tree.digest(of: try Files.read(one))
            case .list: return try Files.names(in: one).sorted().joined(separator: " ")
            case .link, .linkAgain: try called(Glibc.link(one, other))
            case .makeSymlink: try called(symlink("target-\(bytes.count)", one))
            case .replaceSymlink:
                try called(symlink("target-\(bytes.count)", one + ".link"))
                try rename(one + ".link", one)
            case .renewFolder:
                // What lies in it goes into a new one, which gets its name.
                try Files.makeFolder(one + ".new")
                for name in try Files.names(in: one) { try rename("\(one)/\(name)", "\(one).new/\(name)") }
                try called(rmdir(one))
                try rename(one + ".new", one)
            case .renewFile:
                // As logs are.
                try rename(one, one + ".1")
                try Files.write(bytes, to: one)
            case .setMode: try called(chmod(one, bytes.count % 2 == 0 ? 0o755 : 0o700))
            }
            return "done"
        } catch let error as SystemError {
            return String(cString: strerror(error.code))
        } catch {
            return "\(error)"
        }
    }

    private func called(_ result: Int32) throws {
        if result < 0 { throw SystemError("a step", "", errno) }
    }

    private func rename(_ from: String, _ to: String) throws { try called(Glibc.rename(from, to)) }

    private func removeTree(_ path: String) throws {
        guard try Files.status(path).st_mode & S_IFMT == S_IFDIR else { return try called(unlink(path)) }
        for name in try Files.names(in: path) { try removeTree("\(path)/\(name)") }
        try called(rmdir(path))
    }
}
