import Chunking
import Glibc
import Replica
import SystemPackage
import Testing
import UbiquityModel

@Suite struct PackageTreeTests {
    private static let key = ContainerKey(bytes: [UInt8](repeating: 7, count: 32))
    private let scratch: ScratchFolder

    init() throws { scratch = try ScratchFolder() }

    private func staging() throws -> Staging { try Staging(path: scratch.path) }

    private func makePackage(_ name: String) throws {
        try #require(mkdir(scratch.appending(name), 0o755) == 0)
        try #require(mkdir(scratch.appending(name + "/sub"), 0o750) == 0)
        try scratch.write(name + "/large", (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 7 ^ $0 >> 8) })
        try scratch.write(name + "/sub/small", Array("small".utf8), mode: 0o600)
        try scratch.write(name + "/empty")
        try #require(symlink("sub/small", scratch.appending(name + "/link")) == 0)
        try #require(mkfifo(scratch.appending(name + "/pipe"), 0o600) == 0)
    }

    private func open(_ name: String) throws -> OwnedDescriptor {
        try scratch.open(scratch.appending(name), O_RDONLY | O_DIRECTORY)
    }

    private func tree(_ name: String) throws -> PackageTree {
        let folder = try open(name)
        return try PackageTree(folder: folder.raw)
    }

    private func read(
        _ name: String,
        dataless: PackageReader.Elsewhere = PackageReader.Elsewhere { _ in [] }
    ) throws -> (ContentReader.Reading, [ChunkID: [UInt8]]) {
        let key = try #require(Self.key)
        let folder = try open(name)
        var chunks: [ChunkID: [UInt8]] = [:]
        let reading = try PackageReader.read(
            folder.raw,
            expecting: try PackageTree(folder: folder.raw).state,
            key: key,
            synchronizing: true,
            dataless: dataless
        ) { chunks[$0] = Array($1) }
        return (reading, chunks)
    }

    @Test func `what is read begins with the index, then has each file from a chunk's beginning`() throws {
        try makePackage("one")
        let (reading, chunks) = try read("one")
        let content = reading.manifest.entries.flatMap { chunks[$0.chunk] ?? [] }
        #expect(Int64(content.count) == reading.state.size)
        let length = try PackageIndex.length(header: content)
        let index = try PackageIndex(encoded: Array(content[..<length]), contentSize: Int64(content.count))
        #expect(index.elements.map(\.path.description) == ["empty", "large", "link", "sub", "sub/small"])
        // Whoever sends it need not ask for that.
        #expect(reading.index == index)
        let small = try #require(index.files.last)
        #expect(Array(content[Int(small.offset)...]) == Array("small".utf8))
        // Equal packages are equal contents.
        try makePackage("two")
        for name in ["large", "sub/small", "empty"] {
            var times = [timespec(tv_sec: 5, tv_nsec: 0), timespec(tv_sec: 5, tv_nsec: 0)]
            for package in ["one", "two"] {
                try #require(utimensat(AT_FDCWD, scratch.appending(package + "/" + name), &times, 0) == 0)
            }
        }
        #expect(try read("one").0.content == read("two").0.content)
    }

    @Test func `whatever is changed in it, it is another one, and whatever is done to its contents only, it is not`()
        throws
    {
        try makePackage("one")
        func state() throws -> LocalState {
            let folder = try open("one")
            return try PackageTree(folder: folder.raw).state
        }
        let before = LocalEvidence(try state())
        func expectChange(_ what: Comment, _ change: () throws -> Void) throws {
            let before = try state()
            try change()
            #expect(!LocalEvidence(before).describes(try state()), what)
        }
        #expect(before.describes(try state()))
        try expectChange("written") { try scratch.write("one/sub/small", Array("other".utf8)) }
        try expectChange("mode") { try #require(chmod(scratch.appending("one/large"), 0o600) == 0) }
        try expectChange("renamed") {
            try #require(rename(scratch.appending("one/empty"), scratch.appending("one/sub/empty")) == 0)
        }
        try expectChange("removed") { try #require(unlink(scratch.appending("one/link")) == 0) }
        try expectChange("replaced") {
            try scratch.write("new", Array("other".utf8))
            try #require(rename(scratch.appending("new"), scratch.appending("one/sub/small")) == 0)
        }
        // Linked, as when its next state is put together.
        let known = LocalEvidence(try state())
        try #require(link(scratch.appending("one/large"), scratch.appending("elsewhere")) == 0)
        #expect(known.describes(try state()))
        #expect(try state().facts?.datalessElements == 0)
    }

    @Test func `it is built from its index, with links to what is the same, and reads as the same content`() throws {
        try makePackage("one")
        let (reading, _) = try read("one")
        let folder = try open("one")
        let old = try PackageTree(folder: folder.raw)
        let staging = try staging()
        let attributes = ItemAttributes(modified: Timestamp(nanoseconds: 1_000_000_000), mode: 0o700)
        let builder = try PackageBuilder(
            old.index,
            revision: .random(),
            attributes: attributes,
            older: folder.raw,
            in: staging
        ) { element in
            element.path.description == "large" ? .dataless : .linked(element.path)
        }
        #expect(builder.wanted.isEmpty)
        let (name, state) = try builder.finish()
        #expect(state.kind == .package && state.mode == 0o700)
        #expect(state.facts?.datalessElements == 1)
        #expect(state.size == old.state.size)
        let made = try tree(name)
        #expect(made.index == old.index)
        let small = { (tree: PackageTree) in tree.entries.first { $0.element.path.description == "sub/small" } }
        #expect(small(made)?.state.key == small(old)?.state.key)
        // What is not here is read by the chunks that the cloud has of it.
        let large = try #require(old.index.files.first { $0.element.path.description == "large" })
        var offset: Int64 = 0
        let chunks = reading.manifest.entries.filter { entry in
            defer { offset += Int64(entry.length) }
            return offset >= large.offset && offset < large.offset + large.element.size
        }
        #expect(try read(name, dataless: PackageReader.Elsewhere { _ in chunks }).0.content == reading.content)
    }

    /// More than any disk has room for: more than 64 KiB is no attribute of a file.
    private static let large = [Array("user.large".utf8): [UInt8](repeating: 7, count: 70_000)]

    private func builtWithLargeAttributes() throws -> (name: String, state: LocalState, index: PackageIndex) {
        let time = Timestamp(nanoseconds: 5_000_000_000)
        let small = [Array("user.small".utf8): [UInt8(1)]]
        let both = Self.large.merging(small) { large, _ in large }
        func element(
            _ path: String,
            _ kind: PackageIndex.Element.Kind,
            _ extended: [[UInt8]: [UInt8]]
        ) throws -> PackageIndex.Element {
            .init(path: try ItemPath(parsing: path), kind: kind, mode: 0o755, extended: extended)
        }
        let index = PackageIndex([
            try element("folder", .folder, Self.large), try element("whole", .file(size: 0, modified: time), both),
            try element("file", .file(size: 9, modified: time), both),
        ])
        let builder = try PackageBuilder(
            index,
            revision: .random(),
            attributes: ItemAttributes(modified: time, mode: 0o755),
            older: nil,
            in: try staging()
        ) { _ in .dataless }
        let (name, state) = try builder.finish()
        return (name, state, index)
    }

    private func elsewhere(agreed: PackageIndex?) throws -> PackageReader.Elsewhere {
        let chunk = try #require(ChunkID(bytes: [UInt8](repeating: 9, count: 32)))
        return PackageReader.Elsewhere(agreed: agreed) { _ in [Manifest.Entry(chunk: chunk, length: 9)] }
    }

    @Test func `attributes for which there is no room here are sent as they were agreed on`() throws {
        let (name, state, index) = try builtWithLargeAttributes()
        #expect(state.size == index.contentSize)
        let made = try tree(name)
        #expect(made.index != index && made.index(completedBy: index) == index)
        #expect(made.entries.map { $0.element.extended.count } == [1, 0, 1])
        let (reading, chunks) = try read(name, dataless: elsewhere(agreed: index))
        let content = reading.manifest.entries.flatMap { chunks[$0.chunk] ?? [] }
        #expect(content == index.encoded)
        #expect(reading.manifest.size == index.contentSize && reading.state.size == index.contentSize)
        // They are the file's, wherever it goes, but not another's that takes its place.
        let (old, new) = (scratch.appending(name + "/whole"), scratch.appending(name + "/folder/moved"))
        try #require(rename(old, new) == 0)
        try scratch.write(name + "/whole")
        let changed = try #require(try tree(name).index(completedBy: index))
        let large = changed.elements.filter { $0.extended[Array("user.large".utf8)] != nil }
        #expect(large.map(\.path.description) == ["file", "folder", "folder/moved"])
        #expect(try tree(name).state.size == changed.contentSize)
    }

    @Test func `attributes that nobody knows hold nothing up`() throws {
        let (name, _, _) = try builtWithLargeAttributes()
        let none = try elsewhere(agreed: nil)
        #expect(throws: ContentReadError.self) { try read(name, dataless: none) }
        let (reading, _) = try read(name, dataless: none)
        #expect(try reading.manifest.size == tree(name).index.contentSize)
        #expect(try reading.state.size == tree(name).index.contentSize)
    }

    @Test func `one that has gone is looked for again`() throws {
        try makePackage("one")
        let key = try #require(Self.key)
        let folder = try open("one")
        let state = try PackageTree(folder: folder.raw).state
        try staging().remove("one")
        let error = #expect(throws: ContentReadError.self) {
            try PackageReader.read(
                folder.raw,
                expecting: state,
                key: key,
                synchronizing: false,
                dataless: PackageReader.Elsewhere { _ in [] }
            ) { _, _ in }
        }
        guard case .changed? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    @Test func `one that changes while it is read is read again`() throws {
        try makePackage("one")
        let key = try #require(Self.key)
        let folder = try open("one")
        let state = try PackageTree(folder: folder.raw).state
        var count = 0
        let error = #expect(throws: ContentReadError.self) {
            try PackageReader.read(
                folder.raw,
                expecting: state,
                key: key,
                synchronizing: false,
                dataless: PackageReader.Elsewhere { _ in [] }
            ) { _, _ in
                count += 1
                // Of a file that has been read, or is about to be.
                if count == 2 { try scratch.write("one/sub/small", Array("changed since".utf8)) }
            }
        }
        guard case .changed? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }
}
