import Glibc
import TestSupport
import Testing

extension MountTests {
    /// Two devices that change the same thing without knowing of each other.
    @Suite struct ConflictTests {
        /// Lets both do something while they cannot see each other, and brings them together again.
        private func apart(_ a: Device, _ b: Device, onA: () throws -> Void, onB: () throws -> Void) throws {
            try a.setOffline(true)
            try b.setOffline(true)
            try onA()
            // The later change wins: file times of one machine have a few milliseconds of grain.
            poll(nil, 0, 30)
            try onB()
            try a.setOffline(false)
            try a.sync()
            try b.setOffline(false)
            try settle(a, b)
        }

        private func settle(_ a: Device, _ b: Device) throws {
            for device in [a, b, a] { try device.sync() }
        }

        private func pair(_ site: Site, with text: String = "base") throws -> (a: Device, b: Device) {
            let (a, b) = try site.pair()
            try a.write(text, to: "f.txt")
            try settle(a, b)
            #expect(try b.text("f.txt") == text)
            return (a, b)
        }

        private func conflicted(_ site: Site) throws -> (a: Device, b: Device) {
            let (a, b) = try pair(site)
            try apart(a, b, onA: { try a.write("by a", to: "f.txt") }, onB: { try b.write("by b, later", to: "f.txt") })
            return (a, b)
        }

        /// Names of conflict entries in `.versions` of an item.
        private func entries(_ device: Device, _ item: String = "f.txt") throws -> [String] {
            (try? device.names(".versions/" + item).filter { $0.contains(" conflict") }) ?? []
        }

        /// The server said of what was deleted that there was no such item, from which a device concluded that it had been restored from a backup.
        @Test
        func
            `what is removed and renamed in the same moment is gone or renamed everywhere, and nothing else comes of it`()
            async throws
        {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("for i in $(seq 40); do echo $i > f$i; mkdir d$i; done; printf kept > other")
                try settle(a, b)
                // What the other one was quicker with fails, and the next one is tried.
                let script = """
                    set +e
                    (cd '\(a.mountPoint)'; for i in $(seq 40); do rm f$i; rmdir d$i; done) 2>/dev/null &
                    (cd '\(b.mountPoint)'; for i in $(seq 40); do mv f$i g$i; chmod 700 d$i; done) 2>/dev/null &
                    wait
                    """
                _ = try a.shell(script)
                try settle(a, b)
                try settle(a, b)
                let names = try Set(a.names())
                #expect(try Tree(a.mountPoint).entries == Tree(b.mountPoint).entries)
                #expect(try a.text("other") == "kept")
                let known = (1...40).flatMap { ["f\($0)", "g\($0)", "d\($0)"] } + ["other"]
                #expect(names.isSubset(of: known), "second names: \(names.subtracting(known))")
                #expect((1...40).allSatisfy { !names.contains("f\($0)") || !names.contains("g\($0)") })
                for device in [a, b] {
                    #expect(!(try Files.text(device.home + "/service.log").contains("comparing everything")))
                }
            }
        }

        @Test func `of two targets that a link is given at once, none is lost`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("ln -s old link; ln -s old other; ln -s old third")
                try settle(a, b)
                try apart(
                    a,
                    b,
                    onA: { try a.shell("ln -sfn 'by a' link; ln -sfn same other; ln -sfn 'by a' third") },
                    onB: { try b.shell("ln -sfn 'by b' link; ln -sfn same other; rm third") }
                )
                for device in [a, b] {
                    #expect(try device.names() == ["link", "link 2", "other", "third"])
                    let targets = try device.shell("readlink link; readlink 'link 2'; readlink other; readlink third")
                        .output
                    #expect(targets == "by a\nby b\nsame\nby a\n")
                }
            }
        }

        @Test func `both offline, both edit: one winner, one loser, nothing else`() async throws {
            try await withSite { site in
                let (a, b) = try conflicted(site)
                for device in [a, b] {
                    #expect(try device.names() == ["f.txt"], "on \(device.name)")
                    #expect(try device.text("f.txt") == "by b, later", "on \(device.name)")
                    let entries = try entries(device)
                    #expect(entries.count == 1, "on \(device.name): \(entries)")
                    let entry = ".versions/f.txt/" + (try #require(entries.first))
                    #expect(entry.hasSuffix(".txt"), "\(entry)")
                    #expect(try device.text(entry) == "by a", "on \(device.name)")
                    #expect(try Files.status(device.path(entry)).st_size == 4)
                    #expect(try device.conflicts().map { $0.hasSuffix("f.txt") } == [true])
                    let loser = try #require(device.conflictVersions(of: "f.txt").first)
                    #expect(try device.content(ofVersion: loser.id, of: "f.txt") == "by a")
                    #expect(try device.status(of: "f.txt")["conflicts"]?.integer == 1)
                    #expect(try Files.attribute("user.ubiquity.conflicts", of: device.path("f.txt")) == "1")
                }
            }
        }

        @Test func `status says what unresolved versions take, and of which items most`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("for i in 1 2 3 4; do echo $i > $i.txt; done")
                try a.sync()
                try b.sync()
                try apart(
                    a,
                    b,
                    onA: { try a.shell("for i in 1 2 3 4; do head -c ${i}00 /dev/zero > $i.txt; done") },
                    onB: { try b.shell("for i in 1 2 3 4; do echo \"by b\" > $i.txt; done") }
                )
                let mount = try #require(try a.json("status")["mounts"]?.elements.first)
                #expect(mount["conflicts"]?.integer == 4 && mount["conflict-bytes"]?.integer == 1000)
                let largest = try #require(mount["largest-conflicts"]?.elements)
                #expect(largest.map { $0["bytes"]?.integer } == [400, 300, 200])
                #expect(largest.map { $0["versions"]?.integer } == [1, 1, 1])
                #expect(largest.first?["path"]?.string == a.path("4.txt"))
                let shown = try a.succeed("status").output
                #expect(
                    shown.contains("conflicts   4, 1000 B") && shown.contains("400 B in \(a.path("4.txt"))"),
                    "\(shown)"
                )
            }
        }

        @Test func `the same edit on both sides is no conflict`() async throws {
            try await withSite { site in
                let (a, b) = try pair(site)
                try apart(a, b, onA: { try a.write("same", to: "f.txt") }, onB: { try b.write("same", to: "f.txt") })
                for device in [a, b] {
                    #expect(try device.text("f.txt") == "same")
                    #expect(try device.conflicts() == [])
                    #expect(try device.names() == ["f.txt"])
                }
            }
        }

        @Test(arguments: [true, false])
        func `edit against delete keeps the edit`(deleteComesFirst: Bool) async throws {
            try await withSite { site in
                let (a, b) = try pair(site)
                let (deleter, editor) = deleteComesFirst ? (a, b) : (b, a)
                let delete = { try Files.remove(deleter.path("f.txt")) }
                let edit = { try editor.write("edited", to: "f.txt") }
                try apart(a, b, onA: deleteComesFirst ? delete : edit, onB: deleteComesFirst ? edit : delete)
                for device in [a, b] {
                    #expect(try device.names() == ["f.txt"], "on \(device.name)")
                    #expect(try device.text("f.txt") == "edited", "on \(device.name)")
                }
            }
        }

        @Test func `move against edit: both hold`() async throws {
            try await withSite { site in
                let (a, b) = try pair(site)
                try apart(
                    a,
                    b,
                    onA: { try Files.rename(a.path("f.txt"), to: a.path("moved.txt")) },
                    onB: { try b.write("edited", to: "f.txt") }
                )
                for device in [a, b] {
                    #expect(try device.names() == ["moved.txt"], "on \(device.name)")
                    #expect(try device.text("moved.txt") == "edited", "on \(device.name)")
                }
            }
        }

        @Test func `the same name made twice: folders merge, equal files become one, others keep both`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try settle(a, b)
                try apart(
                    a,
                    b,
                    onA: {
                        try a.shell("mkdir d; echo a > d/a.txt; echo equal > d/equal.txt; printf 'by a' > d/n.txt")
                    },
                    onB: { try b.shell("mkdir d; echo b > d/b.txt; echo equal > d/equal.txt; printf 'by b' > d/n.txt") }
                )
                for device in [a, b] {
                    #expect(try device.names() == ["d"], "on \(device.name)")
                    #expect(
                        try device.names("d") == ["a.txt", "b.txt", "equal.txt", "n 2.txt", "n.txt"],
                        "on \(device.name)"
                    )
                    let texts = [try device.text("d/n.txt"), try device.text("d/n 2.txt")]
                    #expect(texts.sorted() == ["by a", "by b"], "on \(device.name)")
                }
                #expect(try a.text("d/n.txt") == b.text("d/n.txt"))
                #expect(try a.conflicts() == [])
            }
        }

        @Test func `a new file in a folder that was deleted elsewhere survives`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("mkdir d; echo old > d/old.txt")
                try settle(a, b)
                try apart(a, b, onA: { try a.shell("rm -r d") }, onB: { try b.shell("echo new > d/new.txt") })
                for device in [a, b] {
                    #expect(try device.names("d") == ["new.txt"], "on \(device.name)")
                    #expect(try device.text("d/new.txt") == "new\n", "on \(device.name)")
                }
            }
        }

        @Test func `moves into each other leave no cycle and lose nothing`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("mkdir x y; echo x > x/x.txt; echo y > y/y.txt")
                try settle(a, b)
                try apart(a, b, onA: { try a.shell("mv x y/x") }, onB: { try b.shell("mv y x/y") })
                try expectTree(b.mountPoint, is: Tree(a.mountPoint))
                let files = try Tree(a.mountPoint).paths.filter { $0.hasSuffix(".txt") }
                #expect(files.count == 2, "\(files)")
            }
        }

        @Test func `a third edit from the loser's side replaces the loser, it adds none`() async throws {
            try await withSite { site in
                let (a, b) = try conflicted(site)
                try a.write("third", to: "f.txt")
                try settle(a, b)
                for device in [a, b] {
                    #expect(try device.text("f.txt") == "third")
                    #expect(try device.conflictVersions(of: "f.txt").count == 1)
                }
            }
        }

        @Test(arguments: ["current", "version", "both"])
        func `resolve`(keep: String) async throws {
            try await withSite { site in
                let (a, b) = try conflicted(site)
                let loser = try #require(a.conflictVersions(of: "f.txt").first)
                try a.succeed("versions", "resolve", a.path("f.txt"), "--keep", keep == "version" ? loser.id : keep)
                try settle(a, b)
                for device in [a, b] {
                    #expect(try device.conflicts() == [], "on \(device.name)")
                    #expect(try entries(device) == [], "on \(device.name)")
                    #expect(
                        try device.text("f.txt") == (keep == "version" ? "by a" : "by b, later"),
                        "on \(device.name)"
                    )
                    let others = try device.names().filter { $0 != "f.txt" }
                    #expect(others.count == (keep == "both" ? 1 : 0), "on \(device.name): \(others)")
                    if let other = others.first {
                        #expect(try device.text(other) == "by a")
                        #expect(other.hasPrefix("f (") && other.hasSuffix(").txt"), "\(other)")
                    }
                }
                if keep == "version" {
                    let saved = try a.versions(of: "f.txt").filter { $0.kind == "saved" }
                    #expect(saved.contains { $0.size == 11 }, "what was in the file is a saved version: \(saved)")
                }
            }
        }

        @Test func `rm of a conflict's entry resolves it, cp of it brings it back`() async throws {
            try await withSite { site in
                let (a, b) = try conflicted(site)
                let entry = try #require(entries(b).first)
                try b.shell("cp '.versions/f.txt/\(entry)' beside.txt; rm '.versions/f.txt/\(entry)'")
                try eventually("the conflict is resolved") { try b.conflicts() == [] }
                try settle(b, a)
                #expect(try a.conflicts() == [])
                #expect(try a.text("beside.txt") == "by a")
                #expect(try a.text("f.txt") == "by b, later")
            }
        }

        @Test func `mv of a conflict's entry over its file brings it back and resolves it`() async throws {
            try await withSite { site in
                let (a, b) = try conflicted(site)
                let entry = try #require(entries(b).first)
                try b.shell("mv '.versions/f.txt/\(entry)' f.txt")
                try b.waitForText("by a", in: "f.txt")
                try settle(b, a)
                for device in [a, b] {
                    #expect(try device.conflicts() == [] && device.names() == ["f.txt"], "on \(device.name)")
                    #expect(try device.text("f.txt") == "by a", "on \(device.name)")
                    #expect(try device.versions(of: "f.txt").contains { $0.kind == "saved" && $0.size == 11 })
                }
                #expect(try a.json("deleted").elements.isEmpty)
            }
        }

        @Test func `mv of a saved version over its file brings it back`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                for text in ["1", "22", "333"] {
                    try a.write(text, to: "f.txt")
                    try a.sync()
                }
                try b.waitForText("333", in: "f.txt")
                let entry = try #require(
                    try b.names(".versions/f.txt").first {
                        try Files.status(b.path(".versions/f.txt/" + $0)).st_size == 2
                    }
                )
                try b.shell("mv '.versions/f.txt/\(entry)' f.txt")
                for device in [b, a] { try device.waitForText("22", in: "f.txt") }
                let saved = try b.versions(of: "f.txt").filter { $0.kind == "saved" }
                #expect(saved.map(\.size).sorted() == [1, 3], "\(saved)")
            }
        }

        @Test func `offline nothing is made of an entry, and nothing taken for made`() async throws {
            try await withSite { site in
                let (a, b) = try conflicted(site)
                let entry = ".versions/f.txt/" + (try #require(entries(b).first))
                try b.setOffline(true)
                #expect(try entries(b).count == 1)
                #expect(Files.readFailure(b.path(entry)) == ENETDOWN)
                #expect(unlink(b.path(entry)) == -1 && errno == ENETDOWN)
                for script in ["mv '\(entry)' f.txt", "rm '\(entry)'"] {
                    #expect(throws: TestFailure.self, "\(script)") { try b.shell(script) }
                }
                #expect(try b.run("versions", "resolve", b.path("f.txt"), "--keep", "current").code == 75)
                #expect(try b.text("f.txt") == "by b, later")
                try b.setOffline(false)
                try settle(b, a)
                #expect(try entries(b).count == 1 && a.conflicts().count == 1)
                #expect(try b.text(entry) == "by a")
            }
        }

        /// A part of a version, as a file of its own, would be taken for all of it, here and everywhere.
        @Test func `a service that is killed while it keeps a version beside leaves no part of it`() async throws {
            try await withSite { site in
                let (a, b) = try pair(site)
                let script = "head -c 60000000 /dev/urandom > f.txt"
                try apart(a, b, onA: { try a.shell(script) }, onB: { try b.shell(script) })
                let entry = a.path(".versions/f.txt/" + (try #require(entries(a).first)))
                let version = try Files.read(entry)
                let service = try a.servicePID()
                let staging = a.home + "/containers/Documents/staging"
                let resolve = try a.start(["versions", "resolve", a.path("f.txt"), "--keep", "both"])
                try eventually("it is being written") {
                    let staged = (try? Files.names(in: staging)) ?? []
                    return staged.contains { ((try? Files.status(staging + "/" + $0).st_size) ?? 0) > 0 }
                }
                kill(service, SIGKILL)
                try eventually("its threads have ended", within: .seconds(5)) {
                    let threads = (try? Files.names(in: "/proc/\(service)/task")) ?? []
                    return threads.count < 2
                }
                _ = try resolve.wait(.seconds(20))
                try a.up()
                try settle(a, b)
                for device in [a, b] {
                    for name in try device.names() where name != "f.txt" {
                        #expect(try Files.read(device.path(name)) == version, "\(name) on \(device.name)")
                    }
                }
                #expect(try a.conflictVersions(of: "f.txt").count == 1)
                try a.succeed("versions", "resolve", a.path("f.txt"), "--keep", "both")
                try settle(a, b)
                let beside = try #require(try b.names().first { $0 != "f.txt" })
                #expect(try Files.read(b.path(beside)) == version)
            }
        }

        @Test func `what is kept beside looks as its item does`() async throws {
            try await withSite { site in
                let (a, b) = try pair(site)
                try apart(
                    a,
                    b,
                    onA: { try a.write("by a", to: "f.txt") },
                    onB: {
                        try b.shell("printf 'by b, later' > f.txt; chmod 750 f.txt; setfattr -n user.tag -v red f.txt")
                    }
                )
                let loser = try #require(a.conflictVersions(of: "f.txt").first)
                let time = try Files.status(a.path(".versions/f.txt/" + (try #require(entries(a).first)))).st_mtim
                try a.succeed("versions", "resolve", a.path("f.txt"), "--keep", "both")
                try settle(a, b)
                #expect(loser.size == 4)
                for device in [a, b] {
                    let other = device.path(try #require(try device.names().first { $0 != "f.txt" }))
                    let status = try Files.status(other)
                    #expect(status.st_mode & 0o777 == 0o750, "on \(device.name)")
                    #expect(try Files.attribute("user.tag", of: other) == "red", "on \(device.name)")
                    #expect(status.st_mtim.tv_sec == time.tv_sec && status.st_mtim.tv_nsec == time.tv_nsec)
                }
            }
        }

        @Test func `restore brings an earlier content back and resolves nothing`() async throws {
            try await withSite { site in
                let (a, b) = try conflicted(site)
                let loser = try #require(b.conflictVersions(of: "f.txt").first)
                try b.succeed("versions", "restore", b.path("f.txt"), loser.id)
                try b.waitForText("by a", in: "f.txt")
                try settle(b, a)
                #expect(try a.text("f.txt") == "by a")
                #expect(try a.conflicts().count == 1)
            }
        }

        @Test func `who wants no saved versions gets none of what is overwritten from then on`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                func overwrite(_ device: Device, _ text: String) throws {
                    try device.write(text, to: "f.txt")
                    try device.sync()
                }
                try overwrite(a, "1")
                try overwrite(a, "22")
                try a.succeed("config", "set", "saved-versions", "off", "--container", "Documents")
                try overwrite(a, "333")
                try overwrite(a, "4444")
                #expect(try a.versions(of: "f.txt").map(\.size).sorted() == [1, 4])
                // Another device's are kept.
                try b.waitForText("4444", in: "f.txt")
                try overwrite(b, "55555")
                try b.sync()
                try a.waitForText("55555", in: "f.txt")
                #expect(try a.versions(of: "f.txt").map(\.size).sorted() == [1, 4, 5])
            }
        }

        @Test func `rm of a saved version removes it, and nothing else`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                for text in ["1", "22", "333"] {
                    try a.write(text, to: "f.txt")
                    try a.sync()
                }
                try b.sync()
                func sizes(_ device: Device) throws -> [Int64] {
                    try device.versions(of: "f.txt").map(\.size).sorted()
                }
                #expect(try sizes(b) == [1, 2, 3])
                let entries = try b.names(".versions/f.txt")
                let entry = try #require(
                    try entries.first { try Files.status(b.path(".versions/f.txt/" + $0)).st_size == 2 }
                )
                try b.shell("rm '.versions/f.txt/\(entry)'")
                try eventually("the version is gone") { try sizes(b) == [1, 3] && sizes(a) == [1, 3] }
                try b.sync()
                for device in [a, b] {
                    #expect(try device.names(".versions/f.txt").count == 1 && device.text("f.txt") == "333")
                }
            }
        }

        @Test func `earlier revisions stay as saved versions`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                for text in ["one", "two..", "three...."] {
                    try a.write(text, to: "f.txt")
                    try a.sync()
                }
                try b.sync()
                let versions = try b.versions(of: "f.txt")
                #expect(versions.filter { $0.kind == "current" }.map(\.size) == [9])
                let saved = versions.filter { $0.kind == "saved" }
                #expect(Set(saved.map(\.size)) == [3, 5])
                let first = try #require(saved.first { $0.size == 3 })
                #expect(try b.content(ofVersion: first.id, of: "f.txt") == "one")
                try b.succeed("versions", "restore", b.path("f.txt"), first.id)
                try b.sync()
                try a.waitForText("one", in: "f.txt")
            }
        }

        @Test func `.versions is in no listing, can be entered, and cannot be written`() async throws {
            try await withSite { site in
                let (a, _) = try conflicted(site)
                #expect(try a.names() == ["f.txt"])
                #expect(try Files.status(a.path(".versions")).st_mode & S_IFMT == S_IFDIR)
                let entry = ".versions/f.txt/" + (try #require(entries(a).first))
                let reserved = SystemError("making the folder", a.path(".versions"), EEXIST)
                #expect(throws: reserved) { try Files.makeFolder(a.path(".versions")) }
                for script in [
                    "echo x > '\(entry)'", "echo x > .versions/f.txt/new", "mkdir .versions/g",
                    "truncate -s 0 '\(entry)'",
                ] {
                    #expect(throws: TestFailure.self, "\(script)") { try a.shell(script) }
                }
                #expect(try a.text(entry) == "by a")
                #expect(try a.text("f.txt") == "by b, later")
                // What walks the whole tree does not walk into it.
                #expect(try a.shell("find . -type f").output == "./f.txt\n")
            }
        }

        @Test func `a conflict made while nobody watches appears on a device that was down`() async throws {
            try await withSite { site in
                let (a, b) = try pair(site)
                try b.setOffline(true)
                try b.write("by b", to: "f.txt")
                try b.down()
                try a.write("by a, later", to: "f.txt")
                try a.sync()
                try b.up()
                try b.setOffline(false)
                try settle(b, a)
                for device in [a, b] {
                    #expect(try device.text("f.txt") == "by a, later", "on \(device.name)")
                    let loser = try #require(device.conflictVersions(of: "f.txt").first)
                    #expect(try device.content(ofVersion: loser.id, of: "f.txt") == "by b")
                }
            }
        }
    }
}
