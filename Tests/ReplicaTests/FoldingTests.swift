import Replica
import TestSupport
import Testing
import UbiquityModel

@Suite struct FoldingTests {
    private let scratch: ScratchFolder

    init() throws { scratch = try ScratchFolder() }

    private var path: String { scratch.appending("state.sqlite") }

    @Test func `a case-insensitive container's items are found without the case of their names`() throws {
        let database = try StateDatabase(path: path, isCaseInsensitive: true)
        var items = [
            try remoteFile(1, "Straße"), try remoteFile(2, "other"),
            try remoteFile(3, "STRASSE", in: ItemID(high: 0, low: 9)),
        ]
        try database.write(remote: items, position: nil)
        let asked = Place(parent: .root, name: try name("STRASSE"))
        #expect(try database.remote(like: asked) == [items[0]])
        #expect(try database.remote(at: asked) == [])
        // Moved, and deleted.
        items[0].place.name = try name("else")
        items[0].position = 10
        items[1].isDeleted = true
        items[1].position = 11
        try database.write(remote: items, position: nil)
        #expect(try database.remote(like: asked) == [])
        #expect(try database.remote(like: Place(parent: .root, name: try name("Else"))) == [items[0]])
        #expect(try database.remote(like: Place(parent: .root, name: try name("Other"))) == [])
    }

    @Test func `in any other nobody asks`() throws {
        let database = try StateDatabase(path: path)
        try database.write(remote: [try remoteFile(1, "a")], position: nil)
        #expect(try database.remote(like: Place(parent: .root, name: try name("A"))) == [])
    }

    @Test func `a database of the fifth version learns the names without their case`() throws {
        let item = try remoteFile(1, "File")
        do {
            let old = try StateDatabase(path: path)
            try old.write(remote: [item], position: nil)
            try old.close()
        }
        try succeed(
            "sqlite3",
            path,
            """
            DROP INDEX remoteFolded; ALTER TABLE remote DROP COLUMN folded; ALTER TABLE sending DROP COLUMN target;
            PRAGMA user_version = 5;
            """
        )
        let database = try StateDatabase(path: path, isCaseInsensitive: true)
        #expect(try database.remote(like: Place(parent: .root, name: try name("fILE"))) == [item])
    }
}
