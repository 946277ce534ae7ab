import Glibc
import Replica
import SystemPackage
import Testing
import UbiquityModel

/// Old states of packages in the staging folder, over the end of a process.
@Suite struct ReplacedPackageTests {
    private let scratch: ScratchFolder
    private let staging: Staging
    private let parent = InodeKey(tag: 3, words: (1, 2, 3))

    init() throws {
        scratch = try ScratchFolder()
        try #require(mkdir(scratch.appending("staging"), 0o700) == 0)
        staging = try Staging(path: scratch.appending("staging"))
    }

    /// The package `D`, and the record of it under a staged name.
    private func makePackage() throws -> String {
        try #require(mkdir(scratch.appending("D"), 0o755) == 0)
        try #require(mkdir(scratch.appending("D/sub"), 0o755) == 0)
        for name in ["text", "sub/small", "shared"] { try scratch.write("D/" + name, Array(name.utf8)) }
        let staged = Staging.freshName()
        try staging.note(replaced: try tree(), as: staged, from: parent)
        return staged
    }

    private func tree() throws -> PackageTree {
        let folder = try scratch.open(scratch.appending("D"), O_RDONLY | O_DIRECTORY)
        return try PackageTree(folder: folder.raw)
    }

    private func exchange(_ staged: String) throws {
        try #require(rename(scratch.appending("D"), scratch.appending("staging/" + staged)) == 0)
    }

    private func written(_ staged: String) throws -> [String]? {
        try staging.replacedPackage(staged)?.written.map(\.path.description)
    }

    @Test func `only what was written since is told, until it is kept`() throws {
        let staged = try makePackage()
        try exchange(staged)
        #expect(try written(staged) == [])
        try scratch.write("staging/\(staged)/text", Array("text, and more".utf8))
        try scratch.write("staging/\(staged)/new", Array("new".utf8))
        #expect(
            rename(scratch.appending("staging/\(staged)/sub/small"), scratch.appending("staging/\(staged)/moved")) == 0
        )
        let seen = try #require(try staging.replacedPackage(staged))
        #expect(seen.parent == parent && !seen.isInUse)
        #expect(seen.written.map(\.path.description) == ["new", "text"])
        try staging.note(kept: [seen.written[0].state], ofReplaced: staged)
        #expect(try written(staged) == ["text"])
        try staging.note(kept: [seen.written[1].state], ofReplaced: staged)
        #expect(try written(staged) == [])
        // Once more, after that.
        try scratch.write("staging/\(staged)/new", Array("newer".utf8))
        #expect(try written(staged) == ["new"])
    }

    @Test func `what is in the new state as well is sent from there`() throws {
        let staged = try makePackage()
        try exchange(staged)
        #expect(link(scratch.appending("staging/\(staged)/shared"), scratch.appending("elsewhere")) == 0)
        try scratch.write("elsewhere", Array("written in both".utf8))
        #expect(try written(staged) == [])
        // Further names in the old state itself keep nothing.
        #expect(unlink(scratch.appending("elsewhere")) == 0)
        #expect(link(scratch.appending("staging/\(staged)/shared"), scratch.appending("staging/\(staged)/twice")) == 0)
        #expect(try written(staged) == ["shared", "twice"])
    }

    @Test func `whoever has a file open for writing is seen`() throws {
        let staged = try makePackage()
        try exchange(staged)
        do {
            let reader = try scratch.open(scratch.appending("staging/\(staged)/text"), O_RDONLY)
            #expect(try staging.replacedPackage(staged)?.isInUse == false)
            _ = consume reader
        }
        let writer = try scratch.open(scratch.appending("staging/\(staged)/sub/small"), O_WRONLY)
        #expect(try staging.replacedPackage(staged)?.isInUse == true)
        try writer.close()
        #expect(try staging.replacedPackage(staged)?.isInUse == false)
    }

    @Test func `a start leaves old states, and nothing of exchanges that did not happen`() throws {
        let staged = try makePackage()
        try exchange(staged)
        // Never exchanged: the new state lies under its name.
        let unexchanged = try makePackage()
        #expect(mkdir(scratch.appending("staging/" + unexchanged), 0o755) == 0)
        // Torn by a power loss, and so never exchanged.
        let torn = Staging.freshName()
        #expect(mkdir(scratch.appending("staging/" + torn), 0o755) == 0)
        try scratch.write("staging/\(torn).replaced", Array("UBQR".utf8))
        #expect(staging.mayHoldReplaced(staged) && staging.mayHoldReplaced(unexchanged))
        #expect(try staging.replacedPackage(unexchanged) == nil)
        #expect(try staging.replacedPackages() == [staged])
        try staging.clean()
        #expect(try FileNames.list(scratch.appending("staging")) == [staged, "\(staged).replaced"])
        #expect(try written(staged) == [])
        try staging.remove(staged)
        staging.forget(replaced: staged)
        #expect(try FileNames.list(scratch.appending("staging")) == [])
    }

    @Test func `a record of a newer version is left alone`() throws {
        let name = Staging.freshName()
        #expect(mkdir(scratch.appending("staging/" + name), 0o755) == 0)
        try scratch.write("staging/\(name).replaced", Array("UBQR".utf8) + [0, 0, 0, 2])
        #expect(throws: Errno.notSupported) { try staging.replacedPackage(name) }
        #expect(try staging.replacedPackages() == [])
        try staging.clean()
        #expect(try FileNames.list(scratch.appending("staging")) == [name, "\(name).replaced"])
    }
}
