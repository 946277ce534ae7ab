import CatalogModel
import CatalogStore
import Reconciliation
import TestSupport
import Testing
import UbiquityModel

@Suite struct FoldingTests {
    private func place(_ name: String, in parent: ItemID = .root) throws -> Place {
        Place(parent: parent, name: try Name(name))
    }

    private func outcome(_ test: TestCatalog, _ operation: ItemOperation) async throws -> OperationOutcome? {
        try await test.commit([operation]).outcomes.first
    }

    @Test(arguments: Backend.allCases)
    func `a case-insensitive container holds no two names that differ in case only`(backend: Backend) async throws {
        let test = try await TestCatalog(backend, isCaseInsensitive: true)
        let (docs, other) = (try folder("Docs"), try folder("other"))
        let strasse = try folder("Straße", in: docs.item)
        _ = try await test.commit([docs, other, strasse])
        #expect(try await outcome(test, try folder("DOCS")) == .nameTaken(by: docs.item))
        #expect(try await outcome(test, try folder("STRASSE", in: docs.item)) == .nameTaken(by: strasse.item))
        // Elsewhere it is free.
        #expect(try await outcome(test, try folder("STRASSE")) != .nameTaken(by: strasse.item))
        let move = ItemOperation(id: .random(), item: other.item, action: .move(to: try place("dOCS")))
        #expect(try await outcome(test, move) == .nameTaken(by: docs.item))
        #expect(
            try await test.listing().map(\.place.name.description).sorted() == ["Docs", "STRASSE", "Straße", "other"]
        )
    }

    @Test(arguments: Backend.allCases)
    func `an item may change the case of its own name, and leaves it free when it goes`(
        backend: Backend
    ) async throws {
        let test = try await TestCatalog(backend, isCaseInsensitive: true)
        let docs = try folder("Docs")
        _ = try await test.commit([docs])
        let move = ItemOperation(id: .random(), item: docs.item, action: .move(to: try place("DOCS")))
        #expect(try await outcome(test, move)?.item?.place == place("DOCS"))
        #expect(try await outcome(test, try folder("Docs")) == .nameTaken(by: docs.item))
        let delete = ItemOperation(id: .random(), item: docs.item, action: .delete(base: nil, conflicts: []))
        let successor = try folder("docs")
        let outcomes = try await test.commit([delete, successor]).outcomes
        #expect(outcomes.allSatisfy { $0.item != nil })
        // What comes back gets a name that is free without its case.
        let two = try folder("docs 2")
        _ = try await test.commit([two])
        let undelete = ItemOperation(id: .random(), item: docs.item, action: .undelete)
        #expect(try await outcome(test, undelete)?.item?.place == place("DOCS 3"))
    }

    @Test(arguments: Backend.allCases)
    func `in any other container case counts`(backend: Backend) async throws {
        let test = try await TestCatalog(backend)
        let outcomes = try await test.commit([try folder("Docs"), try folder("docs"), try folder("DOCS")]).outcomes
        #expect(outcomes.allSatisfy { $0.item != nil })
    }

    @Test func `a catalogue of the third version learns the names without their case`() async throws {
        let test = try await TestCatalog(.sqlite, isCaseInsensitive: true)
        let docs = try folder("Docs")
        _ = try await test.commit([docs])
        let path = try #require(test.path)
        let former =
            "DROP INDEX items_folded; ALTER TABLE items DROP COLUMN folded; ALTER TABLE revisions DROP COLUMN unwanted; PRAGMA user_version = 3"
        try succeed("sqlite3", path, former)
        let request = CommitRequest(
            entries: [.operation(try folder("docs"))],
            deviceClock: time(1),
            now: time(1)
        )
        let answer = try await SQLiteCatalog(path: path).commit(request, test.scope)
        #expect(answer.outcomes == [.nameTaken(by: docs.item)])
    }
}
