import CatalogModel
import CatalogStore
import Reconciliation
import Testing
import UbiquityModel

/// Packs and catalogue are backups of different days: chunks are listed whose pack is gone.
@Suite struct LostPackTests {
    /// The catalogue of a server that was started again, when its first pack was gone.
    private func restarted(_ test: TestCatalog) throws -> SQLiteCatalog {
        try SQLiteCatalog(path: try #require(test.path)) { pack, _ in pack != 1 }
    }

    /// Stored again, in another pack.
    private func again(_ file: TestFile) -> [ChunkRecord] {
        file.records.map { record in
            var record = record
            record.pack = 2
            return record
        }
    }

    private func sizes(_ files: TestFile...) -> [ChunkSize] {
        files.flatMap(\.records).map { ChunkSize(chunk: $0.chunk, length: $0.length) }
    }

    @Test func `a content that was committed before is to be sent again when its chunks are gone`() async throws {
        let test = try await TestCatalog(.sqlite)
        let (first, second) = (TestFile("x", "y"), TestFile("z"))
        _ = try await test.commit([try first.create("a")], chunks: first.records)
        let edit = second.edit(first.item, base: first.revision, edited: 20)
        #expect(try await test.commit([edit], chunks: second.records).outcomes.first?.item != nil)

        let catalog = try restarted(test)
        // Who has taken it back has the last copy of it.
        let back = TestFile("x", "y")
        func commit(_ chunks: [ChunkRecord]) async throws -> OperationOutcome? {
            let edit = back.edit(first.item, base: second.revision, edited: 30)
            let request = CommitRequest(
                chunks: chunks,
                entries: [.operation(edit)],
                deviceClock: time(1_000),
                now: time(1_000)
            )
            return try await catalog.commit(request, test.scope).outcomes.first
        }
        #expect(try await commit([]) == .missingChunks(back.manifest.entries.map(\.chunk)))
        #expect(try await commit(again(back))?.item?.content == back.content)
        let wholeness = try await catalog.wholeness([(first.item, back.revision)], test.scope)
        #expect(wholeness.map(\.isKnown) == [true])
        try catalog.close()
    }

    @Test func `a chunk that comes twice in a commit lies where it can be had`() async throws {
        let test = try await TestCatalog(.sqlite)
        let catalog = try restarted(test)
        let file = TestFile("x")
        let request = CommitRequest(
            chunks: file.records + again(file),
            entries: [.operation(try file.create("a"))],
            deviceClock: time(1_000),
            now: time(1_000)
        )
        #expect(try await catalog.commit(request, test.scope).outcomes.first?.item?.content == file.content)
        let stored = try await catalog.chunks(file.records.map(\.chunk), test.scope)
        #expect(stored.compactMap { $0?.pack } == [2])
        try catalog.close()
    }

    @Test func `chunks whose pack is gone count in the quota once`() async throws {
        let test = try await TestCatalog(.sqlite, quota: 10)
        let file = TestFile("123456")
        #expect(try await test.commit([try file.create("a")], chunks: file.records).outcomes.first?.item != nil)

        let catalog = try restarted(test)
        let intake = try await catalog.intake(sizes(file), test.scope)
        #expect(intake.unknown == Set(file.records.map(\.chunk)))
        #expect(!intake.isQuotaExceeded)
        // What is new counts, beside it too.
        #expect(try await !catalog.intake(sizes(file, TestFile("1234")), test.scope).isQuotaExceeded)
        #expect(try await catalog.intake(sizes(file, TestFile("12345")), test.scope).isQuotaExceeded)
        try await catalog.addChunks(again(file), renewed: [], test.scope, now: time(1_000))
        #expect(try await catalog.accounts().map(\.used) == [6])
        #expect(try await catalog.intake(sizes(file), test.scope).unknown == [])
        try catalog.close()
    }
}
