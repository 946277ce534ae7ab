import CLinux
import Glibc
import Replica
import Synchronization
import TestSupport
import Testing
import UbiquityModel

extension DriverTests {
    /// Of a container that holds no two names of a folder that are equal without their case.
    @Suite(.serialized, Requirements.fuse)
    struct CaseTests {
        @Test
        func `nothing is made beside a name that differs in case only`() throws {
            try mounted(isCaseInsensitive: true) { m in
                try Files.write("x", to: m.path("Straße"))
                let twin = m.path("STRASSE")
                #expect(openFailure(twin, O_WRONLY | O_CREAT) == EEXIST)
                #expect(openFailure(twin, O_WRONLY | O_CREAT | O_EXCL) == EEXIST)
                #expect(failure(mkdir(twin, 0o755)) == EEXIST)
                #expect(failure(mkfifo(twin, 0o644)) == EEXIST)
                #expect(failure(symlink("there", twin)) == EEXIST)
                #expect(failure(link(m.path("Straße"), twin)) == EEXIST)
                // Lookups stay exact.
                #expect(openFailure(twin, O_RDONLY) == ENOENT)
                #expect(openFailure(m.path("Straße"), O_WRONLY | O_CREAT) == nil)
                try Files.makeFolder(m.path("folder"))
                try Files.write("x", to: m.path("folder/STRASSE"))
                try Files.remove(m.path("Straße"))
                try Files.write("x", to: twin)
                #expect(Set(try Files.names(in: m.root)) == ["STRASSE", "folder"])
            }
        }

        @Test
        func `a file without a name gets none that differs in case only`() throws {
            try mounted(isCaseInsensitive: true) { m in
                try Files.write("x", to: m.path("foo"))
                let file = try Files.open(m.root, Int32(CLINUX_O_TMPFILE) | O_DIRECTORY | O_WRONLY)
                defer { close(file) }
                let source = "/proc/self/fd/\(file)"
                #expect(failure(linkat(AT_FDCWD, source, AT_FDCWD, m.path("Foo"), AT_SYMLINK_FOLLOW)) == EEXIST)
                #expect(failure(linkat(AT_FDCWD, source, AT_FDCWD, m.path("bar"), AT_SYMLINK_FOLLOW)) == nil)
            }
        }

        @Test
        func `a name changes its case, and is replaced, but gets no twin`() throws {
            try mounted(isCaseInsensitive: true) { m in
                try Files.write("1", to: m.path("foo"))
                try Files.rename(m.path("foo"), to: m.path("Foo"))
                try Files.write("2", to: m.path("new"))
                #expect(failure(rename(m.path("new"), m.path("foo"))) == EEXIST)
                try Files.rename(m.path("new"), to: m.path("Foo"))
                #expect(try Files.text(m.path("Foo")) == "2")
                #expect(try Files.names(in: m.root) == ["Foo"])
                try Files.makeFolder(m.path("folder"))
                try Files.write("3", to: m.path("folder/FOO"))
                #expect(failure(rename(m.path("folder/FOO"), m.path("FOO"))) == EEXIST)
                let exchanged = clinux_rename_at(
                    AT_FDCWD,
                    m.path("folder/FOO"),
                    AT_FDCWD,
                    m.path("Foo"),
                    UInt32(CLINUX_RENAME_EXCHANGE)
                )
                #expect(exchanged == 0)
                #expect(try Files.text(m.path("Foo")) == "3")
                // A folder that moves away takes its name with it.
                try Files.makeFolder(m.path("Deep"))
                try Files.rename(m.path("Deep"), to: m.path("folder/Deep"))
                try Files.makeFolder(m.path("deep"))
                #expect(failure(mkdir(m.path("folder/deep"), 0o755)) == EEXIST)
                try succeed("rm", "-r", m.path("folder/Deep"))
                try Files.makeFolder(m.path("folder/deep"))
            }
        }

        @Test
        func `what the engine publishes counts, and is not refused`() throws {
            try mounted(isCaseInsensitive: true) { m in
                try Files.write("1", to: m.path("foo"))
                try m.publish(m.stage(Array("2".utf8)), "Foo")
                try m.publish(m.stage(Array("3".utf8)), "Bar")
                #expect(openFailure(m.path("bar"), O_WRONLY | O_CREAT) == EEXIST)
                // What are twins already can be saved as ever.
                try Files.write("4", to: m.path("new"))
                try Files.rename(m.path("new"), to: m.path("foo"))
                #expect(Set(try Files.names(in: m.root)) == ["Bar", "Foo", "foo"])
            }
        }

        @Test
        func `a name that is only in the cloud counts`() throws {
            try mounted(isCaseInsensitive: true) { m in
                m.host.state.withLock { $0.cloudNames = [Mounted.name("Foo")] }
                #expect(failure(mkdir(m.path("foo"), 0o755)) == EEXIST)
                try Files.makeFolder(m.path("Foo"))
                try Files.rename(m.path("Foo"), to: m.path("foo"))
            }
        }

        @Test
        func `elsewhere names that differ in case only stay beside each other`() throws {
            try mounted { m in
                m.host.state.withLock { $0.cloudNames = [Mounted.name("FOO")] }
                try Files.write("1", to: m.path("foo"))
                try Files.makeFolder(m.path("Foo"))
                #expect(Set(try Files.names(in: m.root)) == ["Foo", "foo"])
            }
        }
    }
}
