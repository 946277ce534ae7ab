import CLinux
import Glibc
import Replica
import SystemPackage
import Testing
import UbiquityModel

@Suite struct InodeKeyTests {
    let scratch: ScratchFolder

    init() throws { scratch = try ScratchFolder() }

    @Test func `is the same by name, by descriptor and by O_PATH, and after a rename`() throws {
        let file = try scratch.write("a")
        let folder = try scratch.openFolder()
        let key = try InodeKey(descriptor: file.raw)
        #expect(try InodeKey(in: folder.raw, name: "a") == key)
        let path = try scratch.open(scratch.appending("a"), Int32(CLINUX_O_PATH))
        #expect(try InodeKey(descriptor: path.raw) == key)
        #expect(rename(scratch.appending("a"), scratch.appending("b")) == 0)
        #expect(try InodeKey(in: folder.raw, name: "b") == key)
        #expect(throws: Errno.noSuchFileOrDirectory) { _ = try InodeKey(in: folder.raw, name: "a") }
    }

    @Test func `a number used again is another key`() throws {
        let folder = try scratch.openFolder()
        var keys = Set<InodeKey>()
        for _ in 0..<20 {
            try scratch.write("again")
            keys.insert(try InodeKey(in: folder.raw, name: "again"))
            #expect(unlink(scratch.appending("again")) == 0)
        }
        #expect(keys.count == 20)
    }

    @Test func `does not follow links`() throws {
        try scratch.write("target")
        #expect(symlink("target", scratch.appending("link")) == 0)
        let folder = try scratch.openFolder()
        #expect(try InodeKey(in: folder.raw, name: "link") != InodeKey(in: folder.raw, name: "target"))
    }

    @Test func `comes back from its bytes, and not from others`() throws {
        let key = try InodeKey(in: AT_FDCWD, name: scratch.path)
        #expect(InodeKey(bytes: key.bytes) == key)
        #expect(InodeKey(bytes: []) == nil)
        #expect(InodeKey(bytes: [UInt8](repeating: 1, count: 33)) == nil)
    }
}
