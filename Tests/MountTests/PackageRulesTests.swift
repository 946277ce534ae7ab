import Glibc
import TestSupport
import Testing

extension MountTests {
    /// Which folders are packages is the container's to say, on all devices.
    @Suite struct PackageRulesTests {
        private func kind(_ device: Device, _ item: String) throws -> String? {
            try device.status(of: item)["kind"]?.string
        }

        private func extensions(_ device: Device) throws -> Set<String> {
            Set(try device.json("container", "packages", "Documents").elements.compactMap(\.string))
        }

        private func wait(_ device: Device, _ condition: (Set<String>) -> Bool) throws {
            try eventually("\(device.name) is told what the container declares") { condition(try extensions(device)) }
        }

        @Test func `what one device declares counts on the others, for what is made from then on`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("mkdir old.foo; echo 1 > old.foo/f; mkdir b.rtfd; echo 2 > b.rtfd/f")
                try a.sync()
                try b.sync()
                #expect(try extensions(a).contains("rtfd") && !extensions(a).contains("foo"))
                try a.succeed("container", "packages", "Documents", "--add", ".FOO")
                // Here at once.
                try a.shell("mkdir here.foo; echo 3 > here.foo/f")
                #expect(try kind(a, "here.foo") == "package")
                let lines = try a.succeed("container", "packages", "Documents").output.split(separator: "\n")
                #expect(lines.contains("foo") && lines == lines.sorted())
                try wait(b) { $0.contains("foo") }
                try b.shell("mkdir there.foo; echo 4 > there.foo/f; mkdir plain; mv plain moved.foo")
                #expect(try kind(b, "there.foo") == "package" && kind(b, "moved.foo") == "package")
                try b.sync()
                try a.sync()
                for device in [a, b] {
                    for item in ["here.foo", "there.foo", "moved.foo", "b.rtfd"] {
                        #expect(try kind(device, item) == "package", "\(item) on \(device.name)")
                    }
                    #expect(try kind(device, "old.foo") == "folder")
                }
                try b.succeed("container", "packages", "Documents", "--remove", "foo")
                try b.succeed("container", "packages", "Documents", "--remove", "rtfd")
                try wait(a) { !$0.contains("foo") && !$0.contains("rtfd") }
                try a.shell("mkdir late.foo c.rtfd; echo 5 > late.foo/f; echo more >> here.foo/f; echo 6 > old.foo/g")
                try a.sync()
                try b.sync()
                for device in [a, b] {
                    #expect(try kind(device, "late.foo") == "folder" && kind(device, "c.rtfd") == "folder")
                    #expect(try kind(device, "here.foo") == "package" && kind(device, "b.rtfd") == "package")
                }
                #expect(try b.text("late.foo/f") == "5\n" && b.text("here.foo/f") == "3\nmore\n")
                try expectTree(b.mountPoint, is: Tree(a.mountPoint))
            }
        }

        @Test
        func `a folder that is no package any more before it was sent is sent as a folder, with what comes into it`()
            async throws
        {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.succeed("container", "packages", "Documents", "--add", "foo")
                try wait(b) { $0.contains("foo") }
                try b.setOffline(true)
                try b.shell("mkdir -p x.foo/in y.foo; echo 1 > x.foo/f; echo 2 > y.foo/f")
                #expect(try kind(b, "x.foo") == "package" && kind(b, "y.foo") == "package")
                try b.shell("mv y.foo y")
                try a.succeed("container", "packages", "Documents", "--remove", "foo")
                try b.setOffline(false)
                try wait(b) { !$0.contains("foo") }
                try b.shell("echo 3 > x.foo/in/g; echo 4 > y/g")
                try b.sync()
                try b.shell("echo 5 > x.foo/in/h; echo 6 > y/h")
                try b.sync()
                try a.sync()
                for item in ["x.foo", "y"] { #expect(try kind(b, item) == kind(a, item)) }
                #expect(try kind(a, "y") == "folder")
                try expectTree(a.mountPoint, is: Tree(b.mountPoint))
            }
        }

        @Test func `a device keeps what it was told, without the server and after its death`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.succeed("container", "packages", "Documents", "--add", "foo")
                try wait(b) { $0.contains("foo") }
                try a.killServer()
                try b.killService()
                try b.up()
                #expect(try extensions(b).contains("foo"))
                try b.shell("mkdir x.foo; echo 1 > x.foo/f")
                #expect(try kind(b, "x.foo") == "package")
                let refused = try b.run("container", "packages", "Documents", "--add", "bar")
                #expect(refused.code == 69, "\(refused)")
                #expect(try !extensions(b).contains("bar"))
                // Changed while nothing ran here.
                try b.down()
                try a.down()
                try a.up()
                try a.succeed("container", "packages", "Documents", "--add", "bar")
                try b.up()
                try wait(b) { $0.contains("bar") }
                try b.sync()
                try a.sync()
                #expect(try kind(a, "x.foo") == "package")
            }
        }

        @Test func `without a service the server is asked, and the device keeps the answer`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try b.sync()
                try b.down()
                try b.succeed("container", "packages", "Documents", "--add", "foo")
                #expect(try extensions(b).contains("foo"))
                try wait(a) { $0.contains("foo") }
                try a.killServer()
                try b.up()
                try b.shell("mkdir x.foo")
                #expect(try kind(b, "x.foo") == "package")
            }
        }

        @Test func `wrong usage, unknown containers and readers are refused`() async throws {
            try await withSite { site in
                let a = site.device("a")
                try a.up()
                let wrong = [["--add", "a/b"], ["--add", ""], ["--remove", "a b"], ["--add", "a", "--remove", "b"]]
                for words in wrong {
                    let result = try a.run(["container", "packages", "Documents"] + words)
                    #expect(result.code == 64, "\(words): \(result)")
                }
                for words in [[], ["--add", "foo"]] {
                    let result = try a.run(["container", "packages", "Nothing"] + words)
                    #expect(result.code == 1 && result.errors.contains("Nothing"), "\(words): \(result)")
                }
                let invitation = try Device.invitation(
                    in: a.succeed("invite", "--address", "127.0.0.1", "--read-only").output
                )
                let reader = site.device("reader")
                try reader.join(invitation)
                let result = try reader.run("container", "packages", "Documents", "--add", "foo")
                #expect(result.code == 1, "\(result)")
                #expect(try !extensions(a).contains("foo"))
            }
        }
    }
}
