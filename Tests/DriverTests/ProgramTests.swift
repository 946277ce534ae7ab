import Driver
import Foundation
import Glibc
import TestSupport
import Testing

extension DriverTests {
    @Suite(.serialized)
    struct ProgramTests {
        @Test
        func `git clones, commits, collects garbage and finds everything`() throws {
            try mounted { m in
                try Files.makeFolder(m.path("work"))
                try script(
                    """
                    git init -q -b main . && for i in $(seq 20); do echo $i >> log; echo $i > f$i; git add . ; git commit -qm "c$i"; done
                    git gc -q && git fsck --full --strict && cd .. && git clone -q work copy && cd copy && git fsck --full
                    git checkout -q HEAD~5 && git status --porcelain && git checkout -q main && test -z "$(git status --porcelain)"
                    """,
                    in: m.path("work")
                )
            }
        }

        @Test
        func `vim saves, sed edits in place`() throws {
            try mounted { m in
                try Files.write("one\ntwo\n", to: m.path("file"))
                try script("vim -es -u NONE -c '%s/one/ONE/' -c 'wq' file; sed -i s/two/TWO/ file", in: m.root)
                #expect(try Files.text(m.path("file")) == "ONE\nTWO\n")
            }
        }

        @Test
        func `SQLite works in WAL mode with two writers`() throws {
            try mounted { m in
                try script("sqlite3 db 'PRAGMA journal_mode=WAL; CREATE TABLE t(a);'", in: m.root)
                let writers = try (0..<2).map { _ in
                    try Command(
                        [
                            "bash", "-c",
                            "for i in $(seq 60); do sqlite3 -cmd '.timeout 20000' db \"INSERT INTO t VALUES($i)\"; done",
                        ],
                        folder: m.root
                    )
                }
                for writer in writers { #expect(try writer.wait(.seconds(120)).isSuccess) }
                let answer = try succeed(
                    "sqlite3",
                    "db",
                    "SELECT count(*) FROM t; PRAGMA integrity_check",
                    folder: m.root
                )
                #expect(answer.output == "120\nok\n")
            }
        }

        @Test
        func `tar, rsync and diff agree on a real tree`() throws {
            try mounted { m in
                try script(
                    """
                    tar -C /usr/include -cf - . | tar -xf - -C . && diff -r --no-dereference /usr/include . && mkdir -p ../out && \
                    rsync -aHX . ../out/ && diff -r --no-dereference ../out . && rm -rf ./* && test -z "$(ls -A)"
                    """,
                    in: m.root,
                    limit: .seconds(300)
                )
            }
        }

        @Test
        func `make sees times as they are`() throws {
            try mounted { m in
                try Files.write("out: in\n\tcp in out\n", to: m.path("Makefile"))
                try Files.write("1", to: m.path("in"))
                #expect(try succeed("make", folder: m.root).output.contains("cp in out"))
                #expect(try succeed("make", folder: m.root).output.contains("up to date"))
                try succeed("touch", "-d", "+1 minute", m.path("in"))
                #expect(try succeed("make", folder: m.root).output.contains("cp in out"))
            }
        }

        @Test
        func `watchers see what programs do`() throws {
            try mounted { m in
                let watcher = try Watcher(m.root)
                try Files.write("x", to: m.path("file"))
                try Files.rename(m.path("file"), to: m.path("moved"))
                try Files.remove(m.path("moved"))
                for event in [
                    "CREATE file", "CLOSE_WRITE,CLOSE file", "MOVED_FROM file", "MOVED_TO moved", "DELETE moved",
                ] {
                    #expect(try watcher.wait(for: event))
                }
            }
        }

        private func script(_ text: String, in folder: String, limit: Duration = .seconds(120)) throws {
            try succeed("bash", "-c", "set -e -o pipefail; \(text)", folder: folder, limit: limit)
        }
    }

    @Suite(.serialized)
    struct ScaleTests {
        @Test
        func `thirty thousand files are made, listed and looked at with few descriptors`() throws {
            try mounted { m in
                let count = 30_000
                for number in 0..<count {
                    if number.isMultiple(of: 1000) { try Files.makeFolder(m.path("folder \(number / 1000)")) }
                    let file = try Files.open(m.path("folder \(number / 1000)/file \(number)"), O_WRONLY | O_CREAT)
                    close(file)
                }
                var seen = 0
                for folder in try Files.names(in: m.root) {
                    for name in try Files.names(in: m.path(folder)) {
                        _ = try Files.status(m.path("\(folder)/\(name)"))
                        seen += 1
                    }
                }
                #expect(seen == count)
                var limit = rlimit()
                getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
                let open = try Files.names(in: "/proc/self/fd").count
                #expect(open <= Int(limit.rlim_cur) * 6 / 10)
                try succeed("find", m.root, "-type", "f", "-newermt", "2000-01-01")
                // One of the first, whose descriptor is long gone.
                try Files.write("x", to: m.path("folder 0/file 3"))
                try Files.rename(m.path("folder 0"), to: m.path("renamed"))
                #expect(try Files.text(m.path("renamed/file 3")) == "x")
                try succeed("rm", "-r", m.path("renamed"), m.path("folder 1"))
            }
        }

        @Test
        func `a tree deeper than a path is long can be used`() throws {
            try mounted { m in
                try succeed(
                    "python3",
                    "-c",
                    """
                    import os, sys
                    os.chdir(sys.argv[1])
                    for i in range(60):
                        os.mkdir('d' * 200); os.chdir('d' * 200)
                    open('file', 'w').write('deep')
                    assert open('file').read() == 'deep'
                    os.rename('file', 'moved')
                    assert os.listdir('.') == ['moved']
                    """,
                    m.root
                )
            }
        }
    }
}
