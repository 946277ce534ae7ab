import CatalogModel
import Reconciliation
import Testing
import UbiquityModel

@Suite struct CommitTests {
    @Test(arguments: Backend.allCases)
    func `what was committed is listed with everything that belongs to it`(backend: Backend) async throws {
        let test = try await TestCatalog(backend)
        let file = TestFile("hello ", "world")
        let answer = try await test.commit([try file.create("a")], chunks: file.records)
        let item = try #require(answer.outcomes.first?.item)
        #expect(item.author == "laptop")
        #expect(item.attributes.extended == [Array("user.a".utf8): [1, 2, 3]])
        #expect(item.attributes.mode == 0o640)
        #expect(item.content == file.content)
        #expect(item.position == 1)
        let page = try await test.catalog.changes(test.scope, since: nil, limit: 10)
        #expect(page.entries.map(\.item) == [item])
        #expect(page.entries.map(\.manifest) == [file.manifest])
        #expect(page.position == answer.position)
        #expect(page.head == answer.position)
    }

    @Test(arguments: Backend.allCases)
    func `a repeated batch changes nothing and gets the same answer`(backend: Backend) async throws {
        let test = try await TestCatalog(backend)
        let file = TestFile("x")
        let operations = [try file.create("a"), file.operation(.move(to: Place(parent: .root, name: try Name("b"))))]
        let first = try await test.commit(operations, chunks: file.records)
        let second = try await test.commit(operations, chunks: file.records)
        #expect(second.position == first.position)
        #expect(!second.isChanged)
        #expect(second.outcomes.last == first.outcomes.last)
    }

    @Test(arguments: Backend.allCases)
    func `chunks that are not in the cloud are named once each`(backend: Backend) async throws {
        let test = try await TestCatalog(backend)
        let file = TestFile("x", "y", "x")
        let create = try file.create("a")
        let answer = try await test.commit([create], chunks: [file.records[1]])
        #expect(answer.outcomes == [.missingChunks([try #require(chunk("x"))])])
        #expect(answer.position.counter == 0)
        // The same operation goes through when they are there.
        #expect(try await test.commit([create], chunks: file.records).outcomes.first?.item != nil)
    }

    @Test(arguments: Backend.allCases)
    func `operations of a batch build on each other, and those after a failed one are skipped`(
        backend: Backend
    ) async throws {
        let test = try await TestCatalog(backend)
        let outer = try folder("outer")
        let inner = try folder("inner", in: outer.item)
        let file = TestFile("x")
        let taken = try folder("outer")
        let orphan = try folder("orphan", in: taken.item)
        let operations = [outer, inner, try file.create("a", in: inner.item), taken, orphan]
        let outcomes = try await test.commit(operations, chunks: file.records).outcomes
        #expect(outcomes.prefix(3).allSatisfy { $0.item != nil })
        #expect(outcomes[3] == .nameTaken(by: outer.item))
        #expect(outcomes[4] == .skipped)
        #expect(try await test.listing().count == 3)
    }

    @Test(arguments: Backend.allCases)
    func `a refused entry takes its dependents with it`(backend: Backend) async throws {
        let test = try await TestCatalog(backend)
        let parent = ItemID.random()
        let request = CommitRequest(
            entries: [.refused(item: parent, reason: "a name with a slash"), .operation(try folder("x", in: parent))],
            deviceClock: time(1),
            now: time(1)
        )
        let outcomes = try await test.catalog.commit(request, test.scope).outcomes
        #expect(outcomes == [.invalid("a name with a slash"), .skipped])
    }

    @Test(arguments: Backend.allCases)
    func `the loser of a conflict is kept with its manifest`(backend: Backend) async throws {
        let test = try await TestCatalog(backend)
        let phone = Scope(token: TokenHash(token: [2]), container: TestCatalog.container)
        _ = try await test.catalog.join("anna", token: [2], name: "phone")
        let file = TestFile("one")
        let anna = TestFile("anna's")
        let bert = TestFile("bert's")
        _ = try await test.commit([try file.create("a")], chunks: file.records)
        _ = try await test.commit([anna.edit(file.item, base: file.revision, edited: 300)], chunks: anna.records)
        let answer = try await test.commit(
            [bert.edit(file.item, base: file.revision, edited: 200)],
            chunks: bert.records,
            scope: phone
        )
        let item = try #require(answer.outcomes.first?.item)
        #expect(item.content == anna.content)
        #expect(item.conflicts.map(\.revision) == [bert.revision])
        #expect(item.conflicts.first?.device == "phone")
        #expect(try await test.listing().first?.conflicts == item.conflicts)

        let versions = try await test.catalog.versions(file.item, test.scope)
        #expect(versions.map(\.kind) == [.current, .conflict, .saved])
        #expect(versions.map(\.revision) == [anna.revision, bert.revision, file.revision])
        let manifests = try await test.catalog.manifests(versions.map(\.content), limit: 1_000, test.scope)
        #expect(manifests == [anna.manifest, bert.manifest, file.manifest])
    }

    @Test(arguments: Backend.allCases)
    func `what makes an answer too long is skipped, and done when asked for again`(backend: Backend) async throws {
        let test = try await TestCatalog(backend)
        let file = TestFile("one")
        let winner = TestFile("winner")
        _ = try await test.commit([try file.create("a")], chunks: file.records)
        _ = try await test.commit([winner.edit(file.item, base: file.revision, edited: 900)], chunks: winner.records)
        for hundred in 0..<10 {
            let losers = (0..<100).map { TestFile("loser \(hundred) \($0)") }
            let edits = losers.map { $0.edit(file.item, base: file.revision, edited: 20) }
            let answer = try await test.commit(edits, chunks: losers.flatMap(\.records))
            #expect(answer.outcomes.allSatisfy { $0.item != nil })
        }
        var operations = (0..<200).map {
            file.operation(.setAttributes(modified: time(Int64($0)), mode: nil, extended: nil))
        }
        var requests = 0
        while !operations.isEmpty, requests < 10 {
            let outcomes = try await test.commit(operations).outcomes
            let done = outcomes.prefix { $0.item != nil }.count
            #expect(outcomes.dropFirst(done).allSatisfy { $0 == .skipped })
            operations.removeFirst(done)
            requests += 1
        }
        #expect(operations.isEmpty && requests == 2)
        #expect(try await test.listing().first?.attributes.modified == time(199))
    }

    @Test(arguments: Backend.allCases)
    func `edit against delete, delete against edit`(backend: Backend) async throws {
        let test = try await TestCatalog(backend)
        let file = TestFile("one")
        let two = TestFile("two")
        _ = try await test.commit([try file.create("a")], chunks: file.records)
        _ = try await test.commit([two.edit(file.item, base: file.revision, edited: 20)], chunks: two.records)
        let stale = try await test.commit([file.operation(.delete(base: file.revision))])
        guard case .superseded(let survivor)? = stale.outcomes.first else {
            Issue.record("the newer revision was deleted: \(stale.outcomes)")
            return
        }
        #expect(survivor.content == two.content)
        let gone = try await test.commit([file.operation(.delete(base: two.revision))], now: 2_000)
        #expect(gone.outcomes.first?.item?.isDeleted == true)
        #expect(try await test.listing().map(\.isDeleted) == [true])
        let deleted = try await test.catalog.deleted(test.scope, since: time(0), after: nil, limit: 10).items
        #expect(deleted.map(\.path) == ["a"])
        #expect(deleted.first?.deleted == time(2_000))
        #expect(deleted.first?.device == "laptop")
        let three = TestFile("three")
        let back = try await test.commit(
            [three.edit(file.item, base: file.revision, edited: 30)],
            chunks: three.records
        )
        #expect(back.outcomes.first?.item?.isDeleted == false)
        #expect(try await test.catalog.deleted(test.scope, since: time(0), after: nil, limit: 10).items.isEmpty)
    }

    private func move(_ item: ItemID, _ name: Name, in parent: ItemID = .root) -> ItemOperation {
        ItemOperation(id: .random(), item: item, action: .move(to: Place(parent: parent, name: name)))
    }

    @Test(arguments: Backend.allCases)
    func `names are swapped in one commit, and nobody is told of the one between`(backend: Backend) async throws {
        let test = try await TestCatalog(backend)
        let (one, other) = (try folder("a"), try folder("b"))
        let before = try await test.commit([one, other]).position
        let between = try #require(TransitionalName.of(one.item))
        let swap = [move(one.item, between), move(other.item, try Name("a")), move(one.item, try Name("b"))]
        let outcomes = try await test.commit(swap).outcomes
        #expect(outcomes.map(\.item?.place.name) == [between, try Name("a"), try Name("b")])
        let told = try await test.catalog.changes(test.scope, since: before, limit: 10).entries
        #expect(told.map(\.item.id) == [other.item, one.item])
        #expect(told.map(\.item.place.name) == [try Name("a"), try Name("b")])
        // The answer was lost.
        #expect(!(try await test.commit(swap).isChanged))
    }

    @Test(arguments: Backend.allCases)
    func `who has stepped aside and does not get the name that follows is back where it was`(
        backend: Backend
    ) async throws {
        let test = try await TestCatalog(backend)
        let (one, other, third) = (try folder("a"), try folder("b"), try folder("c"))
        let inner = try folder("x", in: one.item)
        _ = try await test.commit([one, other, third, inner])
        let between = try #require(TransitionalName.of(one.item))
        func name(of item: ItemID) async throws -> String? {
            try await test.listing().first { $0.id == item }?.place.name.description
        }
        let taken = try await test.commit([move(one.item, between), move(one.item, try Name("b"))])
        #expect(taken.outcomes.last == .nameTaken(by: other.item))
        #expect(try await name(of: one.item) == "a")
        let circle = try await test.commit([move(one.item, between), move(one.item, try Name("y"), in: inner.item)])
        #expect(circle.outcomes.last == .cycle)
        #expect(try await name(of: one.item) == "a")
        // Another has got its name by then.
        let late = try await test.commit([
            move(one.item, between), move(third.item, try Name("a")), move(one.item, try Name("b")),
        ])
        #expect(late.outcomes.last == .nameTaken(by: other.item))
        #expect(try await name(of: one.item) == "a 2")
        #expect(try await name(of: third.item) == "a")
        // One that says nothing of another name stays: it may follow later.
        _ = try await test.commit([move(one.item, between)])
        #expect(try await name(of: one.item) == between.description)
    }

    @Test(arguments: Backend.allCases)
    func `structure: taken names, missing folders, cycles, folders that are not empty`(backend: Backend) async throws {
        let test = try await TestCatalog(backend)
        let outer = try folder("outer")
        let inner = try folder("inner", in: outer.item)
        _ = try await test.commit([outer, inner])
        func move(_ item: ItemID, to parent: ItemID, _ name: String) throws -> ItemOperation {
            ItemOperation(id: .random(), item: item, action: .move(to: Place(parent: parent, name: try Name(name))))
        }
        func outcome(_ operation: ItemOperation) async throws -> OperationOutcome? {
            try await test.commit([operation]).outcomes.first
        }
        #expect(try await outcome(try move(outer.item, to: inner.item, "x")) == .cycle)
        #expect(try await outcome(try move(inner.item, to: .root, "outer")) == .nameTaken(by: outer.item))
        #expect(try await outcome(try move(inner.item, to: .random(), "x")) == .parentMissing)
        let delete = ItemOperation(id: .random(), item: outer.item, action: .delete(base: nil))
        #expect(try await outcome(delete) == .notEmpty)
        #expect(try await outcome(try move(inner.item, to: .root, "x"))?.item?.place.parent == .root)
        #expect(try await outcome(delete)?.item?.isDeleted == true)
        let revive = ItemOperation.Action.revive(
            place: Place(parent: inner.item, name: try Name("outer")),
            attributes: ItemAttributes(modified: time(3), mode: 0o700)
        )
        #expect(
            try await outcome(ItemOperation(id: .random(), item: outer.item, action: revive))?.item?.isDeleted == false
        )
    }

    @Test(arguments: Backend.allCases)
    func `a folder that goes and comes back within a commit takes nothing in between`(
        backend: Backend
    ) async throws {
        let test = try await TestCatalog(backend)
        let outer = try folder("outer")
        let (inner, early, late) = (
            try folder("inner", in: outer.item), try folder("early", in: outer.item), try folder("late", in: outer.item)
        )
        func operation(_ action: ItemOperation.Action) -> ItemOperation {
            ItemOperation(id: .random(), item: outer.item, action: action)
        }
        let outcomes = try await test.commit([
            outer, inner, move(inner.item, try Name("inner")), operation(.delete(base: nil)), early,
            operation(.undelete), late,
        ]).outcomes
        #expect(outcomes.map { $0.item != nil } == [true, true, true, true, false, true, true])
        #expect(outcomes[4] == .parentMissing)
        #expect(try await test.listing().map(\.id) == [inner.item, outer.item, late.item])
        #expect(try await test.catalog.deleted(test.scope, since: time(0), after: nil, limit: 9).items.isEmpty)
    }

    @Test(arguments: Backend.allCases)
    func `changes of an item within a commit build on each other, and are all listed`(
        backend: Backend
    ) async throws {
        let test = try await TestCatalog(backend)
        let (outer, link) = (try folder("outer"), TestFile("x"))
        let inner = try folder("inner", in: outer.item)
        func set(_ item: ItemID, mode: UInt16? = nil, modified: Int64? = nil) -> ItemOperation {
            let modified = modified.map { time($0) }
            return ItemOperation(
                id: .random(),
                item: item,
                action: .setAttributes(modified: modified, mode: mode, extended: nil)
            )
        }
        let edit = ItemOperation.Action.edit(
            base: link.revision,
            content: .symlink(target: Array("elsewhere".utf8)),
            attributes: ItemAttributes(modified: time(7), mode: 0o777),
            manifest: Manifest(),
            edited: time(20)
        )
        let outcomes = try await test.commit(
            [
                outer, inner, set(outer.item, mode: 0o700), set(outer.item, modified: 9),
                move(outer.item, try Name("moved")), try link.create("a", in: outer.item), link.operation(edit),
            ],
            chunks: link.records
        ).outcomes
        let listed = try await test.listing()
        #expect(listed.map(\.id) == [inner.item, outer.item, link.item])
        #expect(listed.map { Optional($0) } == [outcomes[1].item, outcomes[4].item, outcomes[6].item])
        let moved = try #require(listed.first { $0.id == outer.item })
        #expect(moved.place == Place(parent: .root, name: try Name("moved")))
        #expect(moved.attributes.mode == 0o700 && moved.attributes.modified == time(9))
    }

    @Test(arguments: Backend.allCases)
    func `chunks that come along have their own length, and count once`(backend: Backend) async throws {
        let test = try await TestCatalog(backend, quota: 10)
        let file = TestFile("hello")
        let id = try #require(chunk("hello"))
        let manifest = Manifest(entries: [.init(chunk: id, length: 6)])
        let content = FileContent(
            revision: .random(),
            content: ContentID(bytes: [UInt8](repeating: 3, count: 32)),
            size: manifest.size
        )
        let claim = ItemOperation.Action.create(
            place: Place(parent: .root, name: try Name("b")),
            content: .file(content),
            attributes: ItemAttributes(modified: time(5), mode: 0o640),
            manifest: manifest,
            edited: time(5)
        )
        let operations = [ItemOperation(id: .random(), item: .random(), action: claim), try file.create("a")]
        let outcomes = try await test.commit(operations, chunks: file.records + file.records).outcomes
        guard case .invalid? = outcomes.first else {
            Issue.record("a length that is not the chunk's: \(outcomes)")
            return
        }
        #expect(outcomes.last?.item?.content == file.content)
        #expect(try await test.catalog.accounts().map(\.used) == [5])
    }

    @Test(arguments: Backend.allCases)
    func `versions: resolve, restore, undelete`(backend: Backend) async throws {
        let test = try await TestCatalog(backend)
        let file = TestFile("one")
        let winner = TestFile("winner")
        let loser = TestFile("loser")
        _ = try await test.commit([try file.create("a")], chunks: file.records)
        _ = try await test.commit([winner.edit(file.item, base: file.revision, edited: 300)], chunks: winner.records)
        _ = try await test.commit([loser.edit(file.item, base: file.revision, edited: 200)], chunks: loser.records)
        let resolve = file.operation(.resolve(versions: [loser.revision], winner: loser.revision, base: nil))
        let resolved = try #require(try await test.commit([resolve]).outcomes.first?.item)
        #expect(resolved.conflicts.isEmpty)
        #expect(resolved.content == loser.content)
        let new = RevisionID.random()
        let restore = file.operation(.restore(version: file.revision, as: new, base: nil, edited: time(400)))
        let restored = try #require(try await test.commit([restore]).outcomes.first?.item)
        #expect(restored.content.size == 3)
        _ = try await test.commit([file.operation(.delete(base: new))])
        #expect(try await test.commit([file.operation(.undelete)]).outcomes.first?.item?.place == restored.place)
        let kinds = try await test.catalog.versions(file.item, test.scope).map(\.kind)
        #expect(kinds == [.current, .saved, .saved, .saved])
    }

    @Test(arguments: Backend.allCases)
    func `commits at the same time all go through, in one order`(backend: Backend) async throws {
        let test = try await TestCatalog(backend)
        let catalog = test.catalog
        let scope = test.scope
        let positions = try await withThrowingTaskGroup(of: UInt64.self) { group in
            for number in 0..<100 {
                group.addTask {
                    let request = CommitRequest(
                        entries: [.operation(try folder("f\(number)"))],
                        deviceClock: time(1),
                        now: time(1)
                    )
                    return try await catalog.commit(request, scope).outcomes.first?.item?.position ?? 0
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(positions.sorted() == Array(1...100))
        #expect(try await test.listing().count == 100)
    }

    @Test(arguments: Backend.allCases)
    func `ten thousand files in batches take a few seconds at most`(backend: Backend) async throws {
        let test = try await TestCatalog(backend)
        let start = ContinuousClock.now
        for batch in 0..<20 {
            let files = (0..<500).map { TestFile("content \(batch) \($0)") }
            let operations = try files.enumerated().map { try $1.create("file \(batch) \($0)") }
            let answer = try await test.commit(operations, chunks: files.flatMap(\.records))
            #expect(answer.outcomes.allSatisfy { $0.item != nil })
        }
        // A loose bound: debug builds on busy machines are many times slower than what is delivered.
        #expect(ContinuousClock.now - start < .seconds(60))
        #expect(try await test.catalog.changes(test.scope, since: nil, limit: 1).head.counter == 10_000)
    }

    @Test(arguments: Backend.allCases)
    func `chunks have the length that they were stored with, whoever names them`(backend: Backend) async throws {
        let test = try await TestCatalog(backend)
        let file = TestFile("hello")
        _ = try await test.commit([try file.create("a")], chunks: file.records)
        let id = try #require(chunk("hello"))
        func claim(_ content: ContentID?, _ lengths: UInt32...) throws -> ItemOperation {
            let manifest = Manifest(entries: lengths.map { .init(chunk: id, length: $0) })
            let create = ItemOperation.Action.create(
                place: Place(parent: .root, name: try Name("b")),
                content: .file(FileContent(revision: .random(), content: content, size: manifest.size)),
                attributes: ItemAttributes(modified: time(5), mode: 0o640),
                manifest: manifest,
                edited: time(5)
            )
            return ItemOperation(id: .random(), item: .random(), action: create)
        }
        guard case .file(let known) = file.content else { return }
        let other = ContentID(bytes: [UInt8](repeating: 3, count: 32))
        for operation in [try claim(other, 6), try claim(other, 5, 6), try claim(known.content, 6)] {
            guard case .invalid? = try await test.commit([operation]).outcomes.first else {
                Issue.record("a length that is not the chunk's: \(operation)")
                return
            }
        }
        #expect(try await test.commit([try claim(other, 5, 5)]).outcomes.first?.item?.content.size == 10)
    }

    @Test(arguments: Backend.allCases)
    func `manifests are measured before they are read`(backend: Backend) async throws {
        let test = try await TestCatalog(backend)
        let files = [TestFile("one", "two"), TestFile("three")]
        for (file, name) in zip(files, ["a", "b"]) {
            _ = try await test.commit([try file.create(name)], chunks: file.records)
        }
        let contents = files.compactMap { file -> ContentID? in
            if case .file(let content) = file.content { content.content } else { nil }
        }
        #expect(try await test.catalog.manifests(contents, limit: 108, test.scope) == files.map(\.manifest))
        let (catalog, scope) = (test.catalog, test.scope)
        await #expect(throws: CatalogError.tooMuch(bytes: 108, limit: 107)) {
            try await catalog.manifests(contents, limit: 107, scope)
        }
    }

    @Test(arguments: Backend.allCases)
    func `deleted items are listed in pages, with paths that stay short`(backend: Backend) async throws {
        let test = try await TestCatalog(backend)
        var parent = ItemID.root
        var folders = [ItemOperation]()
        for number in 0..<30 {
            let made = try folder("\(number) " + String(repeating: "x", count: 250), in: parent)
            folders.append(made)
            parent = made.item
        }
        _ = try await test.commit(folders)
        for made in folders.reversed() {
            _ = try await test.commit(
                [ItemOperation(id: .random(), item: made.item, action: .delete(base: nil))],
                now: 2_000
            )
        }
        var listed = [DeletedItem]()
        var after: DeletedPosition?
        while true {
            let page = try await test.catalog.deleted(test.scope, since: time(1), after: after, limit: 7)
            #expect(page.items.count == 7 || !page.hasMore)
            listed += page.items
            guard page.hasMore, let last = listed.last else { break }
            after = DeletedPosition(deleted: last.deleted, position: last.item.position)
        }
        #expect(listed.map(\.item.id) == folders.map(\.item))
        #expect(listed.allSatisfy { $0.path.utf8.count <= 4096 })
        #expect(listed.first?.path.hasPrefix("0 xx") == true)
        #expect(listed.last?.path.contains("…/") == true)
    }
}
