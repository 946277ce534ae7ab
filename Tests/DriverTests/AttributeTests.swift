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
    struct AttributeTests {
        @Test
        func `our stored attributes are invisible, the virtual ones answer, others are ordinary`() throws {
            try mounted { m in
                try m.makeDataless("file", Array("content".utf8))
                let path = m.path("file")
                #expect(try Files.attributeNames(of: path) == [])
                #expect(try Files.attribute("user.ubiquity..placeholder", of: path) == nil)
                #expect(failure(setxattr(path, "user.ubiquity..placeholder", "x", 1, 0)) == EPERM)
                #expect(failure(removexattr(path, "user.ubiquity..placeholder")) == ENODATA)
                #expect(failure(setxattr(path, "user.ubiquity.anything", "x", 1, 0)) == EPERM)
                #expect(try Files.attribute("user.ubiquity.state", of: path) == "state of file")
                #expect(failure(setxattr(path, "user.ubiquity.state", "x", 1, 0)) == EPERM)
                try Files.setAttribute("user.color", of: path, to: "red")
                try Files.setAttribute("user.ubiquity.package", of: m.path("file"), to: "1")
                #expect(try Set(Files.attributeNames(of: path)) == ["user.color", "user.ubiquity.package"])
                #expect(removexattr(path, "user.color") == 0)
                #expect(try Files.attribute("user.color", of: path) == nil)
                #expect(m.host.changes.filter { $0.aspects == .attributes }.count == 3)
            }
        }

        @Test(.enabled(if: geteuid() == 0, "only root may give capabilities"))
        func `capabilities that a new file is given are read, and taken by a write`() throws {
            try mounted { m in
                let path = m.path("file")
                let file = try Files.open(path, O_WRONLY | O_CREAT)
                defer { close(file) }
                // The kernel asks for them before it writes.
                #expect(write(file, "x", 1) == 1)
                #expect(try Files.attribute("security.capability", of: path) == nil)
                // Revision 2, CAP_NET_BIND_SERVICE permitted.
                let value = "\0\0\0\u{2}\0\u{4}" + String(repeating: "\0", count: 14)
                #expect(setxattr(path, "security.capability", value, 20, 0) == 0)
                #expect(try Files.attribute("security.capability", of: path) == value)
                #expect(write(file, "y", 1) == 1)
                #expect(try Files.attribute("security.capability", of: path) == nil)
            }
        }

        @Test
        func `the control attribute passes verbs on`() throws {
            try mounted { m in
                try Files.write("x", to: m.path("file"))
                try Files.setAttribute("user.ubiquity.control", of: m.path("file"), to: "download")
                #expect(m.host.state.withLock { $0.controls } == ["download file"])
                #expect(failure(setxattr(m.path("file"), "user.ubiquity.control", "dance", 5, 0)) == EINVAL)
            }
        }

        @Test
        func `times and modes are set and reported`() throws {
            try mounted { m in
                try Files.write("x", to: m.path("file"))
                #expect(chmod(m.path("file"), 0o4751) == 0)
                var times = [timespec(tv_sec: 1, tv_nsec: 2), timespec(tv_sec: 1_500_000_000, tv_nsec: 987_654_321)]
                #expect(utimensat(AT_FDCWD, m.path("file"), &times, 0) == 0)
                let status = try Files.status(m.path("file"))
                #expect(status.st_mode & 0o7777 == 0o4751)
                #expect(status.st_mtim.tv_nsec == 987_654_321)
                #expect(m.host.changes.filter { $0.aspects == .attributes }.count == 2)
            }
        }
    }

    @Suite(.serialized)
    struct ChangeTests {
        @Test
        func `a write is marked once until it is collected, and again after that`() throws {
            try mounted { m in
                let file = try Files.open(m.path("file"), O_WRONLY | O_CREAT)
                let key = try m.observe("file").key
                func marks() -> Int { m.host.changes.filter { $0.aspects.contains(.content) }.count }
                for _ in 0..<10 { #expect(write(file, "x", 1) == 1) }
                // With passthrough nobody sees the write itself.
                try eventually("it is noticed") { marks() == 1 }
                #expect(m.mount.collectDirty(key))
                #expect(!m.mount.collectDirty(key))
                #expect(write(file, "x", 1) == 1)
                try eventually("it is noticed again") { marks() == 2 }
                #expect(m.mount.writableInodes().map(\.key) == [key])
                close(file)
                try eventually("the release is reported") { m.host.changes.last?.aspects == [.content, .closed] }
                #expect(m.host.state.withLock { $0.closed } == [key])
                #expect(m.mount.writableInodes().isEmpty)
            }
        }

        @Test
        func `opening and reading is no change`() throws {
            try mounted { m in
                try Files.write("x", to: m.path("file"))
                try eventually("it is closed") { m.host.changes.last?.aspects.contains(.closed) ?? false }
                m.host.forgetChanges()
                #expect(try Files.text(m.path("file")) == "x")
                let file = try Files.open(m.path("file"), O_RDWR)
                close(file)
                try eventually("the writer's end is reported") { m.host.changes.last?.aspects == .closed }
                #expect(m.host.changes.count == 1)
            }
        }

        @Test
        func `names are reported with where they came from`() throws {
            try mounted { m in
                try Files.makeFolder(m.path("folder"))
                try Files.write("x", to: m.path("file"))
                let key = try m.observe("file").key
                let folder = try m.observe("folder").key
                try Files.rename(m.path("file"), to: m.path("folder/moved"))
                let change = try #require(m.host.changes.last { $0.aspects == .entry })
                #expect(change.key == key)
                #expect(change.parent == folder)
                #expect(change.movedFrom?.name == Mounted.name("file"))
                #expect(m.mount.path(of: key) == ItemPath([Mounted.name("folder"), Mounted.name("moved")]))
                try Files.rename(m.path("folder"), to: m.path("other"))
                #expect(m.mount.path(of: key) == ItemPath([Mounted.name("other"), Mounted.name("moved")]))
                #expect(m.replica.folders.path(of: folder) == ItemPath([Mounted.name("other")]))
            }
        }
    }

    @Suite(.serialized)
    struct VersionTests {
        @Test
        func `versions are listed, read, copied and removed`() throws {
            try mounted { m in
                try Files.write("winner", to: m.path("note.txt"))
                let revision = RevisionID.random()
                let loser = Array("loser's words".utf8)
                let version = ItemVersion(
                    revision: revision,
                    kind: .conflict,
                    content: try #require(ContentID(bytes: [UInt8](repeating: 0, count: 32))),
                    size: Int64(loser.count),
                    edited: Timestamp(nanoseconds: 1_795_256_102_123_000_000),
                    modified: Timestamp(seconds: 1_700_000_000, nanoseconds: 5),
                    device: "lap/top",
                    name: Mounted.name("note.txt")
                )
                m.host.state.withLock { state in
                    state.contents[revision] = loser
                    state.listings[.root] = VersionListing(children: [Mounted.name("note.txt")])
                    state.listings[ItemPath([Mounted.name("note.txt")])] = VersionListing(versions: [version])
                }
                #expect(try Files.names(in: m.root) == ["note.txt"])
                #expect(try Files.names(in: m.path(".versions")) == ["note.txt"])
                let entry = "2026-11-21T10:15:02.123Z lap-top conflict.txt"
                #expect(try Files.names(in: m.path(".versions/note.txt")) == [entry])
                let path = m.path(".versions/note.txt/\(entry)")
                #expect(try Files.read(path) == loser)
                #expect(try Files.status(path).st_size == loser.count)
                #expect(try Files.status(path).st_mode & 0o222 == 0)
                try succeed("cp", path, m.path("back.txt"))
                #expect(try Files.read(m.path("back.txt")) == loser)
                #expect(failure(open(path, O_RDWR)) == EROFS)
                #expect(failure(rename(path, m.path("moved"))) == EXDEV)
                #expect(failure(mkdir(m.path(".versions"), 0o755)) == EEXIST)
                #expect(failure(mkdir(m.path(".versions/folder"), 0o755)) == EROFS)
                #expect(!Files.exists(m.path(".versions/other")))
                #expect(failure(rename(m.path("note.txt"), path)) == EROFS)
                m.host.state.withLock { $0.versionFailure = .networkDown }
                #expect(failure(unlink(path)) == ENETDOWN)
                #expect(failure(rename(path, m.path("note.txt"))) == ENETDOWN)
                #expect(try Files.read(path) == loser && Files.read(m.path("note.txt")) == Array("winner".utf8))
                m.host.state.withLock { $0.versionFailure = nil }
                try Files.remove(path)
                #expect(m.host.state.withLock { $0.removedVersions } == [revision])
                #expect(!Files.exists(path))
            }
        }

        @Test
        func `an entry that is moved over its file is no other file, and takes nothing away`() throws {
            try mounted { m in
                try Files.write("winner", to: m.path("note.txt"))
                let revision = RevisionID.random()
                let version = ItemVersion(
                    revision: revision,
                    kind: .conflict,
                    content: try #require(ContentID(bytes: [UInt8](repeating: 0, count: 32))),
                    size: 5,
                    edited: Timestamp(nanoseconds: 1_795_256_102_123_000_000),
                    modified: Timestamp(seconds: 1_700_000_000, nanoseconds: 5),
                    device: "b",
                    name: Mounted.name("note.txt")
                )
                m.host.state.withLock { state in
                    state.contents[revision] = Array("loser".utf8)
                    state.listings[.root] = VersionListing(children: [Mounted.name("note.txt")])
                    state.listings[ItemPath([Mounted.name("note.txt")])] = VersionListing(versions: [version])
                }
                let entry = m.path(".versions/note.txt/2026-11-21T10:15:02.123Z b conflict.txt")
                m.host.state.withLock { $0.stalledVersions = [revision] }
                #expect(throws: (any Error).self) { try succeed("timeout", "-s", "INT", "0.2", "cat", entry) }
                try eventually("nobody fetches it any more") {
                    m.host.state.withLock { $0.calledOffVersions } == [revision]
                }
                try succeed("mv", entry, m.path("note.txt"))
                #expect(m.host.state.withLock { $0.returnedVersions } == [revision])
                #expect(m.host.state.withLock { $0.deleted }.isEmpty)
                // What the host makes of it comes later; until then the file is what it was.
                try eventually("the name is the file's again") {
                    try Files.read(m.path("note.txt")) == Array("winner".utf8)
                        && Files.status(m.path("note.txt")).st_nlink == 1
                }
                try Files.append("+", to: m.path("note.txt"))
                #expect(try Files.read(m.path("note.txt")) == Array("winner+".utf8))
                #expect(!Files.exists(entry))
            }
        }

        @Test
        func `the folder of versions is shown when that is wanted`() throws {
            try mounted(showVersions: true) { m in
                try Files.write("x", to: m.path("file"))
                #expect(try Files.names(in: m.root) == [".versions", "file"])
            }
        }
    }
}
