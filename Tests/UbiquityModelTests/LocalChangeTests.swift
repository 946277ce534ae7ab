import Testing
import UbiquityModel

struct LocalChangeTests {
    private let folder = InodeKey(tag: 1, words: (1, 1, 0))
    private let file = InodeKey(tag: 1, words: (2, 1, 0))
    private let other = InodeKey(tag: 1, words: (3, 1, 0))

    private func change(
        _ aspects: LocalChange.Aspects,
        _ name: String = "name",
        _ key: InodeKey? = nil,
        movedFrom: String? = nil,
        replaces: Bool = false,
        mayHaveOtherNames: Bool = false
    ) throws -> LocalChange {
        LocalChange(
            aspects: aspects,
            parent: folder,
            name: try Name(name),
            key: key ?? file,
            movedFrom: try movedFrom.map { (folder, try Name($0)) },
            replaced: replaces ? other : nil,
            mayHaveOtherNames: mayHaveOtherNames,
            isFolder: false
        )
    }

    @Test
    func `what is done next to the same file is taken in`() throws {
        var made = try change(.entry)
        let isTakenIn = made.absorb(try change([.content, .closed], mayHaveOtherNames: true))
        #expect(isTakenIn)
        #expect(made == (try change([.entry, .content, .closed])))
        #expect(made.mayHaveOtherNames)
    }

    @Test
    func `another name or inode, and a move, are changes by themselves`() throws {
        let made = try change(.entry)
        let moved = try change(.entry, movedFrom: "before")
        let replacing = try change(.entry, replaces: true)
        let pairs = [
            (made, try change(.content, "other")), (made, try change(.entry, "name", other)), (made, moved),
            (moved, made), (made, replacing), (replacing, made),
        ]
        for (first, next) in pairs {
            var changed = first
            let isTakenIn = changed.absorb(next)
            #expect(!isTakenIn)
            #expect(changed == first && changed.mayHaveOtherNames == first.mayHaveOtherNames)
        }
    }
}
