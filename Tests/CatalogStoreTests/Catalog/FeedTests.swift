import CatalogModel
import Testing
import UbiquityModel

@Suite struct FeedTests {
    @Test(arguments: Backend.allCases)
    func `a device that knows a position gets only what changed since, each item once`(backend: Backend) async throws {
        let test = try await TestCatalog(backend)
        let files = [TestFile("1"), TestFile("2"), TestFile("3")]
        let names = ["a", "b", "c"]
        let answer = try await test.commit(
            try zip(files, names).map { try $0.create($1) },
            chunks: files.flatMap(\.records)
        )
        _ = try await test.commit([files[0].operation(.move(to: Place(parent: .root, name: try Name("d"))))])
        _ = try await test.commit([files[0].operation(.move(to: Place(parent: .root, name: try Name("e"))))])
        let page = try await test.catalog.changes(test.scope, since: answer.position, limit: 10)
        #expect(page.entries.map(\.item.place.name) == [try Name("e")])
        #expect(try await test.catalog.changes(test.scope, since: page.position, limit: 10).entries.isEmpty)
        // A listing from the beginning comes in the order of the last changes.
        #expect(try await test.listing().map(\.place.name) == [try Name("b"), try Name("c"), try Name("e")])
    }

    @Test(arguments: Backend.allCases)
    func `pages end at any position, and each of these is known later`(backend: Backend) async throws {
        let test = try await TestCatalog(backend)
        _ = try await test.commit(try (0..<10).map { try folder("f\($0)") })
        let page = try await test.catalog.changes(test.scope, since: nil, limit: 4)
        #expect(page.hasMore)
        #expect(page.position.counter == 4)
        _ = try await test.commit([try folder("g")])
        let rest = try await test.catalog.changes(test.scope, since: page.position, limit: 100)
        #expect(!rest.isUnknownPosition)
        #expect(rest.entries.count == 7)
    }

    @Test(arguments: Backend.allCases)
    func `folders are told one after the other, by name, in pages of any length`(backend: Backend) async throws {
        let test = try await TestCatalog(backend)
        let (one, two) = (try folder("one"), try folder("two"))
        let files = (0..<5).map { TestFile("\($0)") }
        let announced = TestFile("5")
        let names = ["e", "c", "a", "d", "b"]
        _ = try await test.commit([one, two])
        _ = try await test.commit(
            try zip(files, names).map { try $0.create($1, in: one.item) } + [try folder("last", in: two.item)],
            chunks: files.flatMap(\.records)
        )
        let claim = ItemOperation.Action.announce(
            place: Place(parent: one.item, name: try Name("z")),
            content: FileContent(revision: .random(), content: nil, size: 9),
            attributes: ItemAttributes(modified: time(1), mode: 0o644)
        )
        _ = try await test.commit([announced.operation(claim)])
        _ = try await test.commit([files[0].operation(.delete(base: files[0].content.revision))])
        let folders = [one.item, two.item, ItemID.random()]
        for limit in 2...8 {
            var (rest, after, told): ([ItemID], Name?, [Name]) = (folders, nil, [])
            var requests = 0
            while !rest.isEmpty {
                requests += 1
                try #require(requests < 20)
                let page = try await test.catalog.children(of: rest, after: after, limit: limit, test.scope)
                told += page.entries.map(\.item.place.name)
                rest.removeFirst(page.completeCount)
                after = page.last
            }
            #expect(told == [try Name("z")] + (try ["a", "b", "c", "d", "last"].map { try Name($0) }), "\(limit)")
        }
    }

    /// A page must bring a device further, else it asks for the same for ever.
    @Test(arguments: Backend.allCases)
    func `a folder with more announced items than a page takes is told to its end`(backend: Backend) async throws {
        let test = try await TestCatalog(backend)
        let names = try ["a", "b", "c"].map { try Name($0) }
        let announced = try (0..<5).map { number in
            let claim = ItemOperation.Action.announce(
                place: Place(parent: .root, name: try Name("z\(number)")),
                content: FileContent(revision: .random(), content: nil, size: 9),
                attributes: ItemAttributes(modified: time(1), mode: 0o644)
            )
            return ItemOperation(id: .random(), item: .random(), action: claim)
        }
        _ = try await test.commit(try ["a", "b", "c"].map { try folder($0) } + announced)
        for limit in 1...6 {
            var (told, after, isWhole) = ([RemoteItem](), Name?.none, false)
            for _ in 0..<10 where !isWhole {
                let page = try await test.catalog.children(of: [.root], after: after, limit: limit, test.scope)
                told += page.entries.map(\.item)
                isWhole = page.completeCount == 1
                after = page.last
            }
            #expect(isWhole, "\(limit)")
            #expect(told.filter { !$0.isAnnounced }.map(\.place.name) == names, "\(limit)")
            #expect(told.filter(\.isAnnounced).map(\.id) == announced.map(\.item), "\(limit)")
        }
    }

    @Test(arguments: Backend.allCases)
    func `positions of another history are not known`(backend: Backend) async throws {
        let test = try await TestCatalog(backend)
        let answer = try await test.commit([try folder("f")])
        var foreign = answer.position
        foreign.hash[0] ^= 1
        let unknown = [
            foreign, LogPosition(counter: 99, hash: answer.position.hash), LogPosition(counter: 1, hash: []),
            LogPosition(counter: 0, hash: answer.position.hash), LogPosition(counter: .max, hash: answer.position.hash),
        ]
        for position in unknown {
            let page = try await test.catalog.changes(test.scope, since: position, limit: 10)
            #expect(page.isUnknownPosition, "\(position)")
            #expect(page.entries.isEmpty)
        }
    }

    @Test(arguments: Backend.allCases)
    func `two catalogues give the same counter different hashes`(backend: Backend) async throws {
        let one = try await TestCatalog(backend)
        let two = try await TestCatalog(backend)
        let first = try await one.commit([try folder("f")]).position
        let second = try await two.commit([try folder("f")]).position
        #expect(first.counter == second.counter)
        #expect(first.hash != second.hash)
    }

    @Test(arguments: Backend.allCases)
    func `announced items are listed and are whole later`(backend: Backend) async throws {
        let test = try await TestCatalog(backend)
        let file = TestFile("big")
        let create = try file.create("a")
        guard case .create(let place, .file(let content), let attributes, _, _) = create.action else { return }
        _ = try await test.commit([file.operation(.announce(place: place, content: content, attributes: attributes))])
        #expect(try await test.listing().map(\.isAnnounced) == [true])
        #expect(try await test.catalog.wholeness([(file.item, file.revision)], test.scope).map(\.isKnown) == [false])
        _ = try await test.commit([create], chunks: file.records)
        #expect(try await test.listing().map(\.isAnnounced) == [false])
        let whole = try await test.catalog.wholeness(
            [(file.item, file.revision), (.random(), file.revision)],
            test.scope
        )
        #expect(whole.map(\.isKnown) == [true, false])
        #expect(whole.map(\.packs) == [[1: 116], [:]])
    }
}
