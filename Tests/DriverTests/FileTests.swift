import CLinux
import Driver
import Glibc
import Replica
import Synchronization
import TestSupport
import Testing
import UbiquityModel

extension DriverTests {
    @Suite(.serialized)
    struct FileTests {
        @Test
        func `a file is written, read, changed in the middle and at its end`() throws {
            try mounted { m in
                let content = randomBytes(3_000_001)
                try Files.write(content, to: m.path("file"))
                #expect(try Files.read(m.path("file")) == content)
                #expect(try Files.read(m.backing("file")) == content)
                let file = try Files.open(m.path("file"), O_RDWR)
                defer { close(file) }
                #expect(pwrite(file, "middle", 6, 1000) == 6)
                try Files.append("end", to: m.path("file"))
                var expected = content
                expected.replaceSubrange(1000..<1006, with: Array("middle".utf8))
                expected += Array("end".utf8)
                #expect(try Files.read(m.path("file")) == expected)
                #expect(ftruncate(file, 10) == 0)
                #expect(try Files.read(m.path("file")) == Array(expected[..<10]))
            }
        }

        @Test
        func `an unlinked file that is open can be read, written and looked at`() throws {
            try mounted { m in
                try Files.write("before", to: m.path("file"))
                let file = try Files.open(m.path("file"), O_RDWR)
                defer { close(file) }
                try Files.remove(m.path("file"))
                #expect(!Files.exists(m.path("file")))
                #expect(pwrite(file, "after ", 6, 0) == 6)
                var buffer = [UInt8](repeating: 0, count: 6)
                #expect(pread(file, &buffer, 6, 0) == 6)
                #expect(buffer == Array("after ".utf8))
                var status = stat()
                #expect(fstat(file, &status) == 0)
                #expect(status.st_nlink == 0)
                #expect(fchmod(file, 0o600) == 0)
            }
        }

        @Test
        func `a rename over a file leaves the old one to those who have it open`() throws {
            try mounted { m in
                try Files.write("old", to: m.path("file"))
                let old = try Files.open(m.path("file"), O_RDONLY)
                defer { close(old) }
                try Files.replace(m.path("file"), with: Array("new".utf8))
                #expect(try Files.text(m.path("file")) == "new")
                var buffer = [UInt8](repeating: 0, count: 3)
                #expect(pread(old, &buffer, 3, 0) == 3)
                #expect(buffer == Array("old".utf8))
                #expect(m.host.state.withLock { $0.deleted } == [Mounted.name("file")])
            }
        }

        @Test
        func `hard links are one inode until the last name goes`() throws {
            try mounted { m in
                try Files.write("one", to: m.path("a"))
                #expect(link(m.path("a"), m.path("b")) == 0)
                #expect(try Files.status(m.path("a")).st_ino == Files.status(m.path("b")).st_ino)
                #expect(try Files.status(m.path("a")).st_nlink == 2)
                try Files.append(" two", to: m.path("b"))
                #expect(try Files.text(m.path("a")) == "one two")
                try Files.remove(m.path("a"))
                #expect(try Files.status(m.path("b")).st_nlink == 1)
                #expect(try Files.text(m.path("b")) == "one two")
                try Files.rename(m.path("b"), to: m.path("c"))
                #expect(try Files.text(m.path("c")) == "one two")
            }
        }

        @Test
        func `folders, links and special files are what the disk makes of them`() throws {
            try mounted { m in
                try Files.makeFolder(m.path("folder"))
                try Files.makeFolder(m.path("folder/inner"))
                try Files.write("x", to: m.path("folder/inner/file"))
                #expect(failure(rmdir(m.path("folder"))) == ENOTEMPTY)
                #expect(m.host.state.withLock { $0.deleted }.isEmpty)
                try Files.rename(m.path("folder"), to: m.path("moved"))
                #expect(try Files.text(m.path("moved/inner/file")) == "x")
                #expect(symlink("moved/inner", m.path("link")) == 0)
                #expect(try Files.text(m.path("link/file")) == "x")
                #expect(mkfifo(m.path("fifo"), 0o644) == 0)
                #expect(try Files.status(m.path("fifo")).st_mode & S_IFMT == S_IFIFO)
                #expect(try Files.names(in: m.root) == ["fifo", "link", "moved"])
                try Files.remove(m.path("moved/inner/file"))
                #expect(rmdir(m.path("moved/inner")) == 0)
                #expect(try Files.names(in: m.path("moved")) == [])
            }
        }

        @Test
        func `rename keeps its flags`() throws {
            try mounted { m in
                try Files.write("a", to: m.path("a"))
                try Files.write("b", to: m.path("b"))
                let keep = UInt32(CLINUX_RENAME_NOREPLACE)
                #expect(clinux_rename_at(AT_FDCWD, m.path("a"), AT_FDCWD, m.path("b"), keep) == -EEXIST)
                let exchange = UInt32(CLINUX_RENAME_EXCHANGE)
                #expect(clinux_rename_at(AT_FDCWD, m.path("a"), AT_FDCWD, m.path("b"), exchange) == 0)
                #expect(try Files.text(m.path("a")) == "b")
                #expect(try Files.text(m.path("b")) == "a")
                #expect(m.host.state.withLock { $0.deleted }.isEmpty)
            }
        }

        @Test
        func `a shared mapping reaches the file`() throws {
            try mounted { m in
                try Files.write([UInt8](repeating: 1, count: 8192), to: m.path("file"))
                let file = try Files.open(m.path("file"), O_RDWR)
                let mapped = try #require(mmap(nil, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0))
                close(file)
                let key = try m.observe("file").key
                // Long enough for its handle to be released.
                try steadily("it is among what may be written to", for: .milliseconds(50)) {
                    m.mount.hasWriter(key) && m.mount.writableInodes().map(\.key) == [key]
                }
                #expect(m.mount.writers(under: nil).map(\.key) == [key])
                mapped.storeBytes(of: 7, toByteOffset: 5000, as: UInt8.self)
                munmap(mapped, 8192)
                try eventually("the mapping's handle is released") { !m.mount.hasWriter(key) }
                #expect(try Files.read(m.backing("file"))[5000] == 7)
                #expect(try Files.read(m.path("file"))[5000] == 7)
                #expect(m.mount.writers(under: nil).isEmpty)
            }
        }

        @Test
        func `of a file that is mapped when it is deleted nothing is left after that`() throws {
            try mounted { m in
                let file = try Files.open(m.path("file"), O_RDWR | O_CREAT)
                #expect(ftruncate(file, 4096) == 0)
                let key = try m.observe("file").key
                let mapped = try #require(mmap(nil, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0))
                try #require(mapped != MAP_FAILED)
                close(file)
                // Long enough for its handle to be released.
                try steadily("it has a writer", for: .milliseconds(50)) { m.mount.hasWriter(key) }
                try Files.remove(m.path("file"))
                munmap(mapped, 4096)
                try eventually("the writer is gone") { m.host.state.withLock { $0.closed } == [key] }
            }
        }

        @Test
        func `holes are found, made, and copied ranges are counted`() throws {
            try mounted { m in
                let file = try Files.open(m.path("sparse"), O_RDWR | O_CREAT)
                defer { close(file) }
                #expect(pwrite(file, "x", 1, 1 << 20) == 1)
                #expect(lseek(file, 0, Int32(CLINUX_SEEK_DATA)) == 1 << 20)
                #expect(lseek(file, 0, Int32(CLINUX_SEEK_HOLE)) == 0)
                #expect(clinux_fallocate(file, 0, 0, 4 << 20) == 0)
                #expect(lseek(file, 0, SEEK_END) == 4 << 20)
                #expect(
                    clinux_fallocate(file, Int32(CLINUX_FALLOC_PUNCH_HOLE | CLINUX_FALLOC_KEEP_SIZE), 1 << 20, 4096)
                        == 0
                )
                #expect(pwrite(file, "x", 1, 1 << 20) == 1)
                let copy = try Files.open(m.path("copy"), O_RDWR | O_CREAT)
                defer { close(copy) }
                #expect(clinux_copy_range(file, 1 << 20, copy, 0, 1) == 1)
                #expect(try Files.text(m.path("copy")) == "x")
                #expect(m.host.changes.contains { $0.name == Mounted.name("copy") && $0.aspects.contains(.content) })
            }
        }

        @Test
        func `a file without a name works, vanishes, and can be given one`() throws {
            try mounted { m in
                try Files.makeFolder(m.path("folder"))
                let unnamed = Int32(CLINUX_O_TMPFILE) | O_DIRECTORY | O_RDWR
                let file = clinux_open_at(AT_FDCWD, m.path("folder"), unnamed, 0o640)
                #expect(file >= 0)
                #expect(pwrite(file, "content", 7, 0) == 7)
                #expect(try Files.names(in: m.path("folder")) == [])
                m.host.forgetChanges()
                #expect(linkat(AT_FDCWD, "/proc/self/fd/\(file)", AT_FDCWD, m.path("named"), AT_SYMLINK_FOLLOW) == 0)
                #expect(try Files.text(m.path("named")) == "content")
                let status = try Files.status(m.path("named"))
                #expect(status.st_nlink == 1)
                #expect(status.st_mode & 0o7777 == 0o640)
                #expect(m.host.changes.contains { $0.name == Mounted.name("named") && $0.aspects.contains(.entry) })
                close(file)
                let other = clinux_open_at(AT_FDCWD, m.path("folder"), unnamed, 0o600)
                #expect(other >= 0)
                close(other)
                #expect(rmdir(m.path("folder")) == 0)
            }
        }

        @Test
        func `statistics are the disk's`() throws {
            try mounted { m in
                var here = statvfs()
                var there = statvfs()
                #expect(statvfs(m.root, &here) == 0)
                #expect(statvfs(m.tree, &there) == 0)
                #expect(here.f_blocks == there.f_blocks)
            }
        }

        @Test
        func `names of any bytes are kept`() throws {
            try mounted { m in
                let name: [UInt8] = [0xff, 0xfe, 0x20, 0x5c, 0x0a]
                let path = (Array(m.root.utf8) + [0x2f] + name + [0]).map(CChar.init(bitPattern:))
                let file = open(path, O_WRONLY | O_CREAT, 0o644)
                #expect(file >= 0)
                close(file)
                let shown = try Files.rawNames(in: Array(m.root.utf8))
                #expect(shown == [name])
                let stored = try Files.rawNames(in: Array(m.tree.utf8))
                #expect(stored == [name])
            }
        }
    }
}
