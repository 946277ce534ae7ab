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
