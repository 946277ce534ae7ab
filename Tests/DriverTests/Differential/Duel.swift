import CLinux
import Driver
import Foundation
import Glibc
import Replica
import Synchronization
import SystemPackage
import TestSupport
import UbiquityModel

/// Where the mount and a plain folder first did not do the same.
struct Difference: Sendable, CustomStringConvertible {
    /// nil for the trees in the end.
    var step: Int?
    var description: String
}

/// Does the same to a fresh mount and to a plain folder on the same disk.
final class Duel {
    private let mounted: Mounted
    private let plain: String
    private let here: Player
    private let there: Player
    /// What each step gave, here and there.
    private(set) var log: [String] = []

    private init(_ mode: DriverMode) throws {
        mounted = try Mounted(mode: mode)
        do {
            plain = mounted.folder + "/plain"
            try Files.makeFolder(plain)
            here = try Player(folder: mounted.root)
            there = try Player(folder: plain)
        } catch {
            mounted.end()
            throw error
        }
    }

    static func play(_ history: [Step], _ mode: DriverMode) throws -> (difference: Difference?, log: [String]) {
        // On a thread of its own, which has a umask of its own and is not ended by SIGPIPE (from a fifo that nobody reads).
        try Background {
            _ = clinux_fuse_prepare_thread("duel", 0)
            umask(0o022)
            let duel = try Duel(mode)
            defer { duel.mounted.end() }
            let difference = try duel.play(history)
            return (difference, duel.log)
        }.get(within: .seconds(120))
    }

    private func play(_ history: [Step]) throws -> Difference? {
        for (index, step) in history.enumerated() {
            if let mine = here.perform(step), let expected = there.perform(step) {
                let isSame = mine == expected || isOtherRefusal(mine, expected)
                log.append(
                    "\(step): \(mine)"
                        + (isSame ? "" : ", but on the disk \(expected)\(mine.difference(from: expected))")
                )
                if !isSame {
                    endPlayers()
                    return Difference(step: index, description: log[index])
                }
            } else {
                log.append("\(step): \(try happen(step))")
            }
        }
        endPlayers()
        let shown = try compareTrees()
        return try shown ?? compareContents()
    }

    /// In a mount that lets in only its user, an ordinary one, the kernel looks for other obstacles before it asks us for permission.
    private func isOtherRefusal(_ mine: Outcome, _ expected: Outcome) -> Bool {
        !Requirements.isRoot && expected == Outcome(negated: -EACCES) && mine.isFailure
    }

    private func endPlayers() {
        here.end()
        there.end()
    }

    // MARK: What only the mount meets

    private func happen(_ step: Step) throws -> String {
        switch step {
        case .evict(let path): return try at(path) { try evict($0, $1) } ?? "not there"
        case .receive(let path, let content):
            return try at(path) { folder, name in try receive(folder, name, content.bytes, path) } ?? "not there"
        case .forget:
            if Requirements.isRoot { try? Files.write("2", to: "/proc/sys/vm/drop_caches") }
            return "done"
        default: return ""
        }
    }

    /// The folder of a plain path in the backing tree, and the last name in it; nil if there is no such folder.
    private func at(_ path: String, _ body: (Int32, Name) throws -> String) throws -> String? {
        let names = path.split(separator: "/", omittingEmptySubsequences: false).compactMap { try? Name(String($0)) }
        guard names.map(\.description).joined(separator: "/") == path, let last = names.last,
            let folder = try? mounted.replica.tree.openFolder(at: ItemPath(Array(names.dropLast())))
        else { return nil }
        return try body(folder.raw, last)
    }

    private func evict(_ folder: Int32, _ name: Name) throws -> String {
        guard let state = try mounted.replica.tree.observe(in: folder, name), state.kind == .file, !state.isDataless,
            state.size > 0
        else { return "nothing to evict" }
        let file = try mounted.replica.tree.openFile(in: folder, name, expecting: state.key)
        let placeholder = Placeholder(
            revision: RevisionID.random(),
            generation: 1,
            size: state.size,
            modified: state.modified,
            mode: state.mode
        )
        let content = try Files.read("/proc/self/fd/\(file.raw)")
        mounted.host.state.withLock { $0.contents[placeholder.revision] = content }
        return
            "\(try mounted.evict(in: InodeKey(descriptor: folder), name, expecting: LocalEvidence(state), as: placeholder))"
    }

    private func receive(_ folder: Int32, _ name: Name, _ content: [UInt8], _ path: String) throws -> String {
        let present = try mounted.replica.tree.observe(in: folder, name)
        if let present, present.kind == .folder { return "a folder is there" }
        let parent = (plain + "/" + path).split(separator: "/").dropLast().joined(separator: "/")
        // The service may write where its user may not.
        guard access("/" + parent, W_OK | X_OK) == 0 else { return "not allowed on the disk" }
        let staged = try mounted.stage(content)
        let mutation = Mutation.publish(
            staged: staged,
            parent: try InodeKey(descriptor: folder),
            name: name,
            expecting: present.map { .inode(LocalEvidence($0)) } ?? .absent
        )
        if case .failure(let failure) = try mounted.apply(mutation) { return "\(failure)" }
        let new = mounted.folder + "/received"
        try Files.write(content, to: new)
        chmod(new, 0o644)
        try Files.rename(new, to: plain + "/" + path)
        return "received"
    }

    // MARK: In the end

    private func compareTrees() throws -> Difference? {
        let mine = try Look.tree(mounted.root)
        let expected = try Look.tree(plain)
        for path in Set(mine.keys).union(expected.keys).sorted() where mine[path] != expected[path] {
            let shown = mine[path].map { "\($0)" } ?? "nothing"
            let wanted = expected[path].map { "\($0)" } ?? "nothing"
            let bytes = mine[path].flatMap { mine in expected[path].map { mine.difference(from: $0) } } ?? ""
            return Difference(description: "in the end \(path) is \(shown), but on the disk \(wanted)\(bytes)")
        }
        return nil
    }

    /// Without the software the files are still there (README): what is whole has its content in the backing tree.
    private func compareContents() throws -> Difference? {
        mounted.mount.stop()
        for path in try Look.tree(plain).keys.sorted() where !path.isEmpty {
            let mine = mounted.backing(String(path.dropFirst()))
            let expected = plain + path
            guard try Files.status(expected).st_mode & S_IFMT == S_IFREG,
                try Files.attribute("user.ubiquity..placeholder", of: mine) == nil,
                access(expected, R_OK) == 0
            else { continue }
            if try Files.read(mine) != Files.read(expected) {
                return Difference(description: "in the end the backing tree holds something else at \(path)")
            }
        }
        return nil
    }
}
