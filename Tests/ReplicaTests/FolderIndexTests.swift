import Replica
import Testing
import UbiquityModel

@Suite struct FolderIndexTests {
    private func key(_ number: UInt8) throws -> InodeKey {
        try #require(InodeKey(bytes: [UInt8](repeating: number, count: 9)))
    }

    @Test func `paths follow moves of folders above`() throws {
        let index = FolderIndex(root: try key(0))
        index.insert(try key(1), parent: try key(0), name: try name("a"))
        index.insert(try key(2), parent: try key(1), name: try name("b"))
        index.insert(try key(3), parent: try key(0), name: try name("c"))
        #expect(index.path(of: try key(2)) == ItemPath([try name("a"), try name("b")]))
        index.move(try key(1), parent: try key(3), name: try name("d"))
        #expect(index.path(of: try key(2)) == ItemPath([try name("c"), try name("d"), try name("b")]))
        #expect(index.path(of: try key(0)) == .root)
        index.remove(try key(3))
        #expect(index.path(of: try key(2)) == nil)
        #expect(index.contains(try key(2)))
        #expect(!index.contains(try key(3)))
    }

    @Test func `what was found before a program moved the folder counts no more`() throws {
        let index = FolderIndex(root: try key(0))
        let (a, b) = (
            LocalPlace(folder: try key(0), name: try name("a")), LocalPlace(folder: try key(0), name: try name("b"))
        )
        #expect(index.note(try key(1), at: a, unlessMovedFrom: nil))
        #expect(!index.note(try key(1), at: b, unlessMovedFrom: nil))
        index.move(try key(1), parent: b.folder, name: b.name)
        #expect(!index.note(try key(1), at: nil, unlessMovedFrom: a))
        #expect(!index.note(try key(1), at: a, unlessMovedFrom: a))
        #expect(index.path(of: try key(1)) == ItemPath([b.name]))
        #expect(index.note(try key(1), at: nil, unlessMovedFrom: b))
        #expect(!index.contains(try key(1)))
    }

    @Test func `a circle has no path`() throws {
        let index = FolderIndex(root: try key(0))
        index.insert(try key(1), parent: try key(2), name: try name("a"))
        index.insert(try key(2), parent: try key(1), name: try name("b"))
        #expect(index.path(of: try key(2)) == nil)
    }

    @Test func `the root stays the root`() throws {
        let index = FolderIndex(root: try key(0))
        index.insert(try key(0), parent: try key(1), name: try name("a"))
        #expect(index.count == 0)
        #expect(index.path(of: try key(0)) == .root)
    }
}
