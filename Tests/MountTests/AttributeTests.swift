import Glibc
import TestSupport
import Testing

extension MountTests {
    /// Extended attributes, links and whatever else a filesystem has.
    @Suite struct AttributeTests {
        @Test func `two devices that change different attributes, or one of them the content, have both`() async throws
        {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("echo c > c; setfattr -n user.base -v 0 c; echo e > e")
                for device in [a, b] { try device.sync() }
                try b.succeed("download", b.mountPoint)
                try a.setOffline(true)
                try b.setOffline(true)
                try b.shell("echo edited > e; setfattr -n user.b -v B c")
                try a.shell(
                    "chmod 600 e; setfattr -n user.tag -v T e; setfattr -n user.a -v A c; setfattr -x user.base c"
                )
                for device in [a, b] {
                    try device.setOffline(false)
                    try device.sync()
                }
                try a.sync()
                for device in [a, b] {
                    #expect(try device.text("e") == "edited\n", "on \(device.name)")
                    #expect(try device.shell("stat -c %a e").output == "600\n", "on \(device.name)")
                    let found = try device.shell("getfattr --absolute-names -d -m '^user\\.[a-z]*$' c e").output
                    for line in ["user.tag=\"T\"", "user.a=\"A\"", "user.b=\"B\""] {
                        #expect(found.contains(line), "on \(device.name): \(found)")
                    }
                    #expect(!found.contains("user.base"), "on \(device.name): \(found)")
                }
            }
        }

        /// The content was published with the attributes that the item had when the download began, and these were then sent as a change.
        @Test func `attributes that another device sets while a new content comes are not taken back`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("head -c 8M /dev/urandom > f; chmod 644 f")
                try a.sync()
                try b.sync()
                try b.succeed("download", b.path("f"))
                // It takes a minute then.
                try b.succeed("config", "set", "bandwidth", "off/128K")
                try a.shell("head -c 8M /dev/urandom > f")
                try a.sync()
                func isComing() throws -> Bool { try !b.json("activity").elements.isEmpty }
                try eventually("the new content comes") { try isComing() }
                try a.shell("chmod 600 f; setfattr -n user.tag -v T f")
                try a.sync()
                // Who has heard of this has heard of what was before it.
                try a.shell("mkdir later")
                try eventually("B has heard of it", within: .seconds(40)) { b.exists("later") }
                try #require(try isComing(), "the download was too fast")
                try b.succeed("config", "reset", "bandwidth")
                for device in [b, a] { try device.sync() }
                for device in [b, a] {
                    #expect(try device.shell("stat -c %a f").output == "600\n", "on \(device.name)")
                    #expect(try Files.attribute("user.tag", of: device.path("f")) == "T", "on \(device.name)")
                }
                #expect(try Tree.digest(b.path("f")) == Tree.digest(a.path("f")))
            }
        }

        @Test func `user attributes travel, ours are readable and in no listing`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.write("text", to: "f.txt")
                try Files.setAttribute("user.note", of: a.path("f.txt"), to: "a note")
                try a.sync()
                try b.sync()
                #expect(try Files.attribute("user.note", of: b.path("f.txt")) == "a note")
                #expect(try Files.attributeNames(of: b.path("f.txt")) == ["user.note"])
                #expect(try Files.attribute("user.ubiquity.percent", of: b.path("f.txt")) == "0")
                #expect(try b.text("f.txt") == "text")
                #expect(try Files.attribute("user.ubiquity.percent", of: b.path("f.txt")) == "100")
                #expect(try Files.attribute("user.ubiquity.conflicts", of: b.path("f.txt")) == "0")
                let revisions = [a, b].map { try? Files.attribute("user.ubiquity.revision", of: $0.path("f.txt")) }
                #expect(revisions[0] != nil && revisions[0] == revisions[1])
                try b.evict("f.txt")
                #expect(try Files.attribute("user.ubiquity.state", of: b.path("f.txt")) == "dataless")
                #expect(try Files.attributeNames(of: b.path("f.txt")) == ["user.note"])
                #expect(try Files.attribute("user.ubiquity..placeholder", of: b.path("f.txt")) == nil)
                try b.shell("setfattr -x user.note f.txt")
                try b.sync()
                try a.sync()
                #expect(try Files.attributeNames(of: a.path("f.txt")) == [])
            }
        }

        @Test func `the control attribute evicts, downloads, pins and unpins`() async throws {
            try await withSite { site in
                let (a, _) = try site.pair()
                let item = a.path("f.bin")
                try a.write(randomBytes(300_000), to: "f.bin")
                try a.sync()
                func control(_ verb: String) throws {
                    try Files.setAttribute("user.ubiquity.control", of: item, to: verb)
                }
                func waitFor(_ state: String) throws {
                    try eventually("it is \(state)") { try Files.attribute("user.ubiquity.state", of: item) == state }
                }
                try waitFor("current")
                try control("evict")
                try waitFor("dataless")
                try control("download")
                try waitFor("current")
                try control("evict")
                try waitFor("dataless")
                try control("pin")
                try waitFor("current")
                #expect(try a.run("evict", item).code == 1)
                #expect(throws: SystemError("setting user.ubiquity.control of", item, EPERM)) { try control("evict") }
                #expect(try Files.attribute("user.ubiquity.state", of: item) == "current")
                try control("unpin")
                try eventually("it can be evicted") { try a.run("evict", item).code == 0 }
                #expect(throws: SystemError.self) { try control("no such verb") }
                #expect(try Files.read(item) == randomBytes(300_000))
            }
        }

        @Test func `cp -a, tar --xattrs and rsync -X carry no attribute of ours`() async throws {
            try await withSite { site in
                let (a, _) = try site.pair()
                try a.write("text", to: "f.txt")
                try Files.setAttribute("user.note", of: a.path("f.txt"), to: "a note")
                try a.sync()
                try a.shell(
                    "cp -a f.txt copy.txt; tar --xattrs -cf t.tar f.txt; mkdir out; tar --xattrs -xf t.tar -C out; rsync -aX f.txt r.txt"
                )
                for copy in ["copy.txt", "out/f.txt", "r.txt"] {
                    #expect(try Files.attributeNames(of: a.path(copy)) == ["user.note"])
                    #expect(try Files.attribute("user.note", of: a.path(copy)) == "a note")
                }
            }
        }

        @Test func `hard links are items of their own elsewhere`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("echo one > x; ln x y; echo two >> y")
                #expect(try Files.status(a.path("x")).st_nlink == 2)
                try a.sync()
                try b.waitForText("one\ntwo\n", in: "x")
                try b.waitForText("one\ntwo\n", in: "y")
                try a.shell("rm x")
                try b.waitForAbsence(of: "x")
                #expect(try b.text("y") == "one\ntwo\n")
            }
        }

        @Test func `what cannot be sent stays here, says so, and does not hold sync`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("mkfifo pipe; echo x > f.txt")
                try a.sync()
                try b.waitForText("x\n", in: "f.txt")
                #expect(try b.names() == ["f.txt"])
                #expect(try a.state(of: "pipe") == "local-only")
            }
        }

        @Test func `files that their owner may not write can be kept, evicted and filled`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.write(randomBytes(200_000), to: "f.bin")
                try a.shell("chmod 444 f.bin; mkdir closed; echo x > closed/x; chmod 555 closed")
                try a.sync()
                try b.sync()
                #expect(try Files.status(b.path("f.bin")).st_mode & 0o777 == 0o444)
                #expect(try Files.status(b.path("closed")).st_mode & 0o777 == 0o555)
                try b.evict("f.bin")
                #expect(try Files.status(b.path("f.bin")).st_mode & 0o777 == 0o444)
                #expect(try Files.read(b.path("f.bin")) == randomBytes(200_000))
                if getuid() != 0 {
                    #expect(throws: TestFailure.self) { try b.shell("echo x >> f.bin") }
                    #expect(throws: TestFailure.self) { try b.shell("echo x > closed/y") }
                }
                try a.shell("chmod 755 closed; chmod 644 f.bin")
                try a.sync()
                try b.sync()
                #expect(try Files.status(b.path("f.bin")).st_mode & 0o777 == 0o644)
            }
        }

        @Test func `POSIX holds: an unlinked file stays readable, a rename replaces, a lock locks`() async throws {
            try await withSite { site in
                let a = site.device("a")
                try a.up()
                try a.shell(
                    """
                    echo kept > u; exec 3<> u; rm u; echo more >> /proc/self/fd/3; test "$(cat /proc/self/fd/3)" = "$(printf 'kept\\nmore')"
                    echo 1 > x; echo 2 > y; mv x y; test "$(cat y)" = 1; test ! -e x
                    mkdir d; ! rmdir /nonexistent 2>/dev/null; echo z > d/z; ! rmdir d 2>/dev/null; rm -r d
                    flock y true; flock y -c 'flock -n y true && exit 1 || exit 0'
                    truncate -s 1M sparse; test "$(stat -c %s sparse)" = 1048576; rm sparse
                    test "$(df --output=fstype . | tail -1)" != ""
                    """
                )
            }
        }
    }
}
