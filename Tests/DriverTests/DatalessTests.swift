import CLinux
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
    struct DatalessTests {
        let content = randomBytes(1_000_003, seed: 7)

        @Test
        func `a dataless file looks whole and costs a block at most`() throws {
            try mounted { m in
                try m.makeDataless("file", content, mode: 0o640)
                let status = try Files.status(m.path("file"))
                #expect(status.st_size == content.count)
                #expect(status.st_mode & 0o777 == 0o640)
                #expect(status.st_mtim.tv_sec == 1_700_000_000)
                #expect(status.st_mtim.tv_nsec == 123_456_789)
                #expect(status.st_blocks >= 1)
                #expect(try Files.allocated(m.backing("file")) <= 4096)
                #expect(m.host.state.withLock { $0.asked }.isEmpty)
            }
        }

        @Test
        func `only what is read is asked for, and it is read right`() throws {
            try mounted { m in
                try m.makeDataless("file", content)
                let file = try Files.open(m.path("file"), O_RDONLY)
                var buffer = [UInt8](repeating: 0, count: 1000)
                #expect(pread(file, &buffer, 1000, 500_000) == 1000)
                #expect(buffer == Array(content[500_000..<501_000]))
                let asked = m.host.state.withLock { $0.asked }
                #expect(asked.allSatisfy { $0.count <= 200_000 })
                close(file)
                #expect(try Files.read(m.path("file")) == content)
                try eventually("all handles are released") { m.host.state.withLock { $0.opened == $0.openedEnds } }
                #expect(m.host.state.withLock { $0.opened } == 2)
            }
        }

        @Test(arguments: ["cp", "cp --sparse=always", "tar", "cat", "rsync -aS", "dd"])
        func `tools copy content, not holes`(tool: String) throws {
            try mounted { m in
                try m.makeDataless("file", content)
                let copy = m.folder + "/copy"
                let line =
                    switch tool {
                    case "tar": "tar -cSf - -C \(m.root) file | tar -xOf - > \(copy)"
                    case "cat": "cat \(m.path("file")) > \(copy)"
                    case "dd": "dd if=\(m.path("file")) of=\(copy) iflag=direct bs=64k status=none"
                    default: "\(tool) \(m.path("file")) \(copy)"
                    }
                try succeed("bash", "-c", line)
                #expect(try Files.read(copy) == content)
                // And within the mount.
                if tool.hasPrefix("cp") {
                    try m.makeDataless("other", content)
                    try succeed("bash", "-c", "\(tool) \(m.path("other")) \(m.path("copied"))")
                    #expect(try Files.read(m.path("copied")) == content)
                }
            }
        }

        @Test
        func `a mapping is filled by page faults`() throws {
            try mounted { m in
                try m.makeDataless("file", content)
                let file = try Files.open(m.path("file"), O_RDONLY)
                defer { close(file) }
                for kind in [MAP_PRIVATE, MAP_SHARED] {
                    let mapped = try #require(mmap(nil, content.count, PROT_READ, Int32(kind), file, 0))
                    #expect(mapped != MAP_FAILED)
                    #expect(UnsafeRawBufferPointer(start: mapped, count: content.count).elementsEqual(content))
                    munmap(mapped, content.count)
                }
            }
        }

        @Test
        func `a read waits for late content, and others go on meanwhile`() throws {
            try mounted { m in
                try m.makeDataless("file", content)
                m.host.state.withLock { $0.delivery = .held }
                let path = m.path("file")
                let reader = Background { try Files.read(path) }
                try eventually("the read waits") { m.host.waiting > 0 }
                try Files.write("other", to: m.path("other"))
                try Files.rename(m.path("file"), to: m.path("moved"))
                #expect(try Files.names(in: m.root) == ["moved", "other"])
                #expect(!reader.isDone)
                m.host.release()
                #expect(try reader.get() == content)
            }
        }

        @Test(arguments: [ENETDOWN, ETIMEDOUT, EIO])
        func `a failed read says why`(code: Int32) throws {
            try mounted { m in
                try m.makeDataless("file", content)
                m.host.state.withLock { $0.delivery = .failing(Errno(rawValue: code)) }
                #expect(Files.readFailure(m.path("file")) == code)
                #expect(failure(truncate(m.path("file"), 10)) == code)
                #expect(failure(open(m.path("file"), O_WRONLY)) == code)
                m.host.state.withLock { $0.delivery = .atOnce }
                #expect(try Files.read(m.path("file")) == content)
            }
        }

        @Test
        func `a placeholder of a newer version is neither served nor written to`() throws {
            try mounted { m in
                try m.makeDataless("file", content)
                try Files.setAttribute(
                    "user.ubiquity..placeholder",
                    of: m.backing("file"),
                    to: "\u{7f}of another version"
                )
                #expect(Files.readFailure(m.path("file")) == EPROTO)
                #expect(openFailure(m.path("file"), O_WRONLY | O_TRUNC) == EPROTO)
                #expect(try Files.names(in: m.root) == ["file"])
            }
        }

        /// Reading ahead fills the neighbours of what a program reads, while that program looks at them for the first time.
        @Test
        func `who looks at a file for the first time sees the time that it has, although it is just being filled`()
            throws
        {
            let modified = Timestamp(seconds: 1_700_000_000, nanoseconds: 123_456_789)
            let revision = RevisionID.random()
            let count = 1500
            let prepare: (Replica) throws -> Void = { replica in
                let placeholder = Placeholder(
                    revision: revision,
                    generation: 1,
                    size: 7,
                    modified: modified,
                    mode: 0o640
                )
                for number in 0..<count {
                    let staged = try replica.staging.makePlaceholder(placeholder)
                    try Files.rename(replica.stagingPath + "/" + staged.name, to: "\(replica.treePath)/f\(number)")
                }
            }
            try mounted(prepare: prepare) { m in
                // Both come to each file at the same moment.
                let reached = Atomic(0)
                @Sendable func meet(_ number: Int) {
                    reached.add(1, ordering: .acquiringAndReleasing)
                    while reached.load(ordering: .acquiring) < 2 * (number + 1) {}
                }
                let isOver = DispatchSemaphore(value: 0)
                let failure = Mutex<(any Error)?>(nil)
                Thread.detachNewThread {
                    defer { isOver.signal() }
                    for number in 0..<count {
                        meet(number)
                        do {
                            let name = Mounted.name("f\(number)")
                            let file = try m.mount.placeholder(in: m.replica.tree.rootDescriptor, name, revision)
                            try Array("content".utf8).withUnsafeBytes { try file?.write($0, at: 0) }
                            guard let state = try file?.finish(isDurable: true) else { continue }
                            m.mount.becameWhole(state.key)
                        } catch {
                            failure.withLock { $0 = error }
                        }
                    }
                }
                var wrong: [String] = []
                for number in 0..<count {
                    meet(number)
                    // A little later each time: it is about a few microseconds.
                    let start = ContinuousClock.now
                    while ContinuousClock.now - start < .microseconds(number % 100) {}
                    let status = try Files.status(m.path("f\(number)"))
                    let seen = Timestamp(
                        seconds: Int64(status.st_mtim.tv_sec),
                        nanoseconds: Int64(status.st_mtim.tv_nsec)
                    )
                    if seen != modified || status.st_size != 7 || status.st_mode & 0o777 != 0o640 {
                        wrong.append("f\(number): \(status.st_size) bytes of \(seen)")
                    }
                }
                isOver.wait()
                #expect(wrong == [])
                #expect(failure.withLock { $0 } == nil)
            }
        }

        @Test
        func `a program that may not fetch gets an error and costs nothing`() throws {
            try mounted { m in
                try m.makeDataless("file", content)
                m.host.state.withLock { $0.forbiddenPrograms = true }
                #expect(Files.readFailure(m.path("file")) == ENODATA)
                #expect(failure(open(m.path("file"), O_RDWR)) == ENODATA)
                #expect(m.host.state.withLock { $0.asked }.isEmpty)
            }
        }

        @Test(arguments: [SIGKILL, SIGINT])
        func `a signal that ends the process frees a waiting reader at once`(signal: Int32) throws {
            try mounted { m in
                try m.makeDataless("file", content)
                m.host.state.withLock { $0.delivery = .held }
                let reader = try Command(["cat", m.path("file")])
                try eventually("the read waits") { m.host.waiting > 0 }
                reader.send(signal)
                #expect(try reader.wait(.seconds(20)).code == 128 + signal)
                #expect(m.host.state.withLock { $0.cancelled } >= 1)
            }
        }

        @Test
        func `a handled signal does not end a read, a later kill does`() throws {
            try mounted { m in
                try m.makeDataless("file", content)
                m.host.state.withLock { $0.delivery = .held }
                let program = """
                    import os, signal, sys
                    signal.signal(signal.SIGUSR1, lambda *_: sys.stdout.write('handled\\n'))
                    f = os.open(sys.argv[1], os.O_RDONLY)
                    print(len(os.read(f, 1000)), flush=True)
                    print(len(os.read(f, 1000)), flush=True)
                    """
                let reader = try Command(["python3", "-c", program, m.path("file")])
                try eventually("the read waits") { m.host.waiting > 0 }
                reader.send(SIGUSR1)
                try steadily("it goes on waiting", for: .milliseconds(400)) { reader.isRunning && m.host.waiting > 0 }
                #expect(m.host.state.withLock { $0.cancelled } == 0)
                m.host.release()
                try eventually("the first read is done") { reader.outputSoFar.contains("1000") }
                _ = try reader.wait()
            }
        }

        @Test
        func `after a handled signal the process can still be killed`() throws {
            try mounted { m in
                try m.makeDataless("file", content)
                m.host.state.withLock { $0.delivery = .held }
                let program = """
                    import os, signal, sys
                    signal.signal(signal.SIGUSR1, lambda *_: None)
                    os.read(os.open(sys.argv[1], os.O_RDONLY), 1000)
                    """
                let reader = try Command(["python3", "-c", program, m.path("file")])
                try eventually("the read waits") { m.host.waiting > 0 }
                reader.send(SIGUSR1)
                try steadily("it goes on waiting", for: .milliseconds(300)) { reader.isRunning }
                reader.send(SIGKILL)
                #expect(try reader.wait(.seconds(20)).code == 128 + SIGKILL)
            }
        }

        @Test
        func `an open for writing waits for the whole content`() throws {
            try mounted { m in
                try m.makeDataless("file", content)
                m.host.state.withLock { $0.delivery = .held }
                let path = m.path("file")
                let opened = Background { try Files.open(path, O_RDWR) }
                try eventually("the open waits") { m.host.waiting == 1 }
                #expect(m.host.state.withLock { $0.asked } == [0..<Int64(content.count)])
                m.host.release()
                let file = try opened.get()
                #expect(pwrite(file, "new", 3, 0) == 3)
                close(file)
                let expected = Array("new".utf8) + content[3...]
                #expect(try Files.read(path) == expected)
                #expect(try m.observe("file").placeholder == nil)
            }
        }

        @Test
        func `truncation to nothing fetches nothing, to something everything`() throws {
            try mounted { m in
                try m.makeDataless("a", content)
                try m.makeDataless("b", content)
                try m.makeDataless("c", content)
                try Files.write("short", to: m.path("a"))
                #expect(truncate(m.path("b"), 0) == 0)
                #expect(m.host.state.withLock { $0.asked }.isEmpty)
                #expect(try Files.text(m.path("a")) == "short")
                #expect(try Files.status(m.path("b")).st_size == 0)
                #expect(try m.observe("a").placeholder == nil)
                #expect(try m.observe("b").placeholder == nil)
                #expect(truncate(m.path("c"), 1000) == 0)
                #expect(try Files.read(m.path("c")) == Array(content[..<1000]))
            }
        }

        @Test
        func `an open that waits for the content of a file that is rewritten meanwhile finds the new one`() throws {
            try mounted { m in
                for round in 0..<20 {
                    let name = "file \(round)"
                    try m.makeDataless(name, content)
                    let path = m.path(name)
                    m.host.state.withLock { $0.delivery = .held }
                    let waiting = m.host.waiting
                    let appender = Background { try Files.open(path, O_WRONLY | O_APPEND) }
                    try eventually("the open waits") { m.host.waiting > waiting }
                    let host = m.host
                    // At the same time as the truncation, so that all orders occur.
                    let release = Background { host.release() }
                    try Files.write("short", to: path)
                    try release.get()
                    let file = try appender.get()
                    #expect(write(file, " and more", 9) == 9)
                    close(file)
                    let found = try Files.read(path)
                    #expect(found == Array("short and more".utf8), "round \(round): \(found.count) bytes")
                    #expect(try m.observe(name).placeholder == nil)
                    #expect(try Files.status(path).st_mtim.tv_sec > 1_700_000_001)
                }
            }
        }

        @Test
        func `a reader goes on across truncation and replacement by others`() throws {
            try mounted { m in
                try m.makeDataless("file", content)
                let file = try Files.open(m.path("file"), O_RDONLY)
                defer { close(file) }
                try Files.write("short", to: m.path("file"))
                var buffer = [UInt8](repeating: 0, count: 100)
                #expect(pread(file, &buffer, 100, 0) == 5)
                #expect(Array(buffer[..<5]) == Array("short".utf8))
            }
        }

        @Test
        func `an unlinked dataless file can still be read by who has it open`() throws {
            try mounted { m in
                try m.makeDataless("file", content)
                let file = try Files.open(m.path("file"), O_RDONLY)
                defer { close(file) }
                try Files.remove(m.path("file"))
                var buffer = [UInt8](repeating: 0, count: content.count)
                #expect(pread(file, &buffer, content.count, 0) == content.count)
                #expect(buffer == content)
            }
        }

        @Test
        func `times and mode of a dataless file survive its becoming whole`() throws {
            try mounted { m in
                try m.makeDataless("file", content)
                var times = [timespec(tv_sec: 1, tv_nsec: 0), timespec(tv_sec: 1_580_608_922, tv_nsec: 0)]
                #expect(utimensat(AT_FDCWD, m.path("file"), &times, 0) == 0)
                #expect(chmod(m.path("file"), 0o600) == 0)
                #expect(m.host.state.withLock { $0.asked }.isEmpty)
                close(try Files.open(m.path("file"), O_RDWR))
                let status = try Files.status(m.path("file"))
                #expect(status.st_mtim.tv_sec == 1_580_608_922)
                #expect(status.st_mode & 0o777 == 0o600)
                #expect(try m.observe("file").placeholder == nil)
            }
        }

        @Test
        func `a time that is set on a file that is just being filled is the one that was set`() throws {
            try mounted { m in
                let key = try m.makeDataless("file", content).key
                let file = try Files.open(m.path("file"), O_RDONLY)
                defer { close(file) }
                let filling = try #require(m.mount.openPlaceholder(key))
                let part = Array(content[..<4096])
                let isOver = Atomic(false)
                let writes = Atomic(0)
                let filler = Background {
                    while !isOver.load(ordering: .relaxed) {
                        try part.withUnsafeBytes { try filling.write($0, at: 0) }
                        writes.add(1, ordering: .relaxed)
                    }
                }
                defer { isOver.store(true, ordering: .relaxed) }
                try eventually("it is being filled") { writes.load(ordering: .relaxed) > 0 }
                var wrong: [Int] = []
                for second in 1_500_000_000..<1_500_002_000 {
                    let time = timespec(tv_sec: second, tv_nsec: 123_456_789)
                    var times = [time, time]
                    #expect(utimensat(AT_FDCWD, m.path("file"), &times, 0) == 0)
                    let seen = try Files.status(m.path("file")).st_mtim
                    if seen.tv_sec != second || seen.tv_nsec != time.tv_nsec { wrong.append(second) }
                }
                isOver.store(true, ordering: .relaxed)
                try filler.get()
                #expect(wrong == [])
                #expect(try m.observe("file").modified == Timestamp(seconds: 1_500_001_999, nanoseconds: 123_456_789))
            }
        }

        @Test
        func `data and holes of a dataless file are all data`() throws {
            try mounted { m in
                try m.makeDataless("file", content)
                let file = try Files.open(m.path("file"), O_RDONLY)
                defer { close(file) }
                #expect(lseek(file, 17, Int32(CLINUX_SEEK_DATA)) == 17)
                #expect(lseek(file, 17, Int32(CLINUX_SEEK_HOLE)) == content.count)
                #expect(lseek(file, off_t(content.count), Int32(CLINUX_SEEK_DATA)) == -1)
                #expect(errno == ENXIO)
            }
        }
    }

    @Suite(.serialized)
    struct EvictionTests {
        @Test
        func `an evicted file frees the disk, looks the same and comes back`() throws {
            try mounted { m in
                let content = randomBytes(500_000)
                try Files.write(content, to: m.path("file"))
                try eventually("it is closed") { m.host.changes.contains { $0.aspects.contains(.closed) } }
                let before = try Files.status(m.path("file"))
                let state = try m.observe("file")
                let outcome = try m.evict("file", state)
                #expect(try outcome.get().state?.isDataless == true)
                #expect(try Files.allocated(m.backing("file")) <= 4096)
                let after = try eventually("the kernel asks again") {
                    let status = try Files.status(m.path("file"))
                    return status.st_blocks < before.st_blocks ? status : nil
                }
                #expect(after.st_size == before.st_size)
                #expect(after.st_mtim.tv_nsec == before.st_mtim.tv_nsec)
                #expect(after.st_ino == before.st_ino)
                #expect(try Files.read(m.path("file")) == content)
                #expect(!m.host.state.withLock { $0.asked }.isEmpty)
            }
        }

        @Test
        func `what was fetched for an open that waits is of no use once the file is evicted`() throws {
            try mounted { m in
                let content = randomBytes(300_000)
                let state = try m.makeDataless("file", content)
                m.host.state.withLock { $0.delivery = .held }
                let path = m.path("file")
                let opened = Background { try Files.open(path, O_RDWR) }
                try eventually("the open waits") { m.host.waiting == 1 }
                var placeholder = try #require(state.placeholder)
                placeholder.generation += 1
                _ = try m.evict("file", m.observe("file"), as: placeholder).get()
                #expect(try m.observe("file").placeholder == placeholder)
                m.host.release()
                let file = try opened.get()
                defer { close(file) }
                #expect(try Files.read(path) == content)
                #expect(m.host.state.withLock { $0.asked.count } == 2)
            }
        }

        @Test(arguments: [O_RDONLY, O_RDWR])
        func `an open file is not evicted`(flags: Int32) throws {
            try mounted { m in
                try Files.write("content", to: m.path("file"))
                let file = try Files.open(m.path("file"), flags)
                try eventually("the writer is gone") { m.mount.writableInodes().count == (flags == O_RDWR ? 1 : 0) }
                let state = try m.observe("file")
                #expect(try m.evict("file", state) == .failure(.busy))
                close(file)
                try eventually("it is closed") { !m.mount.isOpen(state.key) }
                #expect(try m.evict("file", state).get().state?.isDataless == true)
            }
        }

        @Test
        func `a file that changed, or has two names, is not evicted`() throws {
            try mounted { m in
                try Files.write("content", to: m.path("file"))
                let state = try m.observe("file")
                try Files.write("changed", to: m.path("file"))
                try eventually("it is closed") { !m.mount.isOpen(state.key) }
                #expect(try m.evict("file", state) == .failure(.stale))
                #expect(link(m.path("file"), m.path("second")) == 0)
                #expect(try m.evict("file", m.observe("file")) == .failure(.system(.tooManyLinks)))
                #expect(try Files.text(m.path("file")) == "changed")
            }
        }
    }
}
