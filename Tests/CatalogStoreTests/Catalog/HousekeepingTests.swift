import CatalogModel
import CatalogStore
import Reconciliation
import TestSupport
import Testing
import UbiquityModel

/// What is kept no longer, and what is for all that.
@Suite struct HousekeepingTests {
    private static let day: Int64 = 86_400
    private static let upload = ChunkCollection.uploadLifetime.components.seconds
    private static let all = RetentionRules(
        everything: .zero,
        steps: [],
        resolved: .zero,
        unwanted: .zero,
        deleted: .zero
    )

    /// A file that was written twice: its first content is a saved version.
    private func edited(_ test: TestCatalog) async throws -> (first: TestFile, second: TestFile) {
        let first = TestFile("x", "both")
        let second = TestFile("y", "both")
        _ = try await test.commit([try first.create("a")], chunks: first.records)
        let edit = second.edit(first.item, base: first.revision, edited: 20)
        #expect(try await test.commit([edit], chunks: second.records).outcomes.first?.item != nil)
        return (first, second)
    }

    private func discardAll(_ test: TestCatalog, now: Int64) async throws -> Int {
        let saved = try await test.catalog.discardVersions(Self.all, after: nil, now: time(now))
        let deleted = try await test.catalog.discardDeleted(in: time(0)..<time(now), after: nil, now: time(now))
        #expect(saved.next == nil && deleted.next == nil)
        return saved.discarded + deleted.discarded
    }

    private func collect(_ test: TestCatalog, now: Int64) async throws -> Int {
        var (count, position) = (0, ChunkPosition?.none)
        repeat {
            let page = try await test.catalog.collectChunks(after: position, now: time(now))
            count += page.discarded
            position = page.next
        } while position != nil
        return count
    }

    private func missing(_ parts: String..., now: Int64, in test: TestCatalog) async throws -> [Int] {
        let ids = try parts.map { try #require(chunk($0)) }
        return try await test.catalog.missing(ids, test.scope, now: time(now))
    }

    @Test(arguments: Backend.allCases)
    func `what its author did not want to be kept is listed by nobody, and goes after an hour`(
        backend: Backend
    ) async throws {
        let test = try await TestCatalog(backend)
        let (first, second) = try await edited(test)
        let (third, fourth) = (TestFile("z"), TestFile("w"))
        let unwanted = third.edit(first.item, base: second.revision, edited: 30)
        _ = try await test.commit([unwanted], chunks: third.records, discardsFormer: true)
        // What the next one replaces is wanted.
        let edit = fourth.edit(first.item, base: third.revision, edited: 40)
        let answer = try await test.commit([edit], chunks: fourth.records)
        #expect(answer.outcomes.first?.item?.conflicts == [])
        func listed() async throws -> [RevisionID] {
            try await test.catalog.versions(first.item, test.scope).map(\.revision)
        }
        #expect(try await listed() == [fourth.revision, third.revision, first.revision])
        func discard(_ now: Int64) async throws -> Int {
            try await test.catalog.discardVersions(.standard, after: nil, now: time(now)).discarded
        }
        #expect(try await discard(1_000 + 3_600) == 0)
        #expect(try await discard(1_000 + 3_601) == 1)
        #expect(try await listed() == [fourth.revision, third.revision, first.revision])
        let wholeness = try await test.catalog.wholeness([(first.item, second.revision)], test.scope)
        #expect(wholeness.map(\.isKnown) == [false])
    }

    @Test(arguments: Backend.allCases)
    func `a loser is a conflict, whatever its winner wanted`(backend: Backend) async throws {
        let test = try await TestCatalog(backend)
        let (first, second) = try await edited(test)
        let other = TestFile("other")
        let edit = other.edit(first.item, base: first.revision, edited: 30)
        let answer = try await test.commit([edit], chunks: other.records, discardsFormer: true)
        #expect(answer.outcomes.first?.item?.conflicts.map(\.revision) == [second.revision])
        #expect(try await discardAll(test, now: 1_000_000) == 1)
        let kinds = try await test.catalog.versions(first.item, test.scope).map(\.kind)
        #expect(kinds == [.current, .conflict])
    }

    @Test(arguments: Backend.allCases, [true, false])
    func `what was deleted is kept for whoever brings it back without having seen it`(
        backend: Backend,
        isSeen: Bool
    ) async throws {
        let test = try await TestCatalog(backend)
        let (first, second) = try await edited(test)
        let delete = first.operation(.delete(base: second.revision, conflicts: []))
        #expect(try await test.commit([delete]).outcomes.first?.item?.isDeleted == true)
        let other = TestFile("other")
        let edit = other.edit(first.item, base: isSeen ? second.revision : first.revision, edited: 30)
        let answer = try await test.commit([edit], chunks: other.records, discardsFormer: true)
        #expect(answer.outcomes.first?.item?.isDeleted == false)
        let versions = try await test.catalog.versions(first.item, test.scope).map(\.revision)
        #expect(versions.contains(second.revision) != isSeen)
    }

    @Test(arguments: Backend.allCases)
    func `a discarded version is listed no more, and its chunks go a day later`(backend: Backend) async throws {
        let test = try await TestCatalog(backend)
        let (first, second) = try await edited(test)
        #expect(try await test.catalog.accounts().map(\.used) == [6])
        #expect(try await discardAll(test, now: 2_000) == 1)
        let versions = try await test.catalog.versions(first.item, test.scope)
        #expect(versions.map(\.revision) == [second.revision])
        // Who asks now is told to send it.
        #expect(try await collect(test, now: 2_001) == 0)
        #expect(try await missing("x", "y", "both", now: 2_001, in: test) == [0])
        #expect(try await collect(test, now: 2_000 + Self.day - 1) == 0)
        #expect(try await collect(test, now: 2_000 + Self.day) == 1)
        #expect(try await test.catalog.accounts().map(\.used) == [5])
        let wholeness = try await test.catalog.wholeness(
            [(first.item, first.revision), (first.item, second.revision)],
            test.scope
        )
        #expect(wholeness.map(\.isKnown) == [false, true])
        // It is an ancestor still: an edit that was made of it is no older than it was.
        let late = TestFile("late")
        let outcome = try await test.commit(
            [late.edit(first.item, base: first.revision, edited: 15)],
            chunks: late.records
        )
        #expect(outcome.outcomes.first?.item?.conflicts.map(\.revision) == [late.revision])
    }

    @Test(arguments: Backend.allCases)
    func `a content that comes back before its chunks went is whole again`(backend: Backend) async throws {
        let test = try await TestCatalog(backend)
        let (first, _) = try await edited(test)
        _ = try await discardAll(test, now: 2_000)
        // It was told so before, and names it without sending it.
        let copy = TestFile("x", "both")
        #expect(try await test.commit([try copy.create("b")], now: 2_000 + Self.day).outcomes.first?.item != nil)
        #expect(try await collect(test, now: 2_000 + 3 * Self.day) == 0)
        #expect(try await missing("x", "y", "both", now: 2_000 + 3 * Self.day, in: test) == [])
        let wholeness = try await test.catalog.wholeness([(copy.item, copy.revision)], test.scope)
        #expect(wholeness.map(\.isKnown) == [true])
        #expect(try await test.catalog.versions(first.item, test.scope).count == 1)
    }

    @Test(arguments: Backend.allCases)
    func `a chunk that is sent again is renewed`(backend: Backend) async throws {
        let test = try await TestCatalog(backend)
        let (first, _) = try await edited(test)
        _ = try await discardAll(test, now: 2_000)
        let sizes = first.records.map { ChunkSize(chunk: $0.chunk, length: $0.length) }
        let intake = try await test.catalog.intake(sizes, test.scope)
        #expect(intake.unknown == [])
        #expect(intake.waning == Set(first.records.map(\.chunk)))
        let again = 2_000 + Self.day - 10
        try await test.catalog.addChunks([], renewed: Array(intake.waning), test.scope, now: time(again))
        #expect(try await collect(test, now: 2_000 + Self.day) == 0)
        #expect(try await missing("x", now: again + Self.upload - 1, in: test) == [])
        #expect(try await missing("x", now: again + Self.upload, in: test) == [0])
        #expect(try await collect(test, now: again + Self.upload + Self.day) == 1)
    }

    @Test(arguments: Backend.allCases)
    func `what was sent and never committed is offered for a month, and goes a day after`(backend: Backend) async throws
    {
        let test = try await TestCatalog(backend)
        let orphan = TestFile("orphan")
        try await test.catalog.addChunks(orphan.records, renewed: [], test.scope, now: time(10))
        // Along with what is refused.
        let refused = TestFile("refused")
        let nowhere = try refused.create("a", in: .random())
        #expect(try await test.commit([nowhere], chunks: refused.records, now: 10).outcomes == [.parentMissing])
        #expect(try await collect(test, now: 9 + Self.upload + Self.day) == 0)
        #expect(try await missing("orphan", "refused", now: 9 + Self.upload, in: test) == [])
        #expect(try await missing("orphan", "refused", now: 10 + Self.upload, in: test) == [0, 1])
        #expect(try await collect(test, now: 10 + Self.upload + Self.day) == 2)
        #expect(try await test.commit([try refused.create("a")]).outcomes.first?.item == nil)
    }

    @Test(arguments: Backend.allCases)
    func `what was deleted goes with its versions, unless it came back`(backend: Backend) async throws {
        let test = try await TestCatalog(backend)
        let files = [TestFile("x"), TestFile("y")]
        for (index, file) in files.enumerated() {
            _ = try await test.commit([try file.create("\(index)")], chunks: file.records)
            let delete = file.operation(.delete(base: file.revision))
            #expect(try await test.commit([delete], now: 1_010).outcomes.first?.item?.isDeleted == true)
        }
        let early = try await test.catalog.discardDeleted(in: time(0)..<time(1_010), after: nil, now: time(5_000))
        #expect(early.discarded == 0)
        #expect(try await test.commit([files[0].operation(.undelete)]).outcomes.first?.item?.isDeleted == false)
        #expect(try await discardAll(test, now: 5_000) == 1)
        guard case .invalid? = try await test.commit([files[1].operation(.undelete)]).outcomes.first else {
            Issue.record("it came back without a content")
            return
        }
        #expect(try await collect(test, now: 5_000 + Self.day) == 1)
        let wholeness = try await test.catalog.wholeness(files.map { ($0.item, $0.revision) }, test.scope)
        #expect(wholeness.map(\.isKnown) == [true, false])
        // An edit of who had it still brings it back, as ever.
        let edit = TestFile("z").edit(files[1].item, base: files[1].revision, edited: 6_000)
        let chunks = TestFile("z").records
        #expect(try await test.commit([edit], chunks: chunks, now: 6_000).outcomes.first?.item?.isDeleted == false)
    }

    @Test(arguments: Backend.allCases)
    func `a discarded version cannot be brought back, and a conflict is none`(backend: Backend) async throws {
        let test = try await TestCatalog(backend)
        let (first, second) = try await edited(test)
        let other = TestFile("other")
        let conflicting = other.edit(first.item, base: first.revision, edited: 15)
        _ = try await test.commit([conflicting], chunks: other.records)
        #expect(try await discardAll(test, now: 2_000) == 1)
        let versions = try await test.catalog.versions(first.item, test.scope)
        #expect(versions.map(\.revision) == [second.revision, other.revision])
        let restore = first.operation(
            .restore(version: first.revision, as: .random(), base: second.revision, edited: time(30))
        )
        let resolve = first.operation(.resolve(versions: [], winner: first.revision, base: second.revision))
        for outcome in try await test.commit([restore, resolve]).outcomes.prefix(1) {
            guard case .invalid = outcome else {
                Issue.record("\(outcome)")
                continue
            }
        }
        guard case .invalid? = try await test.commit([resolve]).outcomes.first else {
            Issue.record("it won")
            return
        }
        // Resolved, it goes after a while of its own.
        let settle = first.operation(.resolve(versions: [other.revision], winner: nil, base: second.revision))
        #expect(try await test.commit([settle], now: 3_000).outcomes.first?.item?.conflicts == [])
        var rules = RetentionRules.standard
        rules.resolved = .seconds(100)
        for (now, discarded) in [(Int64(3_100), 0), (3_101, 1)] {
            let page = try await test.catalog.discardVersions(rules, after: nil, now: time(now))
            #expect(page.discarded == discarded)
        }
    }

    @Test(arguments: Backend.allCases)
    func `many items are looked at in steps`(backend: Backend) async throws {
        let test = try await TestCatalog(backend)
        let count = HousekeepingSizes.items + 50
        for number in 0..<count {
            let file = TestFile("x\(number)")
            let edit = TestFile("y\(number)")
            let operations = [try file.create("\(number)"), edit.edit(file.item, base: file.revision, edited: 20)]
            _ = try await test.commit(operations, chunks: file.records + edit.records)
        }
        let first = try await test.catalog.discardVersions(Self.all, after: nil, now: time(2_000))
        #expect(first.discarded == HousekeepingSizes.items)
        let second = try await test.catalog.discardVersions(Self.all, after: first.next, now: time(2_000))
        #expect(second.discarded == 50 && second.next == nil)
        #expect(try await collect(test, now: 2_000 + Self.day) == count)
    }

    // MARK: What only a catalogue on a disk has

    @Test func `packs that chunks were collected from are told with what is left in them`() async throws {
        let test = try await TestCatalog(.sqlite)
        let catalog = try #require(test.catalog as? SQLiteCatalog)
        _ = try await edited(test)
        #expect(try await catalog.thinnedPacks(now: time(2_000)) == [])
        _ = try await discardAll(test, now: 2_000)
        #expect(try await collect(test, now: 2_000 + Self.day) == 1)
        let now = time(2_000 + Self.day)
        #expect(
            try await catalog.thinnedPacks(now: now) == [PackUse(pack: 1, liveBytes: 200, emptied: nil, isMoved: false)]
        )
        let left = try await catalog.chunks(in: 1)
        #expect(left.count == 2)
        let moves = left.map { chunk in
            var record = chunk.record
            (record.pack, record.offset) = (2, 50)
            return (chunk: chunk, to: record)
        }
        try await catalog.moveChunks(moves)
        // A second time they are not where they were.
        try await catalog.moveChunks(left.map { ($0, $0.record) })
        #expect(
            try await catalog.thinnedPacks(now: now) == [PackUse(pack: 1, liveBytes: 0, emptied: now, isMoved: true)]
        )
        let later = now.after(.seconds(9))
        #expect(try await catalog.thinnedPacks(now: later).map(\.emptied) == [now])
        // One that is still added to has no time as an empty one.
        try await catalog.notEmptied(1)
        #expect(try await catalog.thinnedPacks(now: later).map(\.emptied) == [later])
        #expect(try await catalog.chunks(in: 2).map(\.record) == moves.map(\.to))
        try await catalog.forgetPack(1)
        #expect(try await catalog.thinnedPacks(now: later) == [])
    }

    @Test(arguments: [false, true])
    func `a file with long versions is discarded in steps that begin with it again`(isDeleted: Bool) async throws {
        let test = try await TestCatalog(.sqlite)
        func long(_ number: Int) -> TestFile {
            var file = TestFile()
            file.parts = (0..<1_500).map { "\(number) \($0)" }
            return file
        }
        let first = long(0)
        _ = try await test.commit([try first.create("a")], chunks: first.records)
        var last = first
        for number in 1...5 {
            let next = long(number)
            let edit = next.edit(first.item, base: last.revision, edited: 10 + Int64(number))
            #expect(try await test.commit([edit], chunks: next.records).outcomes.first?.item != nil)
            last = next
        }
        var discarded: [Int] = []
        if isDeleted {
            let delete = first.operation(.delete(base: last.revision))
            #expect(try await test.commit([delete]).outcomes.first?.item?.isDeleted == true)
            var position: TombstonePosition?
            repeat {
                let all = time(0)..<time(2_000)
                let page = try await test.catalog.discardDeleted(in: all, after: position, now: time(2_000))
                discarded.append(page.discarded)
                position = page.next
            } while position != nil
        } else {
            var position: ItemPosition?
            repeat {
                let page = try await test.catalog.discardVersions(Self.all, after: position, now: time(2_000))
                discarded.append(page.discarded)
                position = page.next
            } while position != nil
        }
        #expect(discarded == (isDeleted ? [2, 2, 2] : [2, 2, 1]))
        #expect(try await collect(test, now: 2_000 + Self.day) == 1_500 * (isDeleted ? 6 : 5))
    }

    @Test func `what was noted while the clock was ahead counts from now on when it is right again`() async throws {
        let test = try await TestCatalog(.sqlite)
        let catalog = try #require(test.catalog as? SQLiteCatalog)
        let (year, now) = (365 * Self.day, 100 * Self.day)
        let lost = TestFile("lost")
        try await catalog.addChunks(lost.records, renewed: [], test.scope, now: time(10))
        #expect(try await collect(test, now: 10 + Self.upload + Self.day) == 1)
        #expect(try await catalog.thinnedPacks(now: time(year)).map(\.emptied) == [time(year)])
        let late = TestFile("late").records.map { record in
            var record = record
            record.pack = 2
            return record
        }
        try await catalog.addChunks(late, renewed: [], test.scope, now: time(year))
        try await catalog.notAfter(time(now))
        #expect(try await catalog.thinnedPacks(now: time(now + 5)).map(\.emptied) == [time(now)])
        #expect(try await missing("late", now: now + Self.upload - 1, in: test) == [])
        #expect(try await missing("late", now: now + Self.upload, in: test) == [0])
    }

    @Test func `where a manifest is damaged nothing is collected, and elsewhere it is`() async throws {
        let test = try await TestCatalog(.sqlite)
        let path = try #require(test.path)
        _ = try await edited(test)
        #expect(try await discardAll(test, now: 2_000) == 1)
        let other = Scope(token: test.scope.token, container: try #require(ContainerID("Other")))
        let info = ContainerInfo(
            id: other.container,
            key: test.key,
            layout: .drive,
            isCaseInsensitive: false,
            isReadOnly: false
        )
        _ = try await test.catalog.createContainer(info, by: other.token, now: time(1))
        try await test.catalog.addChunks(TestFile("orphan").records, renewed: [], other, now: time(10))
        try succeed(
            "sqlite3",
            path,
            """
            ALTER TABLE contents ADD COLUMN kept BLOB;
            UPDATE contents SET kept = manifest, manifest = SUBSTR(manifest, 2);
            """
        )
        let late = 10 + Self.upload + Self.day
        let first = try await test.catalog.collectChunks(after: nil, now: time(late))
        #expect(first.isDamaged && first.discarded == 0)
        #expect(first.next != nil)
        let second = try await test.catalog.collectChunks(after: first.next, now: time(late))
        #expect(!second.isDamaged && second.discarded == 1)
        #expect(try await test.catalog.collectChunks(after: second.next, now: time(late)).next == nil)
        try succeed("sqlite3", path, "UPDATE contents SET manifest = kept;")
        #expect(try await collect(test, now: late) == 1)
    }

    @Test func `a version whose manifest is damaged goes all the same, and its chunks stay`() async throws {
        let test = try await TestCatalog(.sqlite)
        let (first, second) = try await edited(test)
        try succeed("sqlite3", try #require(test.path), "UPDATE contents SET manifest = SUBSTR(manifest, 2);")
        #expect(try await discardAll(test, now: 2_000) == 1)
        #expect(try await test.catalog.versions(first.item, test.scope).map(\.revision) == [second.revision])
        #expect(try await collect(test, now: 2_000 + Self.day) == 0)
        #expect(try await test.catalog.accounts().map(\.used) == [6])
    }

    @Test func `what lies in several packs is told by pack and place`() async throws {
        let test = try await TestCatalog(.sqlite)
        let catalog = try #require(test.catalog as? SQLiteCatalog)
        let places: [(pack: UInt64, offset: UInt64)] = [(3, 16), (1, 500), (1, 16), (2, 16)]
        let records = zip(TestFile("a", "b", "c", "d").records, places).map { record, place in
            var record = record
            (record.pack, record.offset) = place
            return record
        }
        try await catalog.addChunks(records, renewed: [], test.scope, now: time(10))
        let found = try await catalog.chunks(in: [3, 1]).map(\.record)
        #expect(found == [records[2], records[1], records[0]])
    }

    @Test func `chunks that two devices have sent at once leave a pack with something that nothing leads to`()
        async throws
    {
        let test = try await TestCatalog(.sqlite)
        let catalog = try #require(test.catalog as? SQLiteCatalog)
        let file = TestFile("x")
        let second = file.records.map { record in
            var record = record
            record.pack = 2
            return record
        }
        for records in [file.records, file.records, second] {
            try await catalog.addChunks(records, renewed: [], test.scope, now: time(10))
        }
        #expect(try await catalog.thinnedPacks(now: time(20)).map(\.pack) == [2])
        #expect(try await catalog.chunks(in: 1).map(\.record) == file.records)
    }

    @Test func `a removed container goes after its time, with its chunks`() async throws {
        let test = try await TestCatalog(.sqlite)
        let catalog = try #require(test.catalog as? SQLiteCatalog)
        _ = try await edited(test)
        try await catalog.removeContainer(test.scope, now: time(3_000))
        #expect(try await !catalog.discardContainers(removedBefore: time(3_000)))
        var steps = 0
        while try await catalog.discardContainers(removedBefore: time(3_001)) { steps += 1 }
        #expect((1...20).contains(steps))
        #expect(try await catalog.chunks(in: 1) == [])
        #expect(try await catalog.thinnedPacks(now: time(4_000)).map(\.liveBytes) == [0])
    }
}
