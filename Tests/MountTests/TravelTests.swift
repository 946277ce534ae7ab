import Glibc
import TestSupport
import Testing

extension MountTests {
    /// Files on their way: all of them, whole, with what belongs to them.
    @Suite struct TravelTests {
        @Test(.timeLimit(.minutes(20))) func `a big tree and a big file travel whole`() async throws {
            try await withSite(limit: .seconds(1100)) { site in
                let (a, b) = try site.pair()
                let source = try SampleTree.make(in: site.outside)
                try a.shell("cp -a '\(source)/.' .", limit: .seconds(300))
                try a.sync(limit: .seconds(300))
                try b.sync(limit: .seconds(300))
                let original = try Tree(source)
                #expect(try Tree(b.mountPoint, readingContents: false).paths == original.paths)
                try expectTree(b.mountPoint, is: original)
                try expectTree(a.mountPoint, is: original)
            }
        }

        @Test func `B lists a big file with size and time before its content has been sent`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                let size = SampleTree.bigFileSize
                let source = site.outside + "/big.bin"
                try SampleTree.makeBigFile(at: source, size: size)
                try a.sync()
                let before = try a.storedBytes()
                // Made whole in one step, so that the name cannot come first by chance.
                let copy = try a.startShell("cp --preserve=timestamps '\(source)' big.bin")
                try copy.wait(.seconds(100))
                let listed = ContinuousClock.now
                try eventually("B lists the file in its full size") {
                    (try? Files.status(b.path("big.bin")).st_size).map { Int64($0) == size } ?? false
                }
                let stored = try a.storedBytes() - before
                #expect(stored < size * 9 / 10, "all was sent when B listed it after \(ContinuousClock.now - listed)")
                let times = [try Files.status(source), try Files.status(b.path("big.bin"))].map(\.st_mtim)
                #expect(times[0].tv_sec == times[1].tv_sec && times[0].tv_nsec == times[1].tv_nsec)
                try a.sync(limit: .seconds(120))
                try b.sync(limit: .seconds(120))
                #expect(try Tree.digest(b.path("big.bin")) == Tree.digest(source))
            }
        }

        /// A disk image of which most was never written would fill every other device's disk.
        @Test func `where a file is zeros, it takes no room on other devices`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell(
                    "for f in read whole; do truncate -s 96M $f; echo x | dd of=$f seek=40M oflag=seek_bytes conv=notrunc; done"
                )
                try a.sync()
                try b.sync()
                func expectSame(_ name: String) throws {
                    #expect(try Tree.digest(b.path(name)) == Tree.digest(a.path(name)))
                    let status = try Files.status(b.path(name))
                    #expect(status.st_size == (try Files.status(a.path(name)).st_size))
                    #expect(status.st_blocks * 512 < 8_000_000, "\(name): \(status.st_blocks) blocks")
                }
                // As it is read, all of it, and as another content of what is here already.
                try expectSame("read")
                try b.succeed("download", b.path("whole"))
                try expectSame("whole")
                try a.shell("echo y | dd of=whole seek=80M oflag=seek_bytes conv=notrunc; truncate -s 97M whole")
                try a.sync()
                try b.sync()
                try expectSame("whole")
                // What was not zeros becomes zeros.
                try a.shell("dd if=/dev/urandom of=read bs=1M count=20 conv=notrunc")
                try a.sync()
                try b.sync()
                #expect(try Tree.digest(b.path("read")) == Tree.digest(a.path("read")))
                try a.shell("dd if=/dev/zero of=read bs=1M count=20 conv=notrunc")
                try a.sync()
                try b.sync()
                try expectSame("read")
            }
        }

        @Test func `a big file is read once to be sent`() async throws {
            try await withSite { site in
                let (a, _) = try site.pair()
                try a.sync()
                let size: Int64 = 128 * 1024 * 1024
                let source = site.outside + "/big.bin"
                try SampleTree.makeBigFile(at: source, size: size)
                func bytesRead() throws -> Int64 {
                    let text = String(decoding: try Files.read("/proc/\(try a.servicePID())/io"), as: UTF8.self)
                    let words = text.split(whereSeparator: \.isWhitespace)
                    guard let count = words.dropFirst().first.flatMap({ Int64($0) }) else { throw TestFailure(text) }
                    return count
                }
                // What the driver reads of the kernel's requests does not count.
                try a.succeed("offline", "on")
                try a.shell("cp '\(source)' big.bin")
                let before = try bytesRead()
                try a.succeed("offline", "off")
                try a.sync(limit: .seconds(120))
                try a.sync(limit: .seconds(120))
                let count = try bytesRead() - before
                #expect(count >= size && count < size * 3 / 2, "\(count) bytes were read")
            }
        }

        @Test func `what the cloud lost of a big file is sent again with the next edit`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                let source = site.outside + "/big.bin"
                try SampleTree.makeBigFile(at: source, size: 24 * 1024 * 1024)
                try a.shell("cp '\(source)' big.bin")
                try a.sync()
                try b.sync()
                // Its former chunks are not even asked for: only the commit tells that they are not there.
                let catalog = a.serverFolder + "/catalog.sqlite"
                try succeed("sqlite3", "-cmd", ".timeout 5000", catalog, "delete from chunks")
                try a.shell("(printf x; cat '\(source)') > big.bin")
                try a.sync()
                try b.sync()
                #expect(try Tree.digest(b.path("big.bin")) == Tree.digest(a.path("big.bin")))
                #expect(try Files.status(b.path("big.bin")).st_size == 24 * 1024 * 1024 + 1)
            }
        }

        @Test func `a read waits for what its author is sending, and ends when that is deleted`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                for name in ["sent.bin", "deleted.bin"] {
                    try a.shell("head -c 32M /dev/urandom > \(name)")
                    try eventually("B lists the file") { b.exists(name) }
                    kill(try a.servicePID(), SIGSTOP)
                    let reader = try b.startShell("sha256sum < \(name)")
                    try steadily("the reader waits", for: .milliseconds(300)) { reader.isRunning }
                    kill(try a.servicePID(), SIGCONT)
                    if name == "deleted.bin" { try Files.remove(a.path(name)) }
                    let result = try reader.wait()
                    if result.isSuccess {
                        // Too late to be deleted before it was sent.
                        if name == "sent.bin" { #expect(try result.output.hasPrefix(Tree.digest(a.path(name)))) }
                    } else {
                        #expect(name == "deleted.bin" && result.errors.contains("No such file"), "\(result)")
                    }
                }
            }
        }

        @Test(arguments: ["echo tail >> big.bin", "truncate -s 20M big.bin"])
        func `a file that changes its size after B was told of it gets the new one there`(change: String) async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("head -c 32M /dev/urandom > big.bin")
                try eventually("B lists the file") { b.exists("big.bin") }
                // Its content is being sent.
                try a.shell(change)
                try a.sync()
                try b.sync()
                let size = try Files.size(a.path("big.bin"))
                #expect(try Files.size(b.path("big.bin")) == size)
                #expect(try Tree.digest(b.path("big.bin")) == Tree.digest(a.path("big.bin")))
            }
        }

        @Test func `sync returns 0 only when all is there`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                for round in 0..<5 {
                    try a.shell("for i in $(seq 40); do head -c $((i * 700)) /dev/urandom > r\(round)-$i; done")
                    try a.sync()
                    try b.sync()
                    // At this moment, without waiting.
                    try expectTree(b.mountPoint, is: Tree(a.mountPoint))
                }
            }
        }

        @Test func `what was moved to where nothing is sent, without its content, does not pass for being here`()
            async throws
        {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("head -c 300000 /dev/urandom > n")
                for device in [a, b] { try device.sync() }
                try b.shell("mkdir q.nosync")
                try b.setOffline(true)
                try b.shell("mv n q.nosync/")
                let before = try b.status(of: "q.nosync/n")
                #expect(before["state"]?.string == "waiting")
                #expect(before["downloaded"]?.isTrue == false)
                try b.setOffline(false)
                try eventually("it is here") { try b.status(of: "q.nosync/n")["state"]?.string == "local-only" }
                #expect(try b.status(of: "q.nosync/n")["downloaded"]?.isTrue == true)
                try b.sync()
                try a.sync()
                #expect(try a.names() == [])
            }
        }

        @Test func `offline ends what is on its way, and it goes on afterwards`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("head -c 40000000 /dev/urandom > up")
                try a.sync()
                try b.sync()
                for device in [a, b] { try device.succeed("config", "set", "bandwidth", "4M") }
                try b.succeed("download", "--no-wait", b.path("up"))
                try a.shell("head -c 40000000 /dev/urandom > more")
                func moved(_ device: Device) throws -> [Int64] {
                    try device.json("activity").elements.compactMap { $0["bytes-done"]?.integer }
                }
                for device in [a, b] {
                    try eventually("\(device.name) is at it") { try moved(device).contains { $0 > 0 } }
                }
                for device in [a, b] {
                    try device.setOffline(true)
                    try eventually("nothing is on its way on \(device.name)") { try moved(device).isEmpty }
                }
                for device in [a, b] {
                    try device.succeed("config", "set", "bandwidth", "off")
                    try device.setOffline(false)
                }
                try b.succeed("download", b.path("up"))
                for device in [a, b, a] { try device.sync() }
                for name in ["up", "more"] {
                    #expect(try a.shell("sha256sum \(name)").output == b.shell("sha256sum \(name)").output)
                }
            }
        }

        @Test func `sync is 75 at once when offline`() async throws {
            try await withSite { site in
                let (a, _) = try site.pair()
                try a.setOffline(true)
                try a.write("unsent", to: "a.txt")
                let result = try a.run("sync")
                #expect(result.code == 75, "\(result)")
                #expect(result.duration < TestSettings.atOnce, "\(result)")
                #expect(try a.state(of: "a.txt") == "waiting")
                try a.setOffline(false)
                try a.sync()
                #expect(try a.state(of: "a.txt") == "current")
            }
        }

        @Test func `names, links, modes and times arrive exactly`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell(
                    #"""
                    mkdir -p 'with blank' deep/er/and/deeper empty
                    echo 1 > 'with blank/a b'
                    echo 2 > $'line\nbreak'
                    echo 3 > $'not-utf8-\xff\xfe'
                    echo 4 > "$(printf 'n%.0s' $(seq 255))"
                    echo 5 > -dash; echo 6 > 'ünïcödé ☂'; echo 7 > .hidden; echo 8 > '*'
                    ln -s deep/er link; ln -s /nowhere/at/all dangling
                    echo 9 > deep/er/and/deeper/file; : > zero
                    printf x > private; chmod 600 private; printf x > script; chmod 755 script; printf x > readonly; chmod 444 readonly
                    touch -d '2001-02-03 04:05:06.123456789' old; touch -d '2040-01-01' future; touch -d '1969-07-20' before-1970
                    """#
                )
                try a.sync()
                try b.sync()
                try expectTree(b.mountPoint, is: Tree(a.mountPoint))
                #expect(try Tree(a.mountPoint).entries.count > 20)
            }
        }

        @Test func `changes of every kind travel in both directions`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.write("one", to: "file.txt")
                try b.waitForText("one", in: "file.txt")
                try Files.append(" two", to: b.path("file.txt"))
                try a.waitForText("one two", in: "file.txt")
                try Files.replace(a.path("file.txt"), with: Array("three".utf8))
                try b.waitForText("three", in: "file.txt")
                try Files.rename(b.path("file.txt"), to: b.path("renamed.txt"))
                try a.waitForText("three", in: "renamed.txt")
                #expect(try a.names() == ["renamed.txt"])
                try Files.makeFolder(a.path("folder"))
                try Files.rename(a.path("renamed.txt"), to: a.path("folder/moved.txt"))
                try b.waitForText("three", in: "folder/moved.txt")
                try a.shell(
                    "chmod 640 folder/moved.txt; touch -d '2020-05-05' folder/moved.txt; truncate -s 2 folder/moved.txt"
                )
                try a.sync()
                try b.sync()
                try expectTree(b.mountPoint, is: Tree(a.mountPoint))
                try b.shell("rm -r folder")
                try a.waitForAbsence(of: "folder")
            }
        }

        @Test func `a file that stays open is sent when it is quiet, and again after more`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                let file = try Files.open(a.path("log"), O_WRONLY | O_CREAT | O_APPEND)
                defer { close(file) }
                try Files.write(Array("first\n".utf8), descriptor: file, path: "log")
                try a.sync()
                try b.waitForText("first\n", in: "log")
                try Files.write(Array("second\n".utf8), descriptor: file, path: "log")
                try a.sync()
                try b.waitForText("first\nsecond\n", in: "log")
            }
        }

        /// The driver knew of one name of it, that was gone, and told nobody.
        @Test func `a file that had a second name for a while is sent as ever`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("for n in 1 2 3 4; do echo old > f$n; done; cat f? > /dev/null")
                try a.sync()
                try a.shell(
                    "ln f1 g1; rm g1; ln f2 g2; mv f1 h1; mv h1 f1; echo x > y; mv y g2; ln f3 d3; ln f3 e3; rm e3 d3"
                )
                try a.sync()
                try a.shell("echo new >> f1; echo new >> f2; echo new > f3; chmod 600 f4")
                try a.sync()
                for name in ["f1", "f2"] { try b.waitForText("old\nnew\n", in: name) }
                try b.waitForText("new\n", in: "f3")
            }
        }

        @Test func `one of several names that goes to where nothing is sent leaves, and the others stay`() async throws
        {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("echo text > f; ln f g; mkdir x.nosync")
                try a.sync()
                try b.waitForText("text\n", in: "f")
                try a.shell("mv f x.nosync/")
                try a.sync(limit: .seconds(20))
                try b.waitForAbsence(of: "f")
                #expect(try b.text("g") == "text\n")
                #expect(try a.text("x.nosync/f") == "text\n")
            }
        }

        @Test func `a folder is no shared memory of a database, whatever its name`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("mkdir server ipc; echo text > ipc/f")
                try a.sync()
                try a.shell("mv ipc server-shm; mkdir new new-shm; echo text > new-shm/f")
                try a.sync()
                for folder in ["server-shm", "new-shm"] { try b.waitForText("text\n", in: folder + "/f") }
                // What was synced as a document stays one.
                try a.shell("echo text > log-shm")
                try a.sync()
                try a.shell("echo > log; echo more >> log-shm")
                try a.sync()
                try b.waitForText("text\nmore\n", in: "log-shm")
            }
        }

        /// What was done in it was taken for what stays here, and what others did was not looked at again.
        @Test func `a folder that comes back before it has left is as if it had never been away`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("mkdir d; head -c 4M /dev/urandom > d/large; echo old > d/c; echo old > d/e")
                try a.sync()
                try b.sync()
                try b.shell("cat d/c > /dev/null")
                try b.succeed("config", "set", "bandwidth", "off/64K")
                // It waits for the large one.
                try b.shell("mv d d.nosync; echo new > d.nosync/c; echo new > d.nosync/n; rm d.nosync/e")
                try steadily("it has not left", for: .seconds(2)) { a.exists("d/c") && a.exists("d/large") }
                try a.shell("echo other > d/o")
                try b.shell("sleep 1; mv d.nosync d")
                try b.succeed("config", "reset", "bandwidth")
                try b.sync()
                for name in ["c", "n"] { try a.waitForText("new\n", in: "d/" + name) }
                try a.waitForAbsence(of: "d/e")
                try b.waitForText("other\n", in: "d/o")
                #expect(try Tree.digest(a.path("d/large")) == Tree.digest(b.path("d/large")))
            }
        }

        @Test func `what did not change sends nothing`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.write("same", to: "a.txt")
                try a.sync()
                try b.sync()
                let revision = try a.status(of: "a.txt")["revision"]?.string
                let stored = try a.storedBytes()
                try a.shell(
                    "cat a.txt > /dev/null; printf same > a.txt; cp a.txt copy; mv copy a.txt; exec 3<>a.txt; exec 3>&-"
                )
                try a.sync()
                #expect(try a.status(of: "a.txt")["revision"]?.string == revision)
                #expect(try a.storedBytes() == stored)
            }
        }

        @Test func `a limit on the bandwidth counts at once, in its direction`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                let size: Int64 = 3 * 1024 * 1024
                let source = site.outside + "/random.bin"
                try SampleTree.makeBigFile(at: source, size: size)
                try a.sync()
                try a.succeed("config", "set", "bandwidth", "1M/off")
                let sending = ContinuousClock.now
                try a.shell("cp '\(source)' up.bin")
                try a.sync(limit: .seconds(60))
                #expect(ContinuousClock.now - sending > .seconds(2))
                try b.succeed("config", "set", "bandwidth", "off/1M")
                try b.sync()
                let fetching = ContinuousClock.now
                #expect(try Tree.digest(b.path("up.bin")) == Tree.digest(source))
                #expect(ContinuousClock.now - fetching > .seconds(2))
            }
        }

        /// The kernel goes on to pass it through, and nobody is told.
        @Test func `what goes on to be written when the service has ended is found by the next one`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.write("one\n", to: "f.txt")
                try a.sync()
                let (go, ready) = (site.outside + "/go", site.outside + "/ready")
                try succeed("mkfifo", go)
                let writer = try a.startShell("exec 3>> f.txt; touch \(ready); read -r < \(go); echo two >&3 || true")
                try eventually("a program writes") { Files.exists(ready) }
                let service = try a.servicePID()
                kill(service, SIGTERM)
                try eventually("the service has ended") { !Processes.exists(service) }
                try succeed("bash", "-c", "echo > \(go)")
                #expect(try writer.wait(.seconds(20)).isSuccess)
                let written = try Files.text(a.backing("f.txt"))
                try a.up()
                try a.sync()
                try b.sync()
                #expect(try a.text("f.txt") == written)
                #expect(try b.text("f.txt") == written)
            }
        }

        @Test func `a thousand small files are quick`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                let start = ContinuousClock.now
                try a.shell("for i in $(seq 1000); do echo $i > f$i; done")
                try a.sync()
                try b.sync()
                let duration = ContinuousClock.now - start
                try expectTree(b.mountPoint, is: Tree(a.mountPoint))
                #expect(duration < .seconds(30), "\(duration)")
            }
        }
    }
}

/// What is copied: real small files of the machine and one big random file.
enum SampleTree {
    /// Bytes of the big file.
    static var bigFileSize: Int64 { TestSettings.isFullSize ? 1 << 30 : 256 << 20 }

    /// Makes a tree to copy: `/usr/include` and `/usr/share/doc` with a random file of 1 GiB, or a part of them.
    static func make(in folder: String) throws -> String {
        let tree = folder + "/sample"
        try Files.makeFolder(tree)
        let sources = ["/usr/include", "/usr/share/doc"].filter(Files.exists)
        if TestSettings.isFullSize {
            for source in sources { try TestSupport.succeed("cp", "-a", source, tree, limit: .seconds(300)) }
        } else {
            // Some 2,000 files, with their folders and links, in the order of their paths.
            let list = sources.joined(separator: " ")
            try TestSupport.succeed(
                "bash",
                "-c",
                "find \(list) -not -type d -size -300k -print0 | sort -z | awk 'BEGIN { RS = ORS = \"\\0\" } NR % 5 == 1' | head -z -n 2000 | "
                    + "tar -cf - --null -T - 2>/dev/null | tar -xf - -C '\(tree)'",
                limit: .seconds(120)
            )
        }
        // The copies are the tester's own: readable, whatever the originals were.
        try TestSupport.succeed("chmod", "-R", "u+rwX", tree)
        try makeBigFile(at: tree + "/big.bin", size: TestSettings.isFullSize ? 1 << 30 : 64 << 20)
        return tree
    }

    static func makeBigFile(at path: String, size: Int64) throws {
        try TestSupport.succeed("bash", "-c", "head -c \(size) /dev/urandom > '\(path)'", limit: .seconds(120))
    }
}
