import Glibc
import TestSupport
import Testing

extension MountTests {
    /// Ordinary programs that know nothing of us, on A, and what B then has.
    @Suite struct ProgramTests {
        /// Both are at rest and equal.
        private func expectEqual(_ a: Device, _ b: Device, limit: Duration = .seconds(60)) throws {
            try a.sync(limit: limit)
            try b.sync(limit: limit)
            try expectTree(b.mountPoint, is: Tree(a.mountPoint))
            #expect(try a.conflicts() == [])
        }

        @Test func `git clone, 50 commits and gc on A, fsck on B`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                let origin = site.outside + "/origin"
                try succeed(
                    "bash",
                    "-euc",
                    """
                    git init -q -b main '\(origin)'; cd '\(origin)'
                    for i in $(seq 60); do mkdir -p d$((i % 7)); head -c 3000 /dev/urandom | base64 > d$((i % 7))/f$i; done
                    git add -A; git commit -qm first
                    """
                )
                try a.shell(
                    """
                    git clone -q '\(origin)' work; cd work
                    for i in $(seq 50); do echo "line $i" >> d1/f1; echo $i > new$((i % 5)); git add -A; git commit -qm "commit $i"; done
                    git gc -q; git status --porcelain
                    """,
                    limit: .seconds(120)
                )
                try expectEqual(a, b)
                let check = try b.shell(
                    "cd work; git fsck --full --no-dangling 2>&1; git log --oneline | wc -l; git status --porcelain"
                )
                #expect(check.output.split(separator: "\n").last == "51", "\(check)")
                #expect(!check.output.contains("error") && !check.output.contains("missing"), "\(check)")
                // And back: B goes on where A stopped.
                try b.shell("cd work; echo more > from-b; git add -A; git commit -qm 'from b'")
                try expectEqual(b, a)
                try a.shell("cd work; git fsck --full; test \"$(git log --oneline | wc -l)\" = 52")
            }
        }

        @Test func `vim saves`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.write("one\ntwo\n", to: "v.txt")
                try a.sync()
                for i in 1...5 {
                    // Its three ways to write: rename, copy, and the default.
                    let way = ["", "set backupcopy=yes |", "set backupcopy=no |"][i % 3]
                    try a.shell(
                        "vim -u NONE -N -es -c '\(way) set backup writebackup backupskip=' -c '$s/$/ \(i)/' -c 'wq' v.txt"
                    )
                    try a.sync()
                }
                try b.waitForText("one\ntwo 1 2 3 4 5\n", in: "v.txt")
                try expectEqual(a, b)
                #expect(
                    try b.versions(of: "v.txt").filter { $0.kind == "saved" }.count >= 5,
                    "a safe-save keeps the item"
                )
            }
        }

        @Test func `sed -i, tar and rsync`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                let source = site.outside + "/source"
                try succeed(
                    "bash",
                    "-euc",
                    """
                    mkdir -p '\(source)/x/y'; cd '\(source)'
                    for i in $(seq 50); do head -c $((i * 997)) /dev/urandom > x/f$i; echo "text $i" > x/y/t$i; done
                    ln -s f1 x/link; chmod 755 x/f2; touch -d '2011-11-11 11:11:11.111111111' x/f3; tar --format=posix -cf ../source.tar .
                    """
                )
                try a.shell("mkdir tarred; tar -xf '\(source)/../source.tar' -C tarred; rsync -a '\(source)/' rsynced")
                try a.shell("sed -i 's/text/changed/' rsynced/x/y/t*")
                try expectEqual(a, b)
                try expectTree(b.path("tarred"), is: Tree(source))
                #expect(try b.text("rsynced/x/y/t7") == "changed 7\n")
                // rsync finds times and sizes as it left them.
                let second = try b.shell("rsync -ai '\(source)/x/' tarred/x")
                #expect(second.output.split(separator: "\n").filter { $0.hasPrefix(">f") }.isEmpty, "\(second)")
                // Not half of all that there is within a minute, which would be held.
                try a.shell("rsync -a --delete '\(source)/' rsynced; rm -r tarred/x/y")
                try expectEqual(a, b)
            }
        }

        @Test(arguments: ["delete", "wal"])
        func `a SQLite database written on A is right on B`(mode: String) async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell(
                    """
                    sqlite3 db.sqlite "pragma journal_mode=\(mode); create table t(n integer primary key, s text);"
                    for i in $(seq 30); do sqlite3 db.sqlite "insert into t(s) values(hex(randomblob(500)));"; done
                    """
                )
                try a.sync()
                try b.sync()
                let check = try b.shell("sqlite3 db.sqlite 'pragma integrity_check; select count(*) from t;'")
                #expect(check.output == "ok\n30\n", "\(check)")
                try b.shell("sqlite3 db.sqlite \"insert into t(s) values('from b');\"")
                try b.sync()
                try a.sync()
                let back = try a.shell("sqlite3 db.sqlite 'pragma integrity_check; select count(*) from t;'")
                #expect(back.output == "ok\n31\n", "\(back)")
                #expect(try a.conflicts() == [])
            }
        }

        @Test func `mv of a folder of 1,000 files moves no content`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell(
                    "mkdir -p from/sub; for i in $(seq 1000); do head -c 2000 /dev/urandom > from/sub/f$i; done"
                )
                try expectEqual(a, b)
                let stored = try a.storedBytes()
                let inode = try Files.status(b.backing("from/sub/f500")).st_ino
                let service = try b.servicePID()
                let read = try Processes.bytesRead(by: service)
                try a.shell("mv from to")
                try b.waitForAbsence(of: "from")
                try expectEqualNames(a, b)
                #expect(try a.storedBytes() == stored)
                #expect(try Files.status(b.backing("to/sub/f500")).st_ino == inode, "B keeps what it has")
                #expect(try Processes.bytesRead(by: service) - read < 1_000_000)
                try expectEqual(a, b)
            }
        }

        private func expectEqualNames(_ a: Device, _ b: Device) throws {
            try a.sync()
            try b.sync()
            #expect(
                try Tree(b.mountPoint, readingContents: false).paths == Tree(a.mountPoint, readingContents: false).paths
            )
        }

        @Test func `programs on B are told by inotify what A changes`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.write("old", to: "changed.txt")
                try a.write("old", to: "removed.txt")
                try a.write("old", to: "touched.txt")
                try a.sync()
                try b.sync()
                let watch = try b.site.start(["inotifywait", "-m", "--format", "%e %f", b.mountPoint])
                try eventually("inotifywait is ready") { watch.errorsSoFar.contains("Watches established") }
                try a.write("new", to: "created.txt")
                try a.write("new content", to: "changed.txt")
                try a.shell("rm removed.txt; touch -d 2020-01-01 touched.txt; mkdir made")
                func sees(_ name: String, _ events: [String]) throws {
                    try eventually("an event of \(events) for \(name) in:\n\(watch.outputSoFar)") {
                        watch.outputSoFar.split(separator: "\n").contains { line in
                            line.hasSuffix(" " + name) && events.contains { line.contains($0) }
                        }
                    }
                }
                try sees("created.txt", ["CREATE", "MOVED_TO"])
                try sees("changed.txt", ["MOVED_TO", "CLOSE_WRITE", "CREATE"])
                try sees("removed.txt", ["DELETE", "MOVED_FROM"])
                try sees("touched.txt", ["ATTRIB", "MOVED_TO"])
                try sees("made", ["CREATE", "MOVED_TO"])
                let strange = watch.outputSoFar.split(separator: "\n").compactMap { $0.split(separator: " ").last }
                    .filter { !["created.txt", "changed.txt", "removed.txt", "touched.txt", "made"].contains($0) }
                #expect(strange.isEmpty, "names that nobody made: \(strange)")
            }
        }

        @Test func `a program that holds the old file goes on reading it`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.write("the old content", to: "f.txt")
                try b.waitForText("the old content", in: "f.txt")
                let file = try Files.open(b.path("f.txt"), O_RDONLY)
                defer { close(file) }
                try a.write("new", to: "f.txt")
                try b.waitForText("new", in: "f.txt")
                var buffer = [UInt8](repeating: 0, count: 100)
                let count = pread(file, &buffer, 100, 0)
                #expect(String(decoding: buffer[..<max(0, count)], as: UTF8.self) == "the old content")
            }
        }
    }
}
