import CLinux
import Driver
import Foundation
import Glibc
import Replica
import Synchronization
import TestSupport
import Testing
import UbiquityModel

extension DriverTests {
    @Suite(.serialized)
    struct RandomTests {
        @Test
        func `random operations do the same here as on a plain folder, whatever is evicted between`() throws {
            let seed = TestSettings.seed
            try mounted { m in
                let plain = m.folder + "/plain"
                try Files.makeFolder(plain)
                var here = RandomUser(seed: seed, root: m.root)
                var there = RandomUser(seed: seed, root: plain)
                for step in 0..<3000 {
                    let mine = here.step()
                    let expected = there.step()
                    if mine != expected {
                        throw TestFailure("seed \(seed), step \(step): \(mine), but on a plain folder \(expected)")
                    }
                    if step.isMultiple(of: 40) { try evictSomething(m) }
                    // What the kernel knew has to be looked up again, and what we knew of it was forgotten.
                    if step.isMultiple(of: 500), Requirements.isRoot {
                        try? Files.write("2", to: "/proc/sys/vm/drop_caches")
                    }
                }
                let difference = try run("diff", "-r", "--no-dereference", plain, m.root)
                #expect(difference.isSuccess, "seed \(seed): \(difference)")
            }
        }

        private func evictSomething(_ m: Mounted) throws {
            for name in try Files.names(in: m.tree) {
                guard let state = try m.replica.tree.observe(in: m.replica.tree.rootDescriptor, Mounted.name(name)),
                    state.kind == .file, !state.isDataless, state.size > 0
                else { continue }
                _ = try m.evict(name, state)
            }
        }

        @Test
        func `many programs at once leave a tree as they made it`() throws {
            try mounted { m in
                let root = m.root
                let users = (0..<6).map { user in
                    Background { () -> [String] in
                        var generator = SeededGenerator(seed: UInt64(user))
                        let own = root + "/user \(user)"
                        try Files.makeFolder(own)
                        var files = [String]()
                        for number in 0..<150 {
                            let name = "\(own)/file \(number)"
                            try Files.write("\(user) \(number)", to: name)
                            if Bool.random(using: &generator) {
                                // Through the folder that all share.
                                let shared = root + "/shared \(user) \(number)"
                                try Files.rename(name, to: shared)
                                try Files.rename(shared, to: name)
                            }
                            if number.isMultiple(of: 10) {
                                try Files.rename(own, to: own + " away")
                                try Files.rename(own + " away", to: own)
                            }
                            files.append(name)
                        }
                        return files
                    }
                }
                for (user, background) in users.enumerated() {
                    for (number, file) in try background.get(within: .seconds(120)).enumerated() {
                        #expect(try Files.text(file) == "\(user) \(number)")
                    }
                }
                #expect(try Files.names(in: root).count == 6)
            }
        }
    }
}

/// Does what its seed says to a folder, and tells how each step went.
struct RandomUser {
    private var generator: SeededGenerator
    private let root: String
    private let names = ["a", "b", "c", "d", "e", "x/a", "x/b", "x/y/c", "x", "x/y", "z"]

    init(seed: UInt64, root: String) {
        generator = SeededGenerator(seed: seed)
        self.root = root
    }

    private mutating func number(_ limit: Int) -> Int { Int(generator.next() % UInt64(limit)) }
    private mutating func anyPath() -> String { root + "/" + names[number(names.count)] }

    private func told(_ what: String, _ result: Int32) -> String {
        "\(what): \(result < 0 ? String(cString: strerror(errno)) : "done")"
    }

    mutating func step() -> String {
        let path = anyPath()
        let other = anyPath()
        let what = path.dropFirst(root.count) + " " + other.dropFirst(root.count)
        switch number(16) {
        case 0, 1, 2: return write(path, O_WRONLY | O_CREAT | O_TRUNC)
        case 3: return write(path, O_RDWR)
        case 4: return write(path, O_WRONLY | O_APPEND)
        case 5: return write(path, O_WRONLY | O_CREAT | O_EXCL)
        case 6: return told("truncate \(what)", truncate(path, off_t(number(5000))))
        case 7: return told("rename \(what)", rename(path, other))
        case 8:
            let result = clinux_rename_at(AT_FDCWD, path, AT_FDCWD, other, UInt32(CLINUX_RENAME_EXCHANGE))
            return "exchange \(what): \(result)"
        case 9:
            let result = clinux_rename_at(AT_FDCWD, path, AT_FDCWD, other, UInt32(CLINUX_RENAME_NOREPLACE))
            return "move \(what): \(result)"
        case 10: return told("unlink \(what)", unlink(path))
        case 11: return told("mkdir \(what)", mkdir(path, 0o755))
        case 12: return told("rmdir \(what)", rmdir(path))
        case 13: return told("link \(what)", link(path, other))
        case 14: return told("symlink \(what)", symlink(names[number(names.count)], path))
        default: return look(path)
        }
    }

    private mutating func write(_ path: String, _ flags: Int32) -> String {
        let what = "write \(path.dropFirst(root.count)) \(flags)"
        let bytes = generator.bytes(1 + number(3000))
        let offset = number(2000)
        let file = open(path, flags, 0o644)
        if file < 0 { return told(what, file) }
        defer { close(file) }
        let count = pwrite(file, bytes, bytes.count, off_t(offset))
        return "\(what): \(count)"
    }

    private func look(_ path: String) -> String {
        var status = stat()
        if lstat(path, &status) < 0 { return told("look \(path.dropFirst(root.count))", -1) }
        let isFile = status.st_mode & S_IFMT == S_IFREG
        let content = isFile ? (try? Files.read(path)) ?? [] : []
        let hash = content.reduce(UInt64(17)) { $0 &* 31 &+ UInt64($1) }
        return
            "look \(path.dropFirst(root.count)): \(status.st_mode) \(status.st_nlink) \(isFile ? Int(status.st_size) : 0) \(hash)"
    }
}
