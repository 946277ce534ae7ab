import CatalogModel
import CatalogStore
import Glibc
import Reconciliation
import TestSupport
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

    @Test func `a catalogue of the first version is brought up to this one, and its versions count from then on`()
        async throws
    {
        let test = try await TestCatalog(.sqlite)
        let (first, second) = (TestFile("x"), TestFile("y"))
        _ = try await test.commit([try first.create("a")], chunks: first.records)
        _ = try await test.commit(
            [second.edit(first.item, base: first.revision, edited: 20)],
            chunks: second.records
        )
        let path = try #require(test.path)
        try succeed(
            "sqlite3",
            path,
            """
            DROP INDEX revisions_content; DROP INDEX revisions_saved; DROP TABLE candidates; DROP TABLE packs;
            ALTER TABLE revisions DROP COLUMN since; ALTER TABLE revisions DROP COLUMN resolved;
            ALTER TABLE containers DROP COLUMN packages_added; ALTER TABLE containers DROP COLUMN packages_removed;
            DROP INDEX items_folded; ALTER TABLE items DROP COLUMN folded;
            ALTER TABLE revisions DROP COLUMN unwanted;
            PRAGMA user_version = 1;
            """
        )
        let catalog = try SQLiteCatalog(path: path)
        #expect(try await catalog.versions(first.item, test.scope).map(\.kind) == [.current, .saved])
        // Written in 1970, by its times.
        let now = Timestamp(seconds: Int64(Glibc.time(nil)), nanoseconds: 0)
        #expect(try await catalog.discardVersions(.standard, after: nil, now: now).discarded == 0)
        let later = now.after(.days(366))
        #expect(try await catalog.discardVersions(.standard, after: nil, now: later).discarded == 1)
    }

    @Test func `a catalogue of the second version declares nothing, until somebody does`() async throws {
        let test = try await TestCatalog(.sqlite)
        let path = try #require(test.path)
        try succeed(
            "sqlite3",
            path,
            """
            ALTER TABLE containers DROP COLUMN packages_added; ALTER TABLE containers DROP COLUMN packages_removed;
            DROP INDEX items_folded; ALTER TABLE items DROP COLUMN folded;
            ALTER TABLE revisions DROP COLUMN unwanted;
            PRAGMA user_version = 2;
            """
        )
        let catalog = try SQLiteCatalog(path: path)
        #expect(try await catalog.containers(for: test.scope.token).map(\.info.packages) == [PackageDeclaration()])
        let change = PackageDeclaration(added: ["foo", "bar"], removed: ["rtfd"])
        #expect(try await catalog.declarePackages(change, test.scope).info.packages == change)
        let again = try SQLiteCatalog(path: path)
        #expect(try await again.containers(for: test.scope.token).map(\.info.packages) == [change])
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
