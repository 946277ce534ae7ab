import CatalogModel
import CatalogStore
import Testing
import UbiquityModel

/// What only a catalogue in a file promises.
@Suite struct SQLiteFileTests {
    @Test func `a catalogue of a newer version is left alone`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/catalog.sqlite"
        try SQLiteCatalog(path: path).close()
        // The format version lies at byte 60 of an SQLite file, big-endian.
        try overwrite(path, at: 60, with: [0, 0, 0, 99])
        #expect(throws: CatalogError.tooNew(format: 99)) { try SQLiteCatalog(path: path) }
    }

    @Test func `everything is there after opening the file again`() async throws {
        let test = try await TestCatalog(.sqlite)
        let file = TestFile("x")
        let answer = try await test.commit([try file.create("a")], chunks: file.records)
        // The first catalogue still has the file open, as after a kill: nothing was closed.
        let again = try SQLiteCatalog(path: try #require(test.path))
        let page = try await again.changes(test.scope, since: nil, limit: 10)
        #expect(page.entries.map(\.item) == answer.outcomes.compactMap(\.item))
        #expect(page.position == answer.position)
    }
}
