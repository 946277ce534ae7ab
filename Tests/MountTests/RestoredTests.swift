import TestSupport
import Testing

extension MountTests {
    /// Somebody has restored an old state, or lost one: nothing is deleted or reverted elsewhere for that, and what is newer anywhere is
    /// offered again.
    @Suite struct RestoredTests {
        /// Two devices that have the same files whole.
        private func pair(_ site: Site) throws -> (a: Device, b: Device) {
            let (a, b) = try site.pair()
            try a.shell(
                """
                mkdir -p d/e; for i in $(seq 1 20); do echo old $i > d/f$i; done
                head -c 3000000 /dev/urandom > big; echo x > d/e/x; ln -s d/f1 link
                """
            )
            try settle(a, b)
            try b.succeed("download", b.mountPoint)
            return (a, b)
        }

        private func settle(_ a: Device, _ b: Device) throws {
            for device in [a, b, a] { try device.sync() }
        }

        /// What happens after the backup.
        private func goOn(_ a: Device, _ b: Device) throws {
            try a.shell("echo new2 > d/f2; rm d/f3; mv d/f4 d/g4; echo new5 > n5; mv d/e e2; chmod 700 d/f15")
            try settle(a, b)
            try b.shell("echo bnew6 > d/f6; rm d/f7; echo bn > bnew; mv d/f8 g8; head -c 2000000 /dev/urandom > big2")
            try settle(a, b)
            for device in [a, b] { try device.succeed("download", device.mountPoint) }
        }

        @Test func `a device whose disk is an old one gets what is new, and what it had not sent comes up`()
            async throws
        {
            try await withSite { site in
                let (a, b) = try pair(site)
                try b.setOffline(true)
                try b.shell("echo unsent > unsent; echo unsent-edit > d/f9")
                try b.down()
                try copy(b.home, to: b.home + ".backup")
                try b.up()
                try b.setOffline(false)
                try settle(a, b)
                try goOn(a, b)
                try a.shell("echo later >> d/f9")
                try settle(a, b)
                try b.succeed("evict", b.path("d"))
                let right = try Tree(a.mountPoint)
                try b.down()
                try copy(b.home + ".backup", to: b.home)
                try b.up()
                try b.setOffline(false)
                try settle(a, b)
                // It was sent before, with these bytes.
                try expectTree(a.mountPoint, is: right)
                try expectTree(b.mountPoint, is: right)
                #expect(try a.conflicts() == [])
            }
        }

        @Test func `a device without its database knows its files again`() async throws {
            try await withSite { site in
                let (a, b) = try pair(site)
                try b.succeed("evict", b.path("d/f1"), b.path("d/f2"))
                try b.setOffline(true)
                try b.shell("echo unsent > unsent; echo unsent-edit > d/f9; mv d/f10 g10")
                try b.down()
                let right = try Tree(a.mountPoint)
                let database = try b.stateDatabase()
                for suffix in ["", "-wal", "-shm"] { _ = try run("rm", "-f", database + suffix) }
                try b.up()
                try b.setOffline(false)
                try settle(a, b)
                let after = try Tree(a.mountPoint)
                for (path, entry) in right.entries { #expect(after.entries[path] == entry, "\(path)") }
                // What it had and the cloud had not is there as well: nobody can tell that it was an edit, or a rename.
                let added = Set(after.paths).subtracting(right.paths)
                #expect(added == ["unsent", "d/f9 2", "g10"])
                #expect(try a.text("d/f9 2") == "unsent-edit\n")
                try expectTree(b.mountPoint, is: after)
            }
        }

        @Test(arguments: ["d/f1 d/f2 d/e big", ".", "-behind-its-back d/f1 d/e"])
        func `what is removed behind the mount comes back`(what: String) async throws {
            try await withSite { site in
                let (a, b) = try pair(site)
                let right = try Tree(a.mountPoint)
                let tree = try b.backingTree()
                let words = what.split(separator: " ").map(String.init)
                let isRunning = words[0] == "-behind-its-back"
                if isRunning { try b.killService() } else { try b.down() }
                let removed = words == ["."] ? try Files.names(in: tree) : words.filter { !$0.hasPrefix("-") }
                for name in removed { _ = try run("rm", "-rf", tree + "/" + name) }
                try b.up()
                try settle(a, b)
                try expectTree(a.mountPoint, is: right)
                try expectTree(b.mountPoint, is: right)
            }
        }

        /// Two devices that went on since the second one's tree was copied to where it is, `.backup`; and what both have now.
        private func pairWithBackup(_ site: Site) throws -> (Device, Device, tree: String, right: Tree) {
            let (a, b) = try pair(site)
            let tree = try b.backingTree()
            try b.down()
            try copy(tree, to: tree + ".backup")
            try b.up()
            try settle(a, b)
            try goOn(a, b)
            return (a, b, tree, try Tree(a.mountPoint))
        }

        @Test func `a tree that is an old one reverts nothing, and what was put there is sent`() async throws {
            try await withSite { site in
                let (a, b, tree, right) = try pairWithBackup(site)
                try b.down()
                // Over what is there: what was edited since is old again, what was deleted is there.
                try shell("cd '\(tree).backup' && cp -a big '\(tree)/' && cp -a d/f2 d/f3 d/f6 d/f9 '\(tree)/d/'")
                try b.up()
                try settle(a, b)
                let after = try Tree(a.mountPoint)
                for path in right.paths { #expect(after.entries[path] == right.entries[path], "\(path)") }
                #expect(Set(after.paths).subtracting(right.paths) == ["d/f3"])
                try expectTree(b.mountPoint, is: after)
                #expect(try a.conflicts() == [])
                #expect(try a.text("d/f2") == "new2\n")
                #expect(try b.text("d/f6") == "bnew6\n")
            }
        }

        @Test func `a tree that is an old one reverts nothing either if nothing is sent before a further restart`()
            async throws
        {
            try await withSite { site in
                let (a, b, tree, right) = try pairWithBackup(site)
                try b.setOffline(true)
                try b.down()
                try shell("cd '\(tree).backup' && cp -a big '\(tree)/' && cp -a d/f2 d/f6 d/f9 '\(tree)/d/'")
                try b.up()
                // With work left.
                try b.down()
                try b.up()
                try b.setOffline(false)
                try settle(a, b)
                try expectTree(a.mountPoint, is: right)
                try expectTree(b.mountPoint, is: right)
                for device in [a, b] { #expect(try device.conflicts() == []) }
            }
        }

        @Test func `what is edited or put into the tree while nothing runs is sent`() async throws {
            try await withSite { site in
                let (a, b) = try pair(site)
                let tree = try b.backingTree()
                try b.down()
                try shell(
                    """
                    cd '\(tree)' && echo more >> d/f1 && echo new > new && mkdir -p n/m && echo x > n/m/x && mkdir q.nosync &&
                    echo y > q.nosync/y && mkdir both && echo b > both/b
                    """
                )
                try a.shell("mkdir both; echo a > both/a")
                try a.sync()
                try b.up()
                try settle(a, b)
                #expect(try a.text("d/f1") == "old 1\nmore\n")
                for device in [a, b] { #expect(try device.names("both").sorted() == ["a", "b"], "on \(device.name)") }
                #expect(try a.text("new") == "new\n")
                #expect(try a.text("n/m/x") == "x\n")
                #expect(try !a.names().contains("q.nosync"))
                #expect(try a.conflicts() == [])
            }
        }

        private func shell(_ script: String) throws {
            let result = try run("bash", "-c", script)
            guard result.isSuccess else { throw TestFailure("\(script): \(result)") }
        }

        @Test func `a server that lost its last day is told again`() async throws {
            try await withSite(limit: .seconds(300)) { site in
                let (a, b) = try pair(site)
                try a.down()
                try b.down()
                try copy(a.serverFolder, to: site.outside + "/server")
                try a.up()
                try b.up()
                try settle(a, b)
                try goOn(a, b)
                let right = try Tree(a.mountPoint)
                try a.down()
                try b.down()
                try copy(site.outside + "/server", to: a.serverFolder)
                try a.up()
                try b.up()
                try settle(a, b)
                let after = try Tree(a.mountPoint)
                for (path, entry) in right.entries { #expect(after.entries[path] == entry, "\(path)") }
                // What had been deleted since is in the cloud again: nobody deletes for a second time.
                #expect(Set(after.paths).subtracting(right.paths) == ["d/f3", "d/f7"])
                try expectTree(b.mountPoint, is: after)
                #expect(try a.conflicts() == [])
                // The server has all of it by now.
                let c = site.device("c")
                try c.join(a.invite())
                try c.sync()
                try expectTree(c.mountPoint, is: after)
            }
        }

        @Test func `a package of which a part is here waits for who has all of it, when its server is a former one`()
            async throws
        {
            try await withSite(limit: .seconds(300)) { site in
                let (a, b) = try site.pair()
                try a.shell("mkdir D.rtfd; printf old > D.rtfd/TXT; head -c 300000 /dev/urandom > D.rtfd/big")
                try settle(a, b)
                for device in [b, a] { try device.down() }
                try copy(a.serverFolder, to: site.outside + "/server")
                for device in [a, b] { try device.up() }
                try a.shell(
                    """
                    printf newer > D.rtfd/TXT; mkdir E.rtfd F.rtfd; printf text > E.rtfd/TXT
                    head -c 700000 /dev/urandom > E.rtfd/big; head -c 2000 /dev/urandom > F.rtfd/small
                    """
                )
                try settle(a, b)
                // Of the others nothing is on b.
                #expect(try b.text("E.rtfd/TXT") == "text")
                let right = try Tree(a.mountPoint)
                try a.setOffline(true)
                for device in [b, a] { try device.down() }
                try copy(site.outside + "/server", to: a.serverFolder)
                for device in [a, b] { try device.up() }
                // Who has all of it is not there yet.
                try eventually("b says what it cannot send") {
                    let status = try b.succeed("status", b.path("E.rtfd")).output
                    return status.contains("neither here nor in the cloud; tried again")
                }
                #expect(try b.text("E.rtfd/TXT") == "text")
                #expect(try b.text("D.rtfd/TXT") == "old")
                try a.setOffline(false)
                try settle(a, b)
                try expectTree(a.mountPoint, is: right)
                try expectTree(b.mountPoint, is: right)
                for device in [a, b] { #expect(try device.conflicts() == []) }
            }
        }

        private func copy(_ folder: String, to copy: String) throws {
            let result = try run("bash", "-c", "rm -rf '\(copy)' && cp -a '\(folder)' '\(copy)'")
            guard result.isSuccess else { throw TestFailure("\(result)") }
        }
    }
}
