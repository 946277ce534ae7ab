import CLinux
import Glibc
import Replica
import SystemPackage
import Testing
import UbiquityModel

@Suite struct BackingTreeTests {
    let scratch: ScratchFolder
    let tree: BackingTree

    init() throws {
        scratch = try ScratchFolder()
        tree = try BackingTree(path: scratch.path)
    }

    @Test func `says what a name stands for`() throws {
        try scratch.write("file", [1, 2, 3], mode: 0o640)
        #expect(mkdir(scratch.appending("folder"), 0o750) == 0)
        #expect(symlink("nowhere", scratch.appending("link")) == 0)
        #expect(mkfifo(scratch.appending("fifo"), 0o600) == 0)
        #expect(link(scratch.appending("file"), scratch.appending("second")) == 0)
        let file = try #require(try tree.observe(in: tree.rootDescriptor, name("file")))
        #expect(file.kind == .file && file.size == 3 && file.mode == 0o640 && file.linkCount == 2)
        #expect(try tree.observe(in: tree.rootDescriptor, name("second"))?.key == file.key)
        #expect(try tree.observe(in: tree.rootDescriptor, name("folder"))?.kind == .folder)
        #expect(try tree.observe(in: tree.rootDescriptor, name("link"))?.kind == .symlink)
        #expect(try tree.observe(in: tree.rootDescriptor, name("fifo"))?.kind == .other)
        #expect(try tree.observe(in: tree.rootDescriptor, name("nothing")) == nil)
        #expect(try tree.readLink(in: tree.rootDescriptor, name("link")) == Array("nowhere".utf8))
    }

    @Test func `lists every name, whatever its bytes`() throws {
        var expected = Set<Name>()
        for index in 0..<3000 { expected.insert(try name("a name that is long enough to need several calls \(index)")) }
        expected.insert(try Name(bytes: [0xFF, 0xFE, 0x0A, 0x20]))
        expected.insert(try Name(bytes: [UInt8](repeating: 0x78, count: 255)))
        for name in expected {
            let made = name.withCString { openat(tree.rootDescriptor, $0, O_CREAT | O_WRONLY, 0o600) }
            try #require(made >= 0)
            close(made)
        }
        let names = try tree.names(in: tree.rootDescriptor)
        #expect(names.count == expected.count)
        #expect(Set(names) == expected)
        #expect(try tree.names(in: tree.rootDescriptor).count == expected.count, "again, from the beginning")
    }

    @Test func `opens only the file that is expected`() throws {
        let file = try scratch.write("file", [1, 2, 3])
        let key = try InodeKey(descriptor: file.raw)
        let opened = try tree.openFile(in: tree.rootDescriptor, name("file"), expecting: key)
        #expect(try content(opened.raw) == [1, 2, 3])
        #expect(rename(scratch.appending("file"), scratch.appending("moved")) == 0)
        #expect(symlink("moved", scratch.appending("file")) == 0)
        #expect(throws: Errno.stale) { _ = try tree.openFile(in: tree.rootDescriptor, name("file"), expecting: key) }
        #expect(mkfifo(scratch.appending("fifo"), 0o600) == 0)
        let fifo = try InodeKey(in: tree.rootDescriptor, name: "fifo")
        #expect(throws: Errno.stale) { _ = try tree.openFile(in: tree.rootDescriptor, name("fifo"), expecting: fifo) }
        #expect(throws: Errno.noSuchFileOrDirectory) {
            _ = try tree.openFile(in: tree.rootDescriptor, name("none"), expecting: key)
        }
    }

    @Test func `a sync that begins before an act is done does not cover it`() throws {
        let file = try scratch.write("file", [1])
        let key = try InodeKey(descriptor: file.raw)
        tree.unsettled.add(key)
        try tree.synchronize()
        tree.unsettled.acted(key)
        // That it is known still is seen by the attempt to sync a descriptor that is none.
        #expect(throws: Errno.badFileDescriptor) { try tree.unsettled.settle(key, -1) }
        try tree.synchronize()
        try tree.unsettled.settle(key, -1)
    }

    @Test func `follows no link to a folder`() throws {
        #expect(symlink("/etc", scratch.appending("out")) == 0)
        #expect(throws: Errno.tooManySymbolicLinkLevels) {
            _ = try tree.openFolder(at: ItemPath([name("out"), name("apt")]))
        }
        #expect(throws: Errno.self) { _ = try tree.openFolder(at: ItemPath([name("out")])) }
    }

    @Test func `opens folders deeper than PATH_MAX`() throws {
        let long = try Name(bytes: [UInt8](repeating: 0x64, count: 200))
        var path = ItemPath.root
        var parent = try tree.openFolder(at: path)
        for _ in 0..<50 {
            try #require(long.withCString { mkdirat(parent.raw, $0, 0o700) } == 0)
            path = path.appending(long)
            parent = try OwnedDescriptor(in: parent.raw, String(describing: long), flags: O_RDONLY | O_DIRECTORY)
        }
        let opened = try tree.openFolder(at: path)
        #expect(try InodeKey(descriptor: opened.raw) == InodeKey(descriptor: parent.raw))
    }

    private func found(_ key: InodeKey) throws -> InodeKey {
        let folder = try tree.openFolder(key: key)
        return try InodeKey(descriptor: folder.raw)
    }

    @Test func `finds a folder by its inode where the index says, and nothing else`() throws {
        #expect(mkdir(scratch.appending("a"), 0o700) == 0)
        #expect(mkdir(scratch.appending("a/b"), 0o700) == 0)
        let a = try #require(try tree.observe(in: tree.rootDescriptor, name("a"))).key
        let b = try InodeKey(in: AT_FDCWD, name: scratch.appending("a/b"))
        #expect(throws: Errno.stale) { _ = try tree.openFolder(key: b) }
        tree.folders.insert(a, parent: tree.rootKey, name: try name("a"))
        tree.folders.insert(b, parent: a, name: try name("b"))
        #expect(try found(b) == b)
        #expect(try found(tree.rootKey) == tree.rootKey)
        #expect(rename(scratch.appending("a"), scratch.appending("c")) == 0)
        #expect(throws: Errno.stale) { _ = try tree.openFolder(key: b) }
        #expect(mkdir(scratch.appending("a"), 0o700) == 0)
        #expect(throws: Errno.stale, "another folder has the name now") { _ = try tree.openFolder(key: a) }
        tree.folders.move(a, parent: tree.rootKey, name: try name("c"))
        #expect(try found(b) == b)
    }

    @Test func `shows the attributes that are synced, not ours`() throws {
        let file = try scratch.write("file")
        for name in [
            "user.note", "user.ubiquity.package", "user.ubiquity.state", "user.ubiquity..mode", "user.ubiquitous",
        ] {
            try ExtendedAttributes.set(file.raw, name, Array(name.utf8))
        }
        let shown = try tree.extendedAttributes(descriptor: file.raw)
        #expect(
            Set(shown.keys.map { String(decoding: $0, as: UTF8.self) }) == [
                "user.note", "user.ubiquity.package", "user.ubiquitous",
            ]
        )
        #expect(shown[Array("user.note".utf8)] == Array("user.note".utf8))
    }

    @Test func `replacing attributes sets, changes and removes`() throws {
        let file = try scratch.write("file")
        func set(_ names: String...) -> [[UInt8]: [UInt8]] {
            Dictionary(uniqueKeysWithValues: names.map { (Array("user.\($0)".utf8), Array($0.utf8)) })
        }
        #expect(try ExtendedAttributes.replaceSynced(file.raw, with: set("a", "b")).isEmpty)
        #expect(try ExtendedAttributes.replaceSynced(file.raw, with: set("b", "c")).isEmpty)
        #expect(try tree.extendedAttributes(descriptor: file.raw) == set("b", "c"))
        #expect(try ExtendedAttributes.replaceSynced(file.raw, with: [:]).isEmpty)
        #expect(try tree.extendedAttributes(descriptor: file.raw).isEmpty)
    }

    @Test func `attributes longer than the first guess are read whole`() throws {
        let file = try scratch.write("file")
        let value = [UInt8](repeating: 3, count: 2000)
        try ExtendedAttributes.set(file.raw, "user.long", value)
        for index in 0..<30 { try ExtendedAttributes.set(file.raw, "user.a longer name for the list \(index)", []) }
        #expect(try ExtendedAttributes.get(file.raw, "user.long") == value)
        #expect(try ExtendedAttributes.names(file.raw).count == 31)
    }

    @Test func `synchronizes`() throws { try tree.synchronize() }
}
