import Driver
import Foundation
import Glibc
import Replica
import Synchronization
import SystemPackage
import TestSupport
import Testing
import UbiquityModel

extension DriverTests {
    @Suite(.serialized)
    struct MutationTests {
        @Test
        func `what is published appears, with an event for watchers`() throws {
            try mounted { m in
                let watcher = try Watcher(m.root)
                let state = try m.publish(m.stage(Array("one".utf8)), "file")
                #expect(try watcher.wait(for: "MOVED_TO file"))
                #expect(try Files.text(m.path("file")) == "one")
                let next = try m.publish(m.stage(Array("two".utf8)), "file", expecting: .inode(LocalEvidence(state)))
                #expect(try Files.text(m.path("file")) == "two")
                #expect(next.key != state.key)
                #expect(m.host.changes.isEmpty)
                #expect(m.host.state.withLock { $0.deleted }.isEmpty)
                #expect(try Files.names(in: m.replica.stagingPath) == [])
            }
        }

        @Test(.enabled(if: Requirements.isRoot, "only root may give files away"))
        func `a new revision has the owner and the group of the one that it replaces`() throws {
            try mounted { m in
                try m.publish(m.stage(Array("one".utf8)), "file")
                #expect(chown(m.path("file"), 65534, 65533) == 0)
                let old = LocalEvidence(try m.observe("file"))
                try m.publish(m.stage(Array("two".utf8)), "file", expecting: .inode(old))
                #expect(try Files.text(m.path("file")) == "two")
                let status = try Files.status(m.path("file"))
                #expect((status.st_uid, status.st_gid) == (65534, 65533))
            }
        }

        @Test(arguments: [true, false])
        func `several are published in one go, each as if it were alone`(isKnown: Bool) throws {
            try mounted { m in
                // Where the kernel knows the folder it goes through the mount.
                try Files.makeFolder(m.backing("folder"))
                let folder = try m.observe("folder")
                m.replica.folders.insert(folder.key, parent: m.replica.tree.rootKey, name: Mounted.name("folder"))
                try Files.write("mine", to: m.backing("folder/3"))
                let watcher = isKnown ? try Watcher(m.path("folder")) : nil
                let mutations = try (0..<8).map { number in
                    Mutation.publish(
                        staged: try m.stage(Array("\(number)".utf8)),
                        parent: folder.key,
                        name: Mounted.name("\(number)"),
                        expecting: .absent
                    )
                }
                let results = try m.apply(mutations)
                #expect(results.map { (try? $0.get()) != nil } == (0..<8).map { $0 != 3 })
                #expect(results[3] == .failure(.stale))
                for number in 0..<8 {
                    #expect(try Files.text(m.path("folder/\(number)")) == (number == 3 ? "mine" : "\(number)"))
                }
                #expect(try watcher?.wait(for: "MOVED_TO 7") ?? true)
                #expect(try Files.names(in: m.replica.stagingPath).count == 1)
            }
        }

        @Test
        func `a name that was looked for before and not found appears`() throws {
            try mounted { m in
                #expect(!Files.exists(m.path("file")))
                try m.publish(m.stage(Array("one".utf8)), "file")
                #expect(try Files.text(m.path("file")) == "one")
            }
        }

        @Test
        func `a name that was made beside the mount is in listings when the mount is told`() throws {
            try mounted { m in
                try Files.makeFolder(m.path("folder"))
                try Files.write("one", to: m.path("folder/one"))
                try eventually("it is closed") { m.mount.writableInodes().isEmpty }
                // The kernel keeps the listing from here on, as long as the folder's time is the same.
                for _ in 0..<3 { #expect(try Files.names(in: m.path("folder")) == ["one"]) }
                let folder = try m.observe("folder")
                _ = try run("touch", "-r", m.backing("folder"), m.folder + "/time")
                try Files.write("two", to: m.backing("folder/two"))
                _ = try run("touch", "-r", m.folder + "/time", m.backing("folder"))
                m.mount.nameAppeared(in: folder.key, Mounted.name("two"))
                try eventually("it is listed") { try Files.names(in: m.path("folder")).sorted() == ["one", "two"] }
            }
        }

        @Test
        func `nothing is published where something is, or over what changed`() throws {
            try mounted { m in
                try Files.write("mine", to: m.path("file"))
                try eventually("it is closed") { m.mount.writableInodes().isEmpty }
                let old = try m.observe("file")
                let staged = try m.stage(Array("theirs".utf8))
                let name = Mounted.name("file")
                let root = m.replica.tree.rootKey
                #expect(
                    try m.apply(.publish(staged: staged, parent: root, name: name, expecting: .absent))
                        == .failure(.stale)
                )
                try Files.append(" more", to: m.path("file"))
                try eventually("it is closed") { m.mount.writableInodes().isEmpty }
                let expecting = UbiquityModel.Expectation.inode(LocalEvidence(old))
                #expect(
                    try m.apply(.publish(staged: staged, parent: root, name: name, expecting: expecting))
                        == .failure(.stale)
                )
                #expect(
                    try m.apply(.remove(parent: root, name: name, expecting: LocalEvidence(old), isFolder: false))
                        == .failure(.stale)
                )
                #expect(try Files.text(m.path("file")) == "mine more")
                let current = LocalEvidence(try m.observe("file"))
                #expect(
                    try m.apply(.publish(staged: staged, parent: root, name: name, expecting: .inode(current))).get()
                        .state
                        != nil
                )
                #expect(try Files.text(m.path("file")) == "theirs")
            }
        }

        @Test
        func `a writer keeps the engine away, a reader does not`() throws {
            try mounted { m in
                try Files.write("mine", to: m.path("file"))
                let reader = try Files.open(m.path("file"), O_RDONLY)
                defer { close(reader) }
                let writer = try Files.open(m.path("file"), O_WRONLY)
                try eventually("one writer is left") { m.mount.writers(under: nil).count == 1 }
                let found = try #require(m.mount.writers(under: .root).first)
                #expect(found.process == getpid())
                #expect(found.path == ItemPath([Mounted.name("file")]))
                let old = LocalEvidence(try m.observe("file"))
                let staged = try m.stage(Array("theirs".utf8))
                let mutation = Mutation.publish(
                    staged: staged,
                    parent: m.replica.tree.rootKey,
                    name: Mounted.name("file"),
                    expecting: .inode(old)
                )
                #expect(try m.apply(mutation) == .failure(.busy))
                close(writer)
                try eventually("no writer is left") { !m.mount.hasWriter(old.key) }
                _ = try m.apply(mutation).get()
                var buffer = [UInt8](repeating: 0, count: 4)
                #expect(pread(reader, &buffer, 4, 0) == 4)
                #expect(buffer == Array("mine".utf8))
                #expect(try Files.text(m.path("file")) == "theirs")
            }
        }

        @Test
        func `what is written to a replaced file is kept`() throws {
            try mounted { m in
                try Files.write("mine", to: m.path("file"))
                let reader = try Files.open(m.path("file"), O_RDONLY)
                defer { close(reader) }
                try eventually("no writer is left") { m.mount.writableInodes().isEmpty }
                let old = LocalEvidence(try m.observe("file"))
                try m.publish(m.stage(Array("theirs".utf8)), "file", expecting: .inode(old))
                // The old inode, by its descriptor: no name leads there any more.
                let writer = try Files.open("/proc/self/fd/\(reader)", O_WRONLY)
                #expect(write(writer, "late", 4) == 4)
                close(writer)
                try eventually("the host has the bytes") { m.host.state.withLock { $0.orphans.count == 1 } }
                let orphan = try #require(m.host.state.withLock { $0.orphans.first })
                #expect(orphan.bytes == Array("late".utf8))
                #expect(orphan.key == old.key)
                #expect(orphan.name == Mounted.name("file"))
                #expect(try Files.text(m.path("file")) == "theirs")
            }
        }

        @Test
        func `an open that waited while its file was replaced opens the new one`() throws {
            try mounted { m in
                try Files.write("old", to: m.path("file"))
                try eventually("it is closed") { m.mount.writableInodes().isEmpty }
                let old = LocalEvidence(try m.observe("file"))
                m.host.state.withLock { $0.claims = [ItemPath([Mounted.name("file")])] }
                #expect(failure(unlink(m.path("file"))) == EBUSY)
                #expect(failure(rename(m.path("file"), m.path("moved"))) == EBUSY)
                #expect(failure(truncate(m.path("file"), 1)) == EBUSY)
                let path = m.path("file")
                let reader = Background { try Files.text(path) }
                try eventually("the open waits") { m.host.openWaiting == 1 }
                #expect(failure(open(path, O_RDONLY | O_NONBLOCK)) == EAGAIN)
                try m.publish(m.stage(Array("new".utf8)), "file", expecting: .inode(old))
                m.host.endClaims()
                #expect(try reader.get() == "new")
            }
        }

        @Test
        func `items are moved and removed, with events, and files stay open`() throws {
            try mounted { m in
                try Files.makeFolder(m.path("a"))
                try Files.makeFolder(m.path("b"))
                try Files.write("x", to: m.path("a/file"))
                let a = try m.observe("a")
                let b = try m.observe("b")
                let file = try Files.open(m.path("a/file"), O_RDWR)
                defer { close(file) }
                let folder = try m.replica.tree.openFolder(key: a.key)
                let state = try #require(try m.replica.tree.observe(in: folder.raw, Mounted.name("file")))
                let watcher = try Watcher(m.path("b"))
                let name = Mounted.name("file")
                _ = try m.apply(
                    .move(
                        fromParent: a.key,
                        fromName: name,
                        toParent: b.key,
                        toName: name,
                        expecting: LocalEvidence(state)
                    )
                ).get()
                #expect(try watcher.wait(for: "MOVED_TO file"))
                #expect(write(file, "y", 1) == 1)
                #expect(try Files.text(m.path("b/file")) == "y")
                #expect(
                    try m.apply(
                        .remove(
                            parent: m.replica.tree.rootKey,
                            name: Mounted.name("b"),
                            expecting: LocalEvidence(b),
                            isFolder: true
                        )
                    )
                        == .failure(.notEmpty)
                )
                _ = try m.apply(
                    .remove(
                        parent: m.replica.tree.rootKey,
                        name: Mounted.name("a"),
                        expecting: LocalEvidence(a),
                        isFolder: true
                    )
                ).get()
                #expect(try Files.names(in: m.root) == ["b"])
            }
        }

        @Test
        func `a move says whether a program wrote to the file`() throws {
            try mounted { m in
                func move(_ old: String, _ new: String, _ state: LocalState) throws -> Bool {
                    let root = m.replica.tree.rootKey
                    return try m.apply(
                        .move(
                            fromParent: root,
                            fromName: Mounted.name(old),
                            toParent: root,
                            toName: Mounted.name(new),
                            expecting: LocalEvidence(state)
                        )
                    ).get().isUnchanged
                }
                try Files.write("x", to: m.path("a"))
                try eventually("it is closed") { m.mount.writableInodes().isEmpty }
                #expect(try move("a", "b", m.observe("a")))
                let seen = try m.observe("b")
                try Files.write("y", to: m.path("b"))
                try eventually("it is closed") { m.mount.writableInodes().isEmpty }
                #expect(try !move("b", "c", seen))
                let writer = try Files.open(m.path("c"), O_WRONLY)
                #expect(try !move("c", "d", m.observe("c")))
                close(writer)
                try Files.makeFolder(m.path("folder"))
                let folder = try m.observe("folder")
                try Files.write("z", to: m.path("folder/z"))
                #expect(try move("folder", "renamed", folder))
            }
        }

        @Test
        func `attributes are set in one mutation, with an event`() throws {
            try mounted { m in
                try Files.write("x", to: m.path("file"))
                try eventually("it is closed") { m.mount.writableInodes().isEmpty }
                let watcher = try Watcher(m.root)
                let modified = Timestamp(seconds: 1_600_000_000, nanoseconds: 42)
                let state = try m.observe("file")
                let after = try m.apply(
                    .setAttributes(
                        parent: m.replica.tree.rootKey,
                        name: Mounted.name("file"),
                        expecting: LocalEvidence(state),
                        modified: modified,
                        mode: 0o600,
                        extended: ([Array("user.color".utf8): Array("red".utf8)], [Array("user.none".utf8)])
                    )
                ).get().state
                #expect(after?.modified == modified)
                #expect(try watcher.wait(for: "ATTRIB file"))
                let status = try Files.status(m.path("file"))
                #expect(status.st_mode & 0o777 == 0o600)
                #expect(status.st_mtim.tv_sec == 1_600_000_000)
                #expect(try Files.attribute("user.color", of: m.path("file")) == "red")
                #expect(m.host.changes.filter { $0.aspects.contains(.attributes) }.isEmpty)
            }
        }

        @Test
        func `folders that the kernel does not know are changed directly, and then seen`() throws {
            func prepare(_ replica: Replica) throws {
                try Files.makeFolder(replica.treePath + "/deep")
                try Files.makeFolder(replica.treePath + "/deep/er")
                let deep = try #require(try replica.tree.observe(in: replica.tree.rootDescriptor, Mounted.name("deep")))
                replica.folders.insert(deep.key, parent: replica.tree.rootKey, name: Mounted.name("deep"))
                let folder = try replica.tree.openFolder(key: deep.key)
                let deeper = try #require(try replica.tree.observe(in: folder.raw, Mounted.name("er")))
                replica.folders.insert(deeper.key, parent: deep.key, name: Mounted.name("er"))
            }
            try mounted(prepare: prepare) { m in
                let deep = try m.observe("deep")
                let folder = try m.replica.tree.openFolder(key: deep.key)
                let deeper = try #require(try m.replica.tree.observe(in: folder.raw, Mounted.name("er")))
                for number in 0..<50 {
                    let state = try m.publish(m.stage(Array("\(number)".utf8)), "file \(number)", parent: deeper.key)
                    if number.isMultiple(of: 2) {
                        let other = try m.stage(Array("again \(number)".utf8))
                        try m.publish(
                            other,
                            "file \(number)",
                            parent: deeper.key,
                            expecting: .inode(LocalEvidence(state))
                        )
                    }
                }
                #expect(try Files.names(in: m.path("deep/er")).count == 50)
                #expect(try Files.text(m.path("deep/er/file 4")) == "again 4")
                #expect(try Files.text(m.path("deep/er/file 5")) == "5")
            }
        }

        @Test
        func `programs and the engine change one folder at once, and nothing is lost`() throws {
            try mounted { m in
                // Two programs save the same file safely over and over; the engine replaces it whenever it is as it was seen.
                let root = m.root
                let rounds = 300
                let (tried, published) = (Counter(), Counter())
                try Files.write("start", to: m.path("file"))
                let writers = (0..<2).map { writer in
                    Background {
                        var round = 0
                        while round < rounds || (published.count < 3 && round < 2 * rounds) {
                            let new = root + "/new \(writer)"
                            try Files.write("program \(writer) \(round)", to: new)
                            try Files.rename(new, to: root + "/file")
                            round += 1
                            // However the processors are shared out: from here on the engine has its turn after each save.
                            let seen = tried.count
                            if round >= rounds { try eventually("the engine's turn") { tried.count > seen + 1 } }
                        }
                    }
                }
                while !writers.allSatisfy(\.isDone) {
                    guard
                        let state = try m.replica.tree.observe(in: m.replica.tree.rootDescriptor, Mounted.name("file"))
                    else {
                        throw TestFailure("the file was gone")
                    }
                    let staged = try m.stage(Array("engine".utf8))
                    let result = try m.apply(
                        .publish(
                            staged: staged,
                            parent: m.replica.tree.rootKey,
                            name: Mounted.name("file"),
                            expecting: .inode(LocalEvidence(state))
                        )
                    )
                    switch result {
                    case .success: published.add()
                    case .failure(.stale), .failure(.busy): try m.replica.staging.remove(staged)
                    case .failure(let failure): throw failure
                    }
                    tried.add()
                }
                for writer in writers { try writer.get() }
                #expect(published.count > 0)
                #expect(try Files.names(in: m.root) == ["file"])
                #expect(m.host.state.withLock { $0.deleted }.allSatisfy { $0 == Mounted.name("file") })
            }
        }
    }
}

/// Counted on one thread, looked at on others.
private final class Counter: Sendable {
    private let value = Atomic(0)

    var count: Int { value.load(ordering: .relaxed) }
    func add() { value.add(1, ordering: .relaxed) }
}

/// `inotifywait -m` on a folder.
final class Watcher: Sendable {
    private let command: Command

    init(_ folder: String) throws {
        command = try Command(["inotifywait", "-m", "--format", "%e %f", folder])
        let command = command
        try eventually("the watch is set") { command.errorsSoFar.contains("Watches established") }
    }

    func wait(for event: String) throws -> Bool {
        try eventually("the event \(event); seen: \(command.outputSoFar)") {
            command.outputSoFar.split(separator: "\n").contains { $0 == event }
        }
        return true
    }

    deinit { command.kill() }
}
