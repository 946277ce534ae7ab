import Glibc
import TestSupport
import Testing

extension MountTests {
    /// Versions of folders that are one document.
    @Suite struct PackageVersionTests {
        private static let picture: [UInt8] = {
            var generator = SeededGenerator(seed: 7)
            return generator.bytes(200_000)
        }()

        private func settle(_ a: Device, _ b: Device) throws {
            for device in [a, b, a] { try device.sync() }
        }

        /// A package that both devices have read.
        private func pair(_ site: Site) throws -> (a: Device, b: Device) {
            let (a, b) = try site.pair()
            try a.shell(
                "mkdir -p D.rtfd/pics; printf base > D.rtfd/TXT.rtf; ln -s TXT.rtf D.rtfd/link; : > D.rtfd/empty"
            )
            try a.write(Self.picture, to: "D.rtfd/pics/p.png")
            try a.shell("printf same > D.rtfd/pics/same.txt")
            try settle(a, b)
            #expect(try b.text("D.rtfd/TXT.rtf") == "base")
            #expect(try b.text("D.rtfd/pics/same.txt") == "same")
            return (a, b)
        }

        /// Both have changed it without knowing of each other; B later.
        private func conflicted(_ site: Site) throws -> (a: Device, b: Device) {
            let (a, b) = try pair(site)
            try a.setOffline(true)
            try b.setOffline(true)
            try a.shell("printf 'by a' > D.rtfd/TXT.rtf; echo a > D.rtfd/pics/a.txt")
            poll(nil, 0, 30)
            try b.shell("printf 'by b, later' > D.rtfd/TXT.rtf; rm D.rtfd/pics/p.png")
            try a.setOffline(false)
            try a.sync()
            try b.setOffline(false)
            try settle(a, b)
            return (a, b)
        }

        /// Paths in the mount of entries of that kind.
        private func entries(_ device: Device, _ kind: String = "conflict") throws -> [String] {
            try device.names(".versions/D.rtfd").filter { $0.contains(" " + kind) }.map { ".versions/D.rtfd/" + $0 }
        }

        private func entry(_ device: Device, _ kind: String = "conflict") throws -> String {
            let entries = try entries(device, kind)
            #expect(entries.count == 1, "on \(device.name): \(entries)")
            return try #require(entries.first)
        }

        /// What A had made of it.
        private func expectPackageOfA(_ device: Device, _ folder: String) throws {
            #expect(try device.names(folder) == ["TXT.rtf", "empty", "link", "pics"], "on \(device.name): \(folder)")
            #expect(
                try device.names(folder + "/pics") == ["a.txt", "p.png", "same.txt"],
                "on \(device.name): \(folder)"
            )
            #expect(try device.text(folder + "/TXT.rtf") == "by a", "on \(device.name): \(folder)")
            #expect(try device.text(folder + "/pics/a.txt") == "a\n", "on \(device.name): \(folder)")
            #expect(try device.text(folder + "/empty") == "", "on \(device.name): \(folder)")
            #expect(try Files.read(device.path(folder + "/pics/p.png")) == Self.picture, "on \(device.name): \(folder)")
            #expect(try Files.target(of: device.path(folder + "/link")) == "TXT.rtf", "on \(device.name): \(folder)")
        }

        @Test func `both offline, both edit: one winner, and one loser that is a package`() async throws {
            try await withSite { site in
                let (a, b) = try conflicted(site)
                for device in [a, b] {
                    #expect(try device.names() == ["D.rtfd"], "on \(device.name)")
                    #expect(try device.text("D.rtfd/TXT.rtf") == "by b, later", "on \(device.name)")
                    #expect(try device.names("D.rtfd/pics") == ["same.txt"], "on \(device.name)")
                    #expect(try device.conflicts().map { $0.hasSuffix("D.rtfd") } == [true])
                    #expect(try device.conflictVersions(of: "D.rtfd").count == 1)
                    let entry = try entry(device)
                    #expect(entry.hasSuffix(".rtfd"))
                    #expect(try Files.status(device.path(entry)).st_mode & S_IFMT == S_IFDIR)
                    try expectPackageOfA(device, entry)
                    let file = try Files.status(device.path(entry + "/pics/p.png"))
                    #expect(file.st_size == Self.picture.count && file.st_mode & 0o222 == 0)
                    let here = try Files.status(a.path(entry + "/pics/p.png")).st_mtim
                    #expect(file.st_mtim.tv_sec == here.tv_sec && file.st_mtim.tv_nsec == here.tv_nsec)
                    for script in [
                        "echo x > '\(entry)/TXT.rtf'", "echo x > '\(entry)/new'", "mkdir '\(entry)/new'",
                        "truncate -s 0 '\(entry)/TXT.rtf'", "ln -s x '\(entry)/new'", "touch '\(entry)/empty'",
                        "chmod 600 '\(entry)/TXT.rtf'", "rmdir .versions/D.rtfd", "ls .versions/D.rtfd/TXT.rtf",
                    ] {
                        #expect(throws: TestFailure.self, "\(script)") { try device.shell(script) }
                    }
                }
            }
        }

        @Test func `cp -r of an entry brings it back, rm -r of it resolves and changes nothing else`() async throws {
            try await withSite { site in
                let (a, b) = try conflicted(site)
                let entry = try entry(b)
                // Half of it is not removed: that is no version of anything.
                try b.shell("rm '\(entry)/TXT.rtf'")
                #expect(try b.conflicts().count == 1)
                try expectPackageOfA(b, entry)
                try b.shell("cp -r '\(entry)' beside.rtfd; rm -r '\(entry)'")
                try eventually("the conflict is resolved") { try b.conflicts() == [] }
                try settle(b, a)
                for device in [a, b] {
                    #expect(try device.conflicts() == [], "on \(device.name)")
                    #expect(try entries(device) == [], "on \(device.name)")
                    #expect(try device.names() == ["D.rtfd", "beside.rtfd"], "on \(device.name)")
                    #expect(try device.text("D.rtfd/TXT.rtf") == "by b, later", "on \(device.name)")
                    #expect(try device.names("D.rtfd/pics") == ["same.txt"], "on \(device.name)")
                    try expectPackageOfA(device, "beside.rtfd")
                }
            }
        }

        @Test func `mv of an entry takes it out and resolves`() async throws {
            try await withSite { site in
                let (a, _) = try conflicted(site)
                try a.shell("mv '\(try entry(a))' taken.rtfd")
                try eventually("the conflict is resolved") { try a.conflicts() == [] }
                try expectPackageOfA(a, "taken.rtfd")
                #expect(try a.text("D.rtfd/TXT.rtf") == "by b, later")
            }
        }

        @Test func `mv of an entry over its package brings it back and resolves`() async throws {
            try await withSite { site in
                let (a, b) = try conflicted(site)
                try b.shell("mv '\(try entry(b))' D.rtfd")
                // Without a look into it: while somebody reads in a package it is not exchanged.
                try settle(b, a)
                for device in [a, b] {
                    #expect(try device.conflicts() == [] && device.names() == ["D.rtfd"], "on \(device.name)")
                    try expectPackageOfA(device, "D.rtfd")
                }
            }
        }

        @Test(arguments: ["current", "version", "both"])
        func `resolve`(keep: String) async throws {
            try await withSite { site in
                let (a, b) = try conflicted(site)
                let loser = try #require(a.conflictVersions(of: "D.rtfd").first)
                // Of something in it, which is no item by itself.
                let item = a.path(keep == "both" ? "D.rtfd/TXT.rtf" : "D.rtfd")
                try a.succeed("versions", "resolve", item, "--keep", keep == "version" ? loser.id : keep)
                try settle(a, b)
                for device in [a, b] {
                    #expect(try device.conflicts() == [], "on \(device.name)")
                    #expect(try entries(device) == [], "on \(device.name)")
                    let others = try device.names().filter { $0 != "D.rtfd" }
                    #expect(others.count == (keep == "both" ? 1 : 0), "on \(device.name): \(others)")
                    if let other = others.first {
                        #expect(other.hasPrefix("D (") && other.hasSuffix("a).rtfd"), "\(other)")
                        try expectPackageOfA(device, other)
                        try device.succeed("download", device.path(other))
                        try device.waitForState(["current"], of: other)
                    }
                    if keep == "version" {
                        try expectPackageOfA(device, "D.rtfd")
                    } else {
                        #expect(try device.text("D.rtfd/TXT.rtf") == "by b, later", "on \(device.name)")
                        #expect(try device.names("D.rtfd/pics") == ["same.txt"], "on \(device.name)")
                    }
                }
            }
        }

        @Test func `show gives a version as an archive, restore makes it the package again`() async throws {
            try await withSite { site in
                let (a, b) = try conflicted(site)
                let loser = try #require(b.conflictVersions(of: "D.rtfd").first)
                let out = site.outside
                try b.shell("\"$UBIQUITY\" versions show D.rtfd \(loser.id) | tar -x -C '\(out)'")
                let entry = try entry(b)
                try b.shell("diff -r --no-dereference '\(entry)' '\(out)/D.rtfd'")
                #expect(try Files.text(out + "/D.rtfd/TXT.rtf") == "by a")
                let (shown, unpacked) = (
                    try Files.status(b.path(entry + "/TXT.rtf")).st_mtim,
                    try Files.status(out + "/D.rtfd/TXT.rtf").st_mtim
                )
                #expect(shown.tv_sec == unpacked.tv_sec && shown.tv_nsec == unpacked.tv_nsec)
                try b.succeed("versions", "restore", b.path("D.rtfd"), loser.id)
                try b.waitForText("by a", in: "D.rtfd/TXT.rtf", within: .seconds(45))
                try settle(b, a)
                for device in [a, b] {
                    try expectPackageOfA(device, "D.rtfd")
                    #expect(try device.conflicts().count == 1, "on \(device.name)")
                }
            }
        }

        @Test func `what a package was before is there without any conflict`() async throws {
            try await withSite { site in
                let (a, b) = try pair(site)
                try a.shell("printf next > D.rtfd/TXT.rtf; rm D.rtfd/empty")
                try settle(a, b)
                let entry = try entry(b, "saved")
                #expect(try b.names(entry) == ["TXT.rtf", "empty", "link", "pics"])
                try b.shell("cp -r '\(entry)/.' D.rtfd/")
                try b.sync()
                try settle(a, b)
                #expect(try a.names("D.rtfd") == ["TXT.rtf", "empty", "link", "pics"])
                #expect(try a.text("D.rtfd/TXT.rtf") == "base")
            }
        }

        @Test func `what a program writes in a package that was replaced is kept beside it`() async throws {
            try await withSite { site in
                let (a, b, folder) = try replaced(site)
                defer { close(folder) }
                try write("late", to: "TXT.rtf", in: folder)
                // The new state has the same file, since it did not change.
                try write("also late", to: "pics/same.txt", in: folder)
                let kept = try waitForOne(b, "TXT (")
                try b.waitForText("late", in: kept)
                try settle(b, a)
                for device in [a, b] {
                    #expect(try device.names() == ["D.rtfd", kept], "on \(device.name)")
                    #expect(try device.text("D.rtfd/TXT.rtf") == "by a", "on \(device.name)")
                    #expect(try device.text("D.rtfd/pics/same.txt") == "also late", "on \(device.name)")
                }
            }
        }

        @Test func `what a program writes in a package that was replaced outlives the service`() async throws {
            try await withSite { site in
                let (a, b, folder) = try replaced(site)
                defer { close(folder) }
                let file = openat(folder, "TXT.rtf", O_WRONLY | O_CLOEXEC)
                try #require(file >= 0)
                try Files.write(Array("late".utf8), descriptor: file, path: "TXT.rtf")
                #expect(fsync(file) == 0)
                // Not closed: nobody has told of it.
                try b.killService()
                close(file)
                try b.up()
                let kept = try waitForOne(b, "TXT (")
                try b.waitForText("late", in: kept)
                #expect(try b.text("D.rtfd/TXT.rtf") == "by a")
                // Once, and not with each start.
                try b.killService()
                try b.up()
                try settle(b, a)
                for device in [a, b] { #expect(try device.names() == ["D.rtfd", kept], "on \(device.name)") }
            }
        }

        @Test func `what is written so that size and time stay is sent although the service died`() async throws {
            try await withSite { site in
                let (a, b) = try pair(site)
                try b.setOffline(true)
                // As programs do that change a photograph's description.
                try b.shell(
                    """
                    touch -r D.rtfd/TXT.rtf time; printf BASE | dd of=D.rtfd/TXT.rtf conv=notrunc status=none
                    touch -r time D.rtfd/TXT.rtf; rm time
                    """
                )
                // Until the engine has heard of it.
                poll(nil, 0, 300)
                try b.killService()
                try b.up()
                try b.setOffline(false)
                try settle(b, a)
                #expect(try a.text("D.rtfd/TXT.rtf") == "BASE")
            }
        }

        /// A package that B has replaced, with its old folder open as by a program that has gone into it before.
        private func replaced(_ site: Site) throws -> (a: Device, b: Device, folder: Int32) {
            let (a, b) = try pair(site)
            let folder = try Files.open(b.path("D.rtfd"), O_RDONLY | O_DIRECTORY)
            try a.shell("printf 'by a' > D.rtfd/TXT.rtf")
            try a.sync()
            try b.waitForText("by a", in: "D.rtfd/TXT.rtf", within: .seconds(45))
            return (a, b, folder)
        }

        /// The name of what is kept, which has the device's in it.
        private func waitForOne(_ device: Device, _ prefix: String) throws -> String {
            var found: [String] = []
            try eventually("something is kept as \(prefix)…)") {
                found = try device.names().filter { $0.hasPrefix(prefix) }
                return !found.isEmpty
            }
            return try #require(found.first)
        }

        private func write(_ text: String, to path: String, in folder: Int32) throws {
            let file = openat(folder, path, O_WRONLY | O_TRUNC | O_CLOEXEC)
            guard file >= 0 else { throw SystemError("opening", path, errno) }
            defer { close(file) }
            try Files.write(Array(text.utf8), descriptor: file, path: path)
        }

        @Test func `what was written to a replaced file is kept although its folder is gone`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("mkdir d; printf base > d/f.txt")
                try settle(a, b)
                #expect(try b.text("d/f.txt") == "base")
                let old = try Files.open(b.path("d/f.txt"), O_RDONLY)
                defer { close(old) }
                try a.write("new", to: "d/f.txt")
                try a.sync()
                try b.waitForText("new", in: "d/f.txt")
                // It has no name any more to look up again.
                let late = try Files.open("/proc/self/fd/\(old)", O_WRONLY | O_TRUNC)
                try Files.write(Array("late".utf8), descriptor: late, path: "f.txt")
                try b.shell("rm -r d")
                close(late)
                try b.waitForText("late", in: try waitForOne(b, "f ("))
            }
        }
    }
}
