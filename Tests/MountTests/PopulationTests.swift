import Glibc
import TestSupport
import Testing

extension MountTests {
    /// Folders that populate themselves: a device that joins shows everything at once, and has an inode only for what somebody asks for.
    @Suite struct PopulationTests {
        private static let tree = """
            mkdir -p d1/d2/empty d4 'with space'
            for i in $(seq 40); do echo $i > d1/f$i; echo x$i > d1/d2/g$i; done
            for i in $(seq 5); do echo y > d4/h$i; done
            ln -s f1 d1/link; setfattr -n user.note -v kept d1/f1; echo top > top; chmod 640 d1/f2; : > d1/nothing
            touch -d 2020-01-02 d1/f3 d1/d2; touch -d 2021-01-02 d1
            """

        /// A with some content, and B that has just joined it.
        private func joined(_ site: Site, _ script: String = tree) throws -> (a: Device, b: Device) {
            let a = site.device("a")
            let b = site.device("b")
            try a.up()
            try a.shell(script)
            try a.sync()
            try b.join(a.invite())
            return (a, b)
        }

        private func inodes(_ device: Device, _ folder: String = "") throws -> Int {
            try succeed("find", device.backing(folder), "-mindepth", "1").output.split(separator: "\n").count
        }

        @Test func `names are there at once, inodes when they are asked for, and all is as it was made`() async throws {
            try await withSite { site in
                let (a, b) = try joined(site)
                let names = try b.shell("find . | sort").output
                #expect(try a.shell("find . | sort").output == names)
                // The folders that were walked, and nothing in them.
                #expect(try inodes(b) == 5)
                #expect(try b.shell("cat d1/d2/g7").output == "x7\n")
                #expect(try inodes(b) == 6)
                #expect(try b.shell("stat -c %Y d1 d1/d2 d1/f3").output == a.shell("stat -c %Y d1 d1/d2 d1/f3").output)
                try expectTree(b.mountPoint, is: Tree(a.mountPoint))
                // Once more from a restart, which finds what was made and what was not.
                try b.killService()
                try b.up()
                try b.sync()
                try expectTree(b.mountPoint, is: Tree(a.mountPoint))
                #expect(try a.conflicts() == [] && b.conflicts() == [])
            }
        }

        @Test func `a kill between making an inode and its row costs nothing`() async throws {
            try await withSite { site in
                let (a, b) = try joined(site)
                for round in 0..<5 {
                    try b.shell("ls -l d1 > /dev/null; stat -c %s d1/d2/g\(round + 1) > /dev/null")
                    try b.killService()
                    try b.up()
                    try b.sync()
                }
                try a.sync()
                try expectTree(b.mountPoint, is: Tree(a.mountPoint))
                #expect(try a.conflicts() == [])
                #expect(try a.shell("ls d1 | wc -l").output == "43\n")
            }
        }

        @Test func `what is done to names that nobody has looked at`() async throws {
            try await withSite { site in
                let (a, b) = try joined(site)
                try b.shell(
                    """
                    ! rmdir d4 2> /dev/null
                    ! mv -T d1 d4 2> /dev/null
                    ! ln d4/h1 d1/f1 2> /dev/null
                    rm d4/h1; mv d4/h2 d1/moved; mv d4/h3 d4/h4; echo more >> d4/h5; ln -s x d4/new-link
                    mv d1/d2 d4/d2; rm -r 'with space'
                    ! [ -e d4/h1 ] && ! [ -e d4/h2 ] && ! [ -e d4/h3 ]
                    """
                )
                #expect(try b.shell("ls d4").output == "d2\nh4\nh5\nnew-link\n")
                try b.sync()
                try a.sync()
                #expect(try a.shell("ls d4").output == "d2\nh4\nh5\nnew-link\n")
                #expect(try a.text("d4/h5") == "y\nmore\n")
                #expect(try a.text("d4/d2/g3") == "x3\n")
                try expectTree(b.mountPoint, is: Tree(a.mountPoint))
                // What was removed before its row was written does not come back.
                try b.shell("rm -r d1 d4; ls -A")
                try b.sync()
                try a.sync()
                #expect(try a.shell("ls -A").output == "top\n")
                #expect(try b.shell("ls -A").output == "top\n")
            }
        }

        @Test func `what others change is seen in folders that were looked into, and in those that were not`()
            async throws
        {
            try await withSite { site in
                let (a, b) = try joined(site)
                // Absence is remembered by the kernel, and so are listings.
                try b.shell("ls d1 > /dev/null; ! [ -e d1/later ]; ! [ -e d1/away ]")
                try a.shell(
                    """
                    echo 1 > d1/later; mv d1/f9 d1/away; rm d1/f8; echo changed > d1/f7; mkdir -p d1/dir/deep; echo 2 > d1/dir/deep/file
                    echo 3 > d4/later; rm d4/h1; mv d4/h2 d1/d2/from-d4; mv d1/f10 d4/to-d4
                    """
                )
                try a.sync()
                try b.sync()
                #expect(try b.text("d1/later") == "1\n")
                #expect(try b.text("d1/f7") == "changed\n")
                #expect(try b.text("d1/dir/deep/file") == "2\n")
                #expect(!b.exists("d1/f8") && !b.exists("d1/f9") && b.exists("d1/away"))
                try expectTree(b.mountPoint, is: Tree(a.mountPoint))
            }
        }

        @Test func `a watcher of a folder that was only listed is told what happens in it`() async throws {
            try await withSite { site in
                let (a, b) = try joined(site)
                try b.shell("ls d1 > /dev/null")
                let watch = try site.start(
                    ["inotifywait", "-m", "-e", "create,delete,move", "--format", "%e %f", b.path("d1")]
                )
                try eventually("inotifywait is ready") { watch.errorsSoFar.contains("Watches established") }
                try a.shell("rm d1/f1; mv d1/f2 d1/F2; echo new > d1/new")
                try a.sync()
                try b.sync()
                for wanted in ["DELETE f1", "MOVED_FROM f2", "MOVED_TO F2", "MOVED_TO new"] {
                    try eventually("the event \(wanted)") {
                        watch.outputSoFar.split(separator: "\n").contains { $0 == wanted }
                    }
                }
            }
        }

        @Test func `a folder that nobody looked into is moved to where nothing is sent from, with all that is in it`()
            async throws
        {
            try await withSite { site in
                let (a, b) = try joined(site)
                // Not even its names are known to the kernel.
                try b.shell("mkdir x.nosync && mv d1 x.nosync/")
                #expect(try b.shell("ls x.nosync/d1/d2 | wc -l").output == "41\n")
                try a.waitForAbsence(of: "d1")
                try b.sync()
                let contents = try b.shell("cat x.nosync/d1/f? x.nosync/d1/d2/g17").output
                #expect(contents == "1\n2\n3\n4\n5\n6\n7\n8\n9\nx17\n")
                #expect(try b.shell("find x.nosync/d1 | wc -l").output == "85\n")
                #expect(try a.conflicts() == [] && b.conflicts() == [])
            }
        }

        @Test func `status, pin, download and evict know what was never looked at`() async throws {
            try await withSite { site in
                let (a, b) = try joined(site)
                try eventually("the listing has arrived") { try b.shell("ls | wc -l").output == "4\n" }
                let status = try b.json("status", b.path("d1")).elements
                #expect(
                    status.contains {
                        $0["path"]?.string?.hasSuffix("d1/d2/g7") == true && $0["state"]?.string == "dataless"
                    }
                )
                #expect(try inodes(b, "d1") == 0)
                try b.succeed("download", b.path("d1/d2"))
                #expect(try inodes(b, "d1/d2") == 41)
                try b.succeed("pin", b.path("d4"))
                // Pinned folders fill themselves also where nobody looks.
                try a.shell("echo also > d4/also")
                try a.sync()
                try b.sync()
                try a.killServer()
                #expect(try b.shell("cat d1/d2/g7 d4/h5 d4/also").output == "x7\ny\nalso\n")
            }
        }

        @Test func `many threads ask for the same names at once`() async throws {
            try await withSite { site in
                let (a, b) = try joined(site, "mkdir d; for i in $(seq 300); do echo $i > d/f$i; done")
                try b.shell(
                    """
                    for t in 1 2 3 4 5 6; do (for i in $(seq 300); do [ -e d/f$i ] || echo lost $i; done; ls d | wc -l) > ../out.$t & done
                    wait
                    """,
                    limit: .seconds(60)
                )
                let outputs = try succeed("bash", "-c", "sort -u \(site.folder)/out.*").output
                #expect(outputs == "300\n")
                try b.sync()
                try expectTree(b.mountPoint, is: Tree(a.mountPoint))
            }
        }
    }
}
