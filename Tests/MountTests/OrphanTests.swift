import Glibc
import TestSupport
import Testing

extension MountTests {
    /// What programs write where no name leads any more (semantics section 4).
    @Suite struct OrphanTests {
        @Test func `what is written to a replaced file until the mount ends is kept`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.write("base", to: "f.txt")
                for device in [a, b] { try device.sync() }
                #expect(try b.text("f.txt") == "base")
                let old = try Files.open(b.path("f.txt"), O_RDONLY)
                defer { close(old) }
                try a.write("new", to: "f.txt")
                try a.sync()
                try b.waitForText("new", in: "f.txt")
                // Its handle ends with the mount, and the engine, with the service, right after that.
                let late = try Files.open("/proc/self/fd/\(old)", O_WRONLY | O_TRUNC)
                defer { close(late) }
                try Files.write(Array("late".utf8), descriptor: late, path: "f.txt")
                try b.down()
                try b.up()
                var kept: [String] = []
                try eventually("it is kept beside the file") {
                    kept = try b.names().filter { $0.hasPrefix("f (") }
                    return !kept.isEmpty
                }
                try b.waitForText("late", in: try #require(kept.first))
                #expect(kept.count == 1)
                #expect(try b.text("f.txt") == "new")
            }
        }
    }
}
