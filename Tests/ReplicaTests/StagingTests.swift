import Glibc
import Replica
import SystemPackage
import Testing
import UbiquityModel

@Suite struct StagingTests {
    let scratch: ScratchFolder
    let staging: Staging

    init() throws {
        scratch = try ScratchFolder()
        staging = try Staging(path: scratch.path)
    }

    @Test func `makes each kind of item under names of its own`() throws {
        let file = try staging.makeFile()
        let folder = try staging.makeFolder(mode: 0o750)
        let link = try staging.makeSymlink(target: Array("to/where".utf8))
        let placeholder = try staging.makePlaceholder(somePlaceholder(size: 77))
        #expect(Set([file.name, folder, link, placeholder.name]).count == 4)
        #expect(try staging.observe(file.name).kind == .file)
        #expect(try staging.observe(folder).mode == 0o750)
        #expect(try staging.observe(link).kind == .symlink)
        #expect(try staging.observe(placeholder.name) == placeholder.state)
        #expect(placeholder.state.size == 77)
    }

    @Test func `cleaning leaves partly downloaded contents only`() throws {
        let wanted = RevisionID.random()
        let unwanted = RevisionID.random()
        try ([1, 2, 3] as [UInt8]).withUnsafeBytes { bytes in
            let part = try staging.partFile(wanted)
            try #require(write(part.descriptor.raw, bytes.baseAddress, 3) == 3)
        }
        _ = try staging.partFile(unwanted)
        _ = try staging.makeFile()
        try scratch.write("not a revision.part")
        let folder = try staging.makeFolder()
        #expect(mkdir(scratch.appending(folder + "/inner"), 0o700) == 0)
        #expect(symlink("/", scratch.appending(folder + "/inner/link")) == 0)
        try scratch.write(folder + "/inner/file")
        try staging.clean()
        #expect(try FileNames.list(scratch.path) == Set(["\(wanted).part", "\(unwanted).part"]))
        #expect(Set(try staging.parts()) == [wanted, unwanted])
        try staging.removePart(unwanted)
        #expect(try FileNames.list(scratch.path) == ["\(wanted).part"])
        let part = try staging.partFile(wanted)
        #expect(try content(part.descriptor.raw) == [1, 2, 3])
    }

    @Test func `removing what is not there is no error`() throws { try staging.remove("nothing") }

    @Test func `removing never leaves the folder`() throws {
        #expect(throws: Errno.invalidArgument) { try staging.remove("../up") }
        #expect(throws: Errno.invalidArgument) { try staging.remove("..") }
    }
}

enum FileNames {
    static func list(_ path: String) throws -> Set<String> {
        let tree = try BackingTree(path: path)
        return Set(try tree.names(in: tree.rootDescriptor).map(\.description))
    }
}
