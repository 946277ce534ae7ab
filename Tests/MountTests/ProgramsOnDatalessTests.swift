import Glibc
import TestSupport
import Testing

extension MountTests {
    /// Ordinary programs on B, in a tree that A made: with its content here, and with none of it. They must not see a difference, and
    /// what they write is what A then has.
    @Suite struct ProgramsOnDatalessTests {
        /// Where the content is when the program comes.
        enum Content: String, CaseIterable, Sendable, CustomTestStringConvertible {
            case materialized, dataless

            var testDescription: String { rawValue }
        }

        /// A with what a script makes in its mount, and B with the same.
        private func pair(_ site: Site, _ content: Content, made script: String) throws -> (a: Device, b: Device) {
            let (a, b) = try site.pair()
            try a.shell(script)
            try a.sync()
            try b.sync()
            try prepare(b, content)
            return (a, b)
        }

        /// - Parameter folder: of the mount.
        private func prepare(_ device: Device, _ content: Content, in folder: String = "") throws {
            let (verb, state) =
                switch content {
                case .materialized: ("download", "current")
                case .dataless: ("evict", "dataless")
                }
            try device.succeed(verb, device.path(folder))
            let found = try states(device, in: folder)
            #expect(found == [state], "\(found)")
        }

        /// The states of all files that are not empty: those have no content to be elsewhere.
        private func states(_ device: Device, in folder: String) throws -> Set<String> {
            let ask = "getfattr --absolute-names -n user.ubiquity.state"
            let lines = try device.shell("find './\(folder)' -type f -size +0 -exec \(ask) {} +").output
                .split(separator: "\n")
            return Set(
                lines.filter { $0.hasPrefix("user.") }.map { $0.split(separator: "\"").last.map(String.init) ?? "" }
            )
        }

        /// All that B wrote is on A as it is on B, and nobody was in another's way.
        private func expectAgreement(_ a: Device, _ b: Device) throws {
            try b.sync()
            try a.sync()
            try b.sync()
            let differences = try Tree(a.mountPoint).differences(from: Tree(b.mountPoint))
            #expect(differences == [], "\(differences)")
            #expect(try a.conflicts() == [] && b.conflicts() == [])
        }

        // MARK: - Editing

        @Test(arguments: Content.allCases)
        func `git goes on where another device stopped`(content: Content) async throws {
            try await withSite { site in
                let (a, b) = try pair(
                    site,
                    content,
                    made: """
                        git init -q -b main work; cd work
                        for i in $(seq 20); do mkdir -p d$((i % 3)); seq $((i * 400)) > d$((i % 3))/f$i; done
                        head -c 300000 /dev/urandom > picture; ln -s picture link; chmod 755 d1/f1
                        git add -A; git commit -qm first; git gc -q
                        for i in 1 2 3; do echo "change $i" >> d1/f1; git commit -qam "change $i"; done
                        """
                )
                // Some of the objects are in a pack, some are not.
                let look = "git fsck --full --strict --no-dangling; git status --porcelain; git log --oneline | wc -l"
                #expect(try b.shell("cd work; \(look)").output == "4\n")
                try b.shell(
                    """
                    cd work
                    git checkout -qb topic HEAD~2
                    echo topic > d2/topic; sed -i 's/^7$/seven/' d0/f3; git mv d2/f2 d2/second; git rm -q d0/f6
                    git add -A; git commit -qm topic
                    git checkout -q main; echo main >> d1/f4; git commit -qam main; git merge -q --no-edit topic
                    echo later >> d1/f7; git stash -q
                    """
                )
                try b.sync()
                try prepare(b, content)
                try b.shell("cd work; git stash pop -q; git commit -qam later; git gc -q")
                try expectAgreement(a, b)
                for device in [a, b] {
                    #expect(try device.shell("cd work; \(look)").output == "8\n")
                    #expect(
                        try device.shell("cd work; git show HEAD~1:d2/topic; sed -n 7p d0/f3").output
                            == "topic\nseven\n"
                    )
                }
            }
        }

        @Test(arguments: Content.allCases)
        func `vim saves in all of its ways`(content: Content) async throws {
            try await withSite { site in
                let (a, b) = try pair(site, content, made: "seq 20000 > v.txt; chmod 640 v.txt")
                var text = (1...20000).map { "\($0)\n" }.joined()
                for (number, way) in ["auto", "yes", "no"].enumerated() {
                    // By default it makes no backups below /tmp.
                    let edit = "set backup backupskip= backupcopy=\(way) | 1s/^/\(number)/"
                    try b.shell("vim -u NONE -i NONE -N -es -c '\(edit)' -c 'wq' v.txt")
                    text = "\(number)" + text
                    #expect(try b.text("v.txt") == text)
                    try b.sync()
                    try prepare(b, content)
                }
                try expectAgreement(a, b)
                #expect(try a.text("v.txt") == text)
                // The backup is the user's wish; of swap files nothing is left.
                #expect(try a.names() == ["v.txt", "v.txt~"])
                #expect(try Files.status(a.path("v.txt")).st_mode & 0o777 == 0o640)
            }
        }

        private static let hasOffice = (try? run("sh", "-c", "command -v soffice").isSuccess) ?? false

        @Test(.enabled(if: hasOffice, "there is no soffice: Tools/setup --tests installs it"))
        func `LibreOffice converts documents`() async throws {
            try await withSite { site in
                let office = "soffice -env:UserInstallation='file://\(site.outside)/profile' --headless --convert-to"
                let (a, b) = try pair(
                    site,
                    .dataless,
                    made: """
                        mkdir letters; cd letters; (echo Dear Ada,; seq 3000; echo 'Grüße') > letter.txt
                        \(office) odt letter.txt; rm letter.txt
                        """
                )
                for content in Content.allCases {
                    try prepare(b, content)
                    try b.shell("cd letters; \(office) txt:Text:UTF8 --outdir \(content) letter.odt")
                    try b.sync()
                }
                try prepare(b, .dataless)
                try b.shell("cd letters; \(office) docx letter.odt")
                try expectAgreement(a, b)
                // Its locks are gone, on both.
                #expect(try a.names("letters") == ["dataless", "letter.docx", "letter.odt", "materialized"])
                for content in Content.allCases {
                    let text = try a.text("letters/\(content)/letter.txt").replacing("\u{feff}", with: "")
                    #expect(text == "Dear Ada,\n" + (1...3000).map { "\($0)\n" }.joined() + "Grüße\n")
                }
                #expect(try a.shell("python3 -m zipfile -t letters/letter.docx").output.contains("Done testing"))
            }
        }

        // MARK: - Many processes

        @Test(arguments: Content.allCases)
        func `four sqlite3 write one database in WAL mode`(content: Content) async throws {
            try await withSite { site in
                let (a, b) = try pair(
                    site,
                    content,
                    made: """
                        sqlite3 db.sqlite "pragma journal_mode=wal; create table t(who text, n integer, s blob);
                            with recursive c(n) as (select 1 union all select n + 1 from c where n < 500)
                            insert into t select 'a', n, randomblob(1000) from c; create index i on t(who, n);"
                        """
                )
                try b.shell(
                    """
                    write() {
                        for n in $(seq 40); do
                            echo "insert into t values('$1', $n, randomblob(1000)); select count(*) from t;"
                        done | sqlite3 -cmd '.timeout 60000' db.sqlite > '\(site.outside)/'$1
                    }
                    for who in p q r s; do write $who & done
                    for i in p q r s; do wait -n; done
                    """,
                    limit: .seconds(120)
                )
                for who in ["p", "q", "r", "s"] {
                    // Nobody ever saw a row go.
                    let counts = try Files.text(site.outside + "/" + who).split(separator: "\n").compactMap { Int($0) }
                    #expect(
                        counts.count == 40 && counts == counts.sorted() && counts.last ?? 0 >= 540,
                        "\(who): \(counts)"
                    )
                }
                #expect(try b.names() == ["db.sqlite"])
                try expectAgreement(a, b)
                let look = """
                    sqlite3 db.sqlite "pragma journal_mode; pragma integrity_check;
                        select who, count(*), sum(n) from t group by who;
                        select count(*) from t where length(s) <> 1000;"
                    """
                let right = "wal\nok\na|500|125250\n" + ["p", "q", "r", "s"].map { "\($0)|40|820\n" }.joined() + "0\n"
                for device in [a, b] { #expect(try device.shell(look).output == right) }
            }
        }

        @Test(arguments: Content.allCases)
        func `make builds what is to be built, and nothing twice`(content: Content) async throws {
            try await withSite { site in
                let (a, b) = try pair(
                    site,
                    content,
                    made: """
                        mkdir -p p/src; cd p
                        echo '#define BASE 10' > src/common.h
                        echo '#include <stdio.h>' > src/main.c
                        for i in $(seq 6); do
                            (echo '#include "common.h"'; echo "int part$i(void) { return BASE * $i; }") > src/part$i.c
                            echo "int part$i(void);" >> src/main.c
                        done
                        echo 'int main(void) {' >> src/main.c
                        echo 'printf("%d\\n", part1() + part2() + part3() + part4() + part5() + part6()); }' >> src/main.c
                        cat > Makefile << 'END'
                        .RECIPEPREFIX = >
                        OBJECTS = $(patsubst src/%.c,%.o,$(sort $(wildcard src/*.c)))
                        program: $(OBJECTS)
                        > gcc -o $@ $^
                        %.o: src/%.c
                        > gcc -MMD -c -o $@ $<
                        -include *.d
                        END
                        """
                )
                func make() throws -> [String] {
                    let result = try b.shell("cd p; make -j2 2>&1")
                    #expect(!result.output.contains("skew"), "\(result)")
                    return result.output.split(separator: "\n").filter { $0.hasPrefix("gcc") }.map(String.init)
                }
                #expect(try make().count == 8)
                #expect(try b.shell("cd p; ./program; make -q").output == "210\n")
                try b.sync()
                try prepare(b, content)
                // Times are what they were, so that only this is built again.
                try b.shell("cd p; sed -i 's/\\* 6/* 60/' src/part6.c")
                #expect(
                    try make() == [
                        "gcc -MMD -c -o part6.o src/part6.c",
                        "gcc -o program main.o part1.o part2.o part3.o part4.o part5.o part6.o",
                    ]
                )
                try b.sync()
                try a.sync()
                // A has everything as new as B, and runs a program of which it has nothing yet.
                #expect(try a.shell("cd p; make -q; ./program").output == "750\n")
                try b.shell("cd p; echo '#define BASE 1' > src/common.h")
                #expect(try make().count == 7)
                #expect(try b.shell("cd p; ./program").output == "75\n")
                try expectAgreement(a, b)
                #expect(try a.shell("cd p; make -q; ./program").output == "75\n")
            }
        }

        // MARK: - Copying

        private static let copiers = [
            "tar --format=posix -cSf - source | tar -xSf - -C '%'",
            "cp -a --sparse=auto source '%'", "cp -a --sparse=always source '%'", "rsync -aS source '%'",
        ]

        @Test(arguments: Content.allCases)
        func `what looks for holes finds no zeros in place of content`(content: Content) async throws {
            try await withSite { site in
                let (a, b) = try pair(
                    site,
                    content,
                    made: """
                        mkdir source; cd source
                        head -c 1500000 /dev/urandom > full
                        truncate -s 3M holes
                        head -c 100000 /dev/urandom | dd of=holes bs=4096 seek=256 conv=notrunc status=none
                        head -c 5000 /dev/urandom > end; truncate -s 1M end
                        truncate -s 1M nothing; head -c 1M /dev/zero > zeros; echo small > small; touch empty
                        """
                )
                let right = try Tree(a.path("source"))
                for (number, copier) in Self.copiers.enumerated() {
                    for folder in [site.outside, b.mountPoint] {
                        let target = "\(folder)/\(number)"
                        try prepare(b, content, in: "source")
                        try Files.makeFolder(target)
                        try b.shell(copier.replacing("%", with: target))
                        try expectTree(target + "/source", is: right, "\(copier) to \(folder)")
                    }
                }
                try expectAgreement(a, b)
                guard content == .materialized else { return }
                // A's own file has holes, and these programs see them.
                for (number, copier) in Self.copiers.enumerated() {
                    let target = "\(site.outside)/a\(number)"
                    try Files.makeFolder(target)
                    try a.shell(copier.replacing("%", with: target))
                    try expectTree(target + "/source", is: right, "\(copier)")
                    #expect(try Files.allocated(target + "/source/holes") < 1 << 20, "\(copier) has filled the holes")
                }
            }
        }

        // MARK: - Looking

        /// Forty files, of which some have lines to be found.
        private static let texts = """
            mkdir -p text/sub; cd text
            for i in $(seq 40); do
                { seq 500; if [ $((i % 10)) = 0 ]; then echo "a needle in $i"; fi; seq 500; } > sub/f$i.txt
            done
            head -c 300000 /dev/zero > binary; echo needle >> binary; echo needle > .hidden; echo needle > ignored.log
            echo '*.log' > .ignore
            """
        private static let found = [10, 20, 30, 40].map { "sub/f\($0).txt:501:a needle in \($0)\n" }.joined()

        @Test(arguments: Content.allCases)
        func `ripgrep finds the lines`(content: Content) async throws {
            try await withSite { site in
                let (_, b) = try pair(site, content, made: Self.texts)
                // Names alone are here.
                #expect(try b.shell("cd text; rg --files | wc -l").output == "41\n")
                for options in ["--no-mmap", "--mmap"] {
                    try prepare(b, content)
                    let result = try b.shell("cd text; rg --sort path -n \(options) needle sub")
                    #expect(result.output == Self.found, "\(result)")
                }
                try prepare(b, content)
                let all = try b.shell("rg -uuu -c needle | sort")
                #expect(
                    all.output
                        == "text/.hidden:1\ntext/binary:1\ntext/ignored.log:1\n"
                        + [10, 20, 30, 40].map { "text/sub/f\($0).txt:1\n" }.joined(),
                    "\(all)"
                )
            }
        }

        @Test func `ripgrep that may not fetch says what it has not read`() async throws {
            try await withSite { site in
                let (_, b) = try pair(site, .dataless, made: Self.texts)
                try b.succeed("policy", "deny", "rg")
                #expect(try b.text("text/sub/f20.txt").contains("needle"))
                let result = try b.startShell("cd text; rg --sort path -n needle sub").wait()
                #expect(result.code == 2, "\(result)")
                #expect(result.output == "sub/f20.txt:501:a needle in 20\n")
                #expect(
                    result.errors.split(separator: "\n").filter { $0.contains("No data available") }.count == 39,
                    "\(result)"
                )
                #expect(try b.state(of: "text/sub/f10.txt") == "dataless")
                try b.succeed("policy", "reset", "rg")
                #expect(try b.shell("cd text; rg --sort path -n needle sub").output == Self.found)
            }
        }

        @Test(arguments: Content.allCases)
        func `inotifywait tells what changes elsewhere in folders without content`(content: Content) async throws {
            try await withSite { site in
                let (a, b) = try pair(
                    site,
                    content,
                    made: """
                        mkdir -p d/sub; cd d
                        for name in changed replaced removed old touched still sub/deep; do seq 5000 > $name; done
                        """
                )
                let watch = try site.start(["inotifywait", "-mr", "--format", "%e %w%f", b.path("d")])
                try eventually("inotifywait is ready") { watch.errorsSoFar.contains("Watches established") }
                try a.shell(
                    """
                    cd d; echo new > changed; echo new > r; mv r replaced; rm removed; mv old moved
                    touch -d 2020-01-01 touched
                    seq 7000 > created; mkdir made; echo deeper >> sub/deep
                    """
                )
                try a.sync()
                func sees(_ name: String, _ events: [String]) throws {
                    try eventually("an event of \(events) for \(name) in:\n\(watch.outputSoFar)") {
                        watch.outputSoFar.split(separator: "\n").contains { line in
                            line.hasSuffix(" " + b.path("d/" + name)) && events.contains { line.contains($0) }
                        }
                    }
                }
                let arrived = ["CREATE", "MOVED_TO", "CLOSE_WRITE"]
                for name in ["changed", "replaced", "created", "made", "moved", "sub/deep"] { try sees(name, arrived) }
                for name in ["removed", "old"] { try sees(name, ["DELETE", "MOVED_FROM"]) }
                try sees("touched", ["ATTRIB", "MOVED_TO"])
                // Telling fetched nothing.
                try b.sync()
                for name in ["still", "moved", "touched"] {
                    #expect(try b.state(of: "d/" + name) == (content == .dataless ? "dataless" : "current"), "\(name)")
                }
                // Who reads upon an event gets what it tells of (and soon what lies beside that).
                #expect(try b.text("d/changed") == "new\n" && b.text("d/replaced") == "new\n")
                #expect(!watch.outputSoFar.contains("/still"), "\(watch.outputSoFar)")
                try expectAgreement(a, b)
            }
        }
    }
}
