import Glibc
import TestSupport
import Testing

extension MountTests {
    /// What a `.ubiquityignore` names stays on this machine, unless the cloud has it already.
    @Suite struct IgnoreTests {
        private func expectReason(_ reason: String, _ device: Device, _ item: String) throws {
            let status = try device.status(of: item)
            #expect(status["state"]?.string == "local-only", "\(status)")
            #expect(status["reason"]?.string == reason, "\(status)")
        }

        @Test func `what meets a pipe here gets a second name`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("mkdir d; mkfifo d/p")
                for device in [a, b] { try device.sync() }
                try b.shell("echo file > d/p; mkdir d/q")
                try b.sync()
                try a.sync()
                for device in [b, a] { try device.sync() }
                #expect(try a.names("d").sorted() == ["p", "p 2", "q"])
                #expect(try a.text("d/p 2") == "file\n")
                #expect(try b.names("d").sorted() == ["p 2", "q"])
                try a.shell("test -p d/p")
            }
        }

        @Test func `what is new and named is not sent, and status says why`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell(
                    """
                    printf '# of builds\\n*.o\\nbuild/\\n' > .ubiquityignore
                    mkdir -p build/deep sub; echo 1 > build/deep/f; echo 2 > a.o; echo 3 > a.c; ln -s a.c l.o
                    printf '!a.o\\n/only\\n' > sub/.ubiquityignore; echo 4 > sub/a.o; echo 5 > sub/b.o; echo 6 > sub/only
                    """
                )
                try a.sync()
                try b.sync()
                #expect(try b.names().sorted() == [".ubiquityignore", "a.c", "sub"])
                #expect(try b.names("sub").sorted() == [".ubiquityignore", "a.o"])
                try expectReason("ignored by .ubiquityignore, line 2: *.o", a, "a.o")
                try expectReason("ignored by .ubiquityignore, line 2: *.o", a, "l.o")
                try expectReason("ignored by .ubiquityignore, line 3: build/", a, "build")
                try expectReason("ignored by .ubiquityignore, line 3: build/", a, "build/deep/f")
                try expectReason("ignored by .ubiquityignore, line 2: *.o", a, "sub/b.o")
                try expectReason("ignored by sub/.ubiquityignore, line 2: /only", a, "sub/only")
                #expect(try a.state(of: "a.c") == "current")
                let shown = try a.succeed("status", a.path("a.o")).output
                #expect(shown.contains("local-only") && shown.contains("ignored by .ubiquityignore, line 2: *.o"))
                #expect(try a.run("evict", a.path("a.o")).code != 0)
                // The other device goes by the same rules.
                try b.shell("echo 7 > b.o; echo 8 > b.c")
                try b.sync()
                try a.sync()
                #expect(!a.exists("b.o") && a.exists("b.c"))
                // Programs see and change it as anything else, and nothing is left to be sent.
                try a.shell("echo more >> a.o; rm -r build; mv a.o x.o")
                try a.sync()
                #expect(try b.names().sorted() == [".ubiquityignore", "a.c", "b.c", "b.o", "sub"])
            }
        }

        @Test func `what is in the cloud stays synced, whatever it is named`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("mkdir d build; echo 1 > a.o; echo 2 > b.txt; echo 3 > d/f; echo 4 > build/old")
                try a.sync()
                try b.sync()
                try a.shell("printf '*.o\\nbuild/\\n' > .ubiquityignore")
                try a.sync()
                try a.shell("echo more >> a.o; mv b.txt b.o; echo new > build/new; echo more >> build/old; mv d build/")
                try a.sync()
                try b.sync()
                #expect(try b.text("a.o") == "1\nmore\n")
                #expect(try b.text("b.o") == "2\n" && !b.exists("b.txt"))
                #expect(try b.names("build").sorted() == ["d", "old"])
                #expect(try b.text("build/old") == "4\nmore\n" && b.text("build/d/f") == "3\n")
                #expect(try a.state(of: "a.o") == "current")
                // Moved into a folder that is not sent: that goes along, and nothing else in it.
                try a.shell("mkdir out.o; echo 5 > out.o/new; mv a.o out.o/")
                try a.sync()
                try b.sync()
                #expect(try b.names("out.o") == ["a.o"])
                #expect(!b.exists("a.o"))
                try a.shell("rm b.o")
                try a.sync()
                try b.sync()
                #expect(!b.exists("b.o"))
            }
        }

        @Test func `what is named no more is sent, and so is what leaves by its name`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell(
                    """
                    printf '*.o\\nbuild/\\ntmp\\n' > .ubiquityignore; mkdir -p build/deep tmp src
                    echo 1 > a.o; echo 2 > build/deep/f; echo 3 > build/x.o; echo 4 > tmp/f; echo 5 > src/b.o; echo 6 > c.o
                    """
                )
                try a.sync()
                try b.sync()
                #expect(try b.names().sorted() == [".ubiquityignore", "src"])
                try a.shell("mv c.o c.txt; mv tmp kept")
                try a.sync()
                try b.sync()
                #expect(try b.text("c.txt") == "6\n" && b.text("kept/f") == "4\n")
                // Changed here, by a program that saves beside the file.
                try a.shell("printf '*.o\\n' > new; mv new .ubiquityignore")
                try a.sync()
                try b.sync()
                #expect(try b.text("build/deep/f") == "2\n")
                #expect(!b.exists("build/x.o") && !b.exists("a.o"))
                // Changed by the other device.
                try b.shell("printf '*.o\\n!b.o\\n' > .ubiquityignore")
                try b.sync()
                try a.sync()
                try b.waitForText("5\n", in: "src/b.o")
                // Taken away, after a restart that found nothing to do.
                try a.down()
                try a.up()
                try a.shell("rm .ubiquityignore")
                try a.sync()
                try b.sync()
                #expect(try b.text("a.o") == "1\n" && b.text("build/x.o") == "3\n")
                try expectTree(b.mountPoint, is: Tree(a.mountPoint))
            }
        }

        @Test func `a folder that is renamed leaves the rules behind that named what lies in it`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("echo '/src/*.o' > .ubiquityignore; mkdir -p src/in; echo 1 > src/a.o; echo 2 > src/a.c")
                try a.sync()
                try a.shell("mv src lib")
                try a.sync()
                try b.sync()
                #expect(try b.names("lib").sorted() == ["a.c", "a.o", "in"])
            }
        }

        @Test(arguments: [true, false])
        func `after a kill the rules are those that lie there`(isIgnored: Bool) async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("echo '*.o' > .ubiquityignore; echo 1 > a.o")
                try a.sync()
                try a.setOffline(true)
                try a.shell("echo 2 > b.o; echo 3 > c.txt; mkdir d; echo 4 > d/e.o")
                if !isIgnored { try a.shell("echo '*.x' > .ubiquityignore") }
                try a.killService()
                try a.up()
                try a.setOffline(false)
                try a.sync()
                try b.sync()
                #expect(try b.text("c.txt") == "3\n")
                for name in ["a.o", "b.o", "d/e.o"] { #expect(b.exists(name) == !isIgnored, "\(name)") }
            }
        }

        @Test func `an incoming item gets a second name where something ignored is`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.setOffline(true)
                try a.shell("echo '*.o' > .ubiquityignore; echo mine > a.o")
                try a.shell("mkdir out.o; echo in > out.o/f; echo same > s.o")
                // Its device knows nothing of these rules yet.
                try b.shell("echo theirs > a.o; mkdir out.o; echo there > out.o/g; echo same > s.o")
                try b.sync()
                try a.setOffline(false)
                try a.sync()
                try b.sync()
                #expect(try a.text("a.o") == "mine\n")
                try a.waitForText("theirs\n", in: "a 2.o")
                try b.waitForText("theirs\n", in: "a 2.o")
                #expect(try b.conflicts() == [] && a.conflicts() == [])
                // Folders of one name are one, and so are equal files.
                #expect(try a.text("out.o/g") == "there\n" && a.text("out.o/f") == "in\n")
                #expect(!a.exists("s 2.o"))
            }
        }

        @Test func `what is new waits for rules whose content is not here`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("mkdir -p d/e; echo '*.o' > d/.ubiquityignore; echo '*.x' > .ubiquityignore; echo 1 > d/f")
                try a.sync()
                try b.sync()
                // Nobody has looked into these folders.
                try b.shell("echo 2 > d/e/b.o; echo 3 > d/e/b.x; echo 4 > d/e/b.c")
                try b.sync()
                try a.sync()
                #expect(try a.names("d/e") == ["b.c"])
                try expectReason("ignored by d/.ubiquityignore, line 1: *.o", b, "d/e/b.o")
                // Given up again, and not to be had.
                try b.evict("d/.ubiquityignore")
                try b.setOffline(true)
                try b.shell("echo 5 > d/c.o; echo 6 > d/c.c")
                #expect(try b.state(of: "d/c.o") == "waiting")
                #expect(try b.status(of: "d/c.o")["error"]?.string?.contains("d/.ubiquityignore") == true)
                try b.setOffline(false)
                try b.sync()
                try a.sync()
                #expect(!a.exists("d/c.o") && a.exists("d/c.c"))
                try expectReason("ignored by d/.ubiquityignore, line 1: *.o", b, "d/c.o")
            }
        }

        @Test func `a file that is too large means nothing, and status says so`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("{ echo '*.o'; head -c 1100000 /dev/zero | tr '\\0' '#'; } > .ubiquityignore; echo 1 > a.o")
                try a.sync()
                try b.sync()
                #expect(try b.text("a.o") == "1\n")
                #expect(try a.succeed("status").output.contains("1 MiB"))
            }
        }

        @Test func `what is taken over from a folder is ignored as well`() async throws {
            try await withSite { site in
                let a = site.device("a")
                try Files.makeFolder(a.mountPoint)
                try Files.makeFolder(a.path("build"))
                try a.write("build/\n*.o\n", to: ".ubiquityignore")
                for name in ["build/f", "a.o", "a.c"] { try a.write("1\n", to: name) }
                try a.succeed("up", a.mountPoint, "--import")
                let b = site.device("b")
                try b.join(a.invite())
                try a.sync()
                try b.sync()
                #expect(try b.names().sorted() == [".ubiquityignore", "a.c"])
                #expect(try a.text("build/f") == "1\n" && a.text("a.o") == "1\n")
                try expectReason("ignored by .ubiquityignore, line 2: *.o", a, "a.o")
            }
        }
    }
}
