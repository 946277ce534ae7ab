import CLinux
import Replica
import Testing
import UbiquityModel

@Suite struct InodeModeTests {
    struct Case: CustomTestStringConvertible {
        var mode: UInt16
        var kind: LocalKind
        var backing: UInt32
        var testDescription: String { "\(kind) \(String(mode, radix: 8))" }
    }

    /// An unprivileged service keeps what it needs on the inode, and says the true mode all the same.
    @Test(arguments: [
        Case(mode: 0o444, kind: .file, backing: 0o644), Case(mode: 0o000, kind: .file, backing: 0o600),
        Case(mode: 0o644, kind: .file, backing: 0o644), Case(mode: 0o555, kind: .file, backing: 0o755),
        Case(mode: 0o555, kind: .folder, backing: 0o755), Case(mode: 0o600, kind: .folder, backing: 0o700),
        Case(mode: 0o755, kind: .folder, backing: 0o755), Case(mode: 0o1777, kind: .folder, backing: 0o1777),
    ])
    func `the true mode is kept where the inode needs more`(expected: Case) throws {
        let scratch = try ScratchFolder()
        let item: OwnedDescriptor
        if expected.kind == .folder { item = try scratch.openFolder() } else { item = try scratch.write("file") }
        // Twice: from an ordinary mode, and from a hidden one.
        for _ in 0..<2 {
            try InodeMode.set(item.raw, expected.mode, expected.kind, privileged: false)
            var status = clinux_status()
            #expect(clinux_status_of(item.raw, &status) == 0)
            #expect(status.mode & 0o7777 == expected.backing)
            #expect(try InodeMode.get(item.raw, status: status.mode) == expected.mode)
            #expect(try BackingTree.observe(descriptor: item.raw).mode == expected.mode & 0o777)
            try InodeMode.set(item.raw, 0, expected.kind, privileged: false)
        }
        try InodeMode.set(item.raw, 0o700, expected.kind, privileged: false)
        #expect(try ExtendedAttributes.names(item.raw).isEmpty)
    }

    @Test func `setuid that the disk has ended is not remembered`() throws {
        let scratch = try ScratchFolder()
        let item = try scratch.write("file")
        try InodeMode.set(item.raw, 0o4555, .file, privileged: false)
        var status = clinux_status()
        #expect(clinux_status_of(item.raw, &status) == 0)
        #expect(status.mode & 0o7777 == 0o4755)
        #expect(try InodeMode.get(item.raw, status: status.mode) == 0o4555)
        #expect(try InodeMode.get(item.raw, status: status.mode & ~0o4000) == 0o555)
    }
}
