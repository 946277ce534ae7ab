import CatalogModel
import ChunkStore
import Chunking
import CloudClient
import Reconciliation
import TestSupport
import Testing
import UbiquityModel

@testable import CatalogStore
@testable import CloudServer

/// Days in the life of a server: its packs get smaller, and every byte that anybody needs is still there.
@Suite struct HousekeepingTests {
    private static let day = Duration.days(1)

    /// A data folder whose server is not running, as it was left by one.
    private struct House {
        let catalog: SQLiteCatalog
        let chunks: FolderChunkStore
        var now: Timestamp

        init(_ data: String, now: Timestamp) throws {
            catalog = try SQLiteCatalog(path: data + "/catalog.sqlite")
            chunks = try FolderChunkStore(folder: data + "/packs", packLimit: 400_000)
            self.now = now
        }

        /// One round a day.
        /// - Returns: when the next one is wanted.
        @discardableResult
        mutating func round(after pause: Duration) async throws -> Timestamp {
            now = now.after(pause)
            let now = now
            let housekeeping = Housekeeping(
                catalog: catalog,
                chunks: chunks,
                now: { now },
                logger: RunningServer.logger
            )
            return try await housekeeping.round()
        }

        func close() async throws {
            await chunks.close()
            try catalog.close()
        }
    }

    @Test func `a file that is rewritten each hour does not fill the server`() async throws {
        let folder = try ServerFolder()
        let server = try await RunningServer(data: folder.path) { $0.packBytes = 400_000 }
        let client = try await server.join("laptop")
        let container = try await client.createContainer(.documents, layout: .drive, isCaseInsensitive: false)
        let kept = try PreparedFile(randomBytes(300_000, seed: 99), container)
        try await create(kept, "kept", client)
        // Each in a pack of its own, with a little of what is kept for good beside it.
        var last = try PreparedFile(randomBytes(350_000, seed: 1), container)
        let item = try await create(last, "a", client)
        var beside: [PreparedFile] = []
        for seed in UInt64(2)...12 {
            let next = try PreparedFile(randomBytes(350_000, seed: seed), container)
            let small = try PreparedFile(randomBytes(20_000, seed: 1_000 + seed), container)
            try await create(small, "small \(seed)", client)
            beside.append(small)
            try await edit(next, item, base: last.revision, client)
            last = next
        }
        let credentials = client.credentials
        await client.shutdown()
        try await server.stop()

        var house = try House(folder.path, now: Clock.now())
        let used = try await house.catalog.accounts().map(\.used)[0]
        // A new server has nothing old.
        try await house.round(after: .zero)
        for _ in 0..<4 { try await house.round(after: Self.day) }
        // All were written within this hour.
        #expect(try await house.catalog.versions(item, scope(credentials)).count <= 3)
        let left = try await house.catalog.accounts().map(\.used)[0]
        #expect(left < used - 8 * 350_000)
        #expect(left >= Int64(300_000 + 350_000 + 11 * 20_000))
        for _ in 0..<10 { try await house.round(after: Self.day) }
        try await house.close()
        #expect(try Files.names(in: folder.path + "/packs").count { $0.hasSuffix(".pack") } < 12)

        // Another server of the same folder serves all that is left.
        let again = try await RunningServer(data: folder.path)
        var here = credentials
        here.url = again.url
        let device = try CloudClient(credentials: here, logger: RunningServer.logger)
        for file in beside + [kept, last] {
            let received = Received()
            let wanted = file.manifest.entries.map(\.chunk)
            try await device.fetch(.documents, chunks: wanted, examine: true) { received.add($0) }
            #expect(received.frames.map(\.chunk) == wanted)
        }
        await device.shutdown()
        try await again.stop()
    }

    @Test func `rounds are a day apart, and an hour where packs are to be removed`() async throws {
        let folder = try ServerFolder()
        let start = Timestamp(seconds: 1_700_000_000, nanoseconds: 0)
        var house = try House(folder.path, now: start)
        #expect(try await house.round(after: .zero) == start.after(Self.day))
        #expect(try await house.round(after: .hours(2)) == start.after(Self.day))
        #expect(try await house.round(after: .hours(22)) == start.after(Self.day + Self.day))
        // The clock is wrong, or nobody was there: ages grow by two days an hour.
        for pause in [Duration.days(6), .hours(1), .hours(1)] {
            #expect(try await house.round(after: pause) == house.now.after(.hours(1)))
        }
        #expect(try await house.round(after: .hours(1)) == house.now.after(Self.day))
        // It was wrong, and is right again, which is believed after a day.
        for pause in [Duration.zero - .days(6), Self.day, Self.day] {
            #expect(try await house.round(after: pause) == house.now.after(Self.day))
        }
        let counted = try await house.catalog.setting("housekeeping-counted")
        #expect(counted == "\(house.now.nanoseconds)")
        try await house.close()
    }

    @Test func `a clock that leaps by decades is caught up with in some days`() async throws {
        let folder = try ServerFolder()
        var house = try House(folder.path, now: Timestamp(seconds: 1_000, nanoseconds: 0))
        try await house.round(after: .zero)
        #expect(try await house.round(after: .days(20_000)) == house.now.after(.hours(1)))
        var steps = 1
        while steps < 300, try await house.round(after: .hours(1)) == house.now.after(.hours(1)) { steps += 1 }
        #expect(steps == 200)
        #expect(try await house.round(after: Self.day) == house.now.after(Self.day))
        try await house.close()
    }

    @Test func `a clock that is a year ahead for some hours makes nothing a year older`() async throws {
        let folder = try ServerFolder()
        let server = try await RunningServer(data: folder.path)
        let client = try await server.join("laptop")
        let container = try await client.createContainer(.documents, layout: .drive, isCaseInsensitive: false)
        let saved = try PreparedFile(randomBytes(1_000, seed: 1), container)
        let item = try await create(saved, "a", client)
        let current = try PreparedFile(randomBytes(1_000, seed: 2), container)
        try await edit(current, item, base: saved.revision, client)
        let deleted = try PreparedFile(randomBytes(1_000, seed: 3), container)
        let gone = try await create(deleted, "b", client)
        let delete = ItemOperation(id: .random(), item: gone, action: .delete(base: deleted.revision))
        try await commit(delete, deleted, client)
        let owner = scope(client.credentials)
        await client.shutdown()
        try await server.stop()

        var house = try House(folder.path, now: Clock.now())
        let catalog = house.catalog
        func known() async throws -> [Bool] {
            try await catalog.wholeness([(item, saved.revision), (gone, deleted.revision)], owner).map(\.isKnown)
        }
        try await house.round(after: .zero)
        for pause in [.days(365), .hours(1), .hours(1), Duration.zero - .days(365), Self.day, Self.day] {
            try await house.round(after: pause)
            #expect(try await known() == [true, true])
        }
        // What is old by days that there were goes as ever.
        for _ in 0..<35 { try await house.round(after: Self.day) }
        #expect(try await known() == [true, false])
        try await house.close()
    }

    @Test func `what is replaced while the clock is behind is not taken for old when that is right again`() async throws
    {
        let folder = try ServerFolder()
        let now = Timestamp(seconds: 1_700_000_000, nanoseconds: 0)
        let behind = Timestamp(seconds: 1_000, nanoseconds: 0)
        var house = try House(folder.path, now: now)
        try await house.round(after: .zero)
        #expect(house.catalog.kept(behind) == now)
        try await house.close()

        // A machine without a clock of its own starts again and again in 1970, and is told the time late.
        for _ in 0..<3 {
            house = try House(folder.path, now: behind)
            #expect(house.catalog.kept(behind) == behind)
            #expect(try await house.round(after: .zero) == behind.after(Self.day))
            #expect(house.catalog.kept(behind) == now)
            #expect(house.catalog.kept(now.after(.hours(1))) == now.after(.hours(1)))
            try await house.close()
        }
        house = try House(folder.path, now: now.after(.hours(1)))
        #expect(try await house.round(after: .zero) == now.after(Self.day))
        try await house.close()

        // It was the time before that was wrong: nobody corrects this one for a day.
        house = try House(folder.path, now: behind)
        try await house.round(after: .zero)
        try await house.round(after: Self.day)
        #expect(house.catalog.kept(behind) == behind.after(Self.day))
        #expect(try await house.round(after: .hours(1)) == behind.after(Self.day + Self.day))
        try await house.close()
    }

    @Test(arguments: [nil, 200])
    func `chunks whose pack is gone, or ends before them, are missing, and taken again`(length: Int?) async throws {
        let folder = try ServerFolder()
        let server = try await RunningServer(data: folder.path)
        let client = try await server.join("laptop")
        let container = try await client.createContainer(.documents, layout: .drive, isCaseInsensitive: false)
        let file = try PreparedFile(randomBytes(300_000, seed: 1), container)
        try await create(file, "a", client)
        var credentials = client.credentials
        await client.shutdown()
        try await server.stop()
        let used = try await used(folder)
        // Its packs are restored from a backup that is older than its catalogue.
        let packs = folder.path + "/packs"
        for name in try Files.names(in: packs) where name.hasSuffix(".pack") {
            let path = "\(packs)/\(name)"
            let former = try Files.read(path).prefix(length ?? 0)
            try Files.remove(path)
            if length != nil { try Files.write(Array(former), to: path) }
        }

        let again = try await RunningServer(data: folder.path)
        credentials.url = again.url
        let device = try CloudClient(credentials: credentials, logger: RunningServer.logger)
        let chunks = file.manifest.entries.map(\.chunk)
        #expect(try await device.missing(.documents, chunks: chunks) == chunks)
        let other = try PreparedFile(randomBytes(300_000, seed: 1) + [1], container)
        let answer = try await device.commit(
            .documents,
            operations: [try other.create("b")],
            frames: [],
            clock: Clock.now()
        )
        guard case .missingChunks(let missing)? = answer.outcomes.first else { throw TestFailure("\(answer)") }
        #expect(Set(missing) == Set(other.manifest.entries.map(\.chunk)))

        try await create(try PreparedFile(randomBytes(300_000, seed: 1), container), "c", device)
        #expect(try await device.missing(.documents, chunks: chunks).isEmpty)
        let received = Received()
        try await device.fetch(.documents, chunks: chunks, examine: true) { received.add($0) }
        #expect(received.frames.map(\.chunk) == chunks)
        await device.shutdown()
        try await again.stop()
        #expect(try await self.used(folder) == used)
    }

    @Test func `a running server ends while it waits for its next round`() async throws {
        try await withServer { _, client, _ in _ = try await client.containers() }
    }

    private func used(_ folder: ServerFolder) async throws -> Int64 {
        let house = try House(folder.path, now: Clock.now())
        let used = try await house.catalog.accounts().map(\.used)[0]
        try await house.close()
        return used
    }

    private func scope(_ credentials: Credentials) -> Scope {
        Scope(token: TokenHash(token: credentials.token), container: .documents)
    }

    @discardableResult
    private func create(_ file: PreparedFile, _ name: String, _ client: CloudClient) async throws -> ItemID {
        try await commit(file.create(name), file, client)
    }

    private func edit(_ file: PreparedFile, _ item: ItemID, base: RevisionID, _ client: CloudClient) async throws {
        let action = ItemOperation.Action.edit(
            base: base,
            content: .file(file.content),
            attributes: ItemAttributes(modified: Clock.now(), mode: 0o600),
            manifest: file.manifest,
            edited: Clock.now()
        )
        try await commit(ItemOperation(id: .random(), item: item, action: action), file, client)
    }

    @discardableResult
    private func commit(
        _ operation: ItemOperation,
        _ file: PreparedFile,
        _ client: CloudClient
    ) async throws -> ItemID {
        let answer = try await client.commit(
            .documents,
            operations: [operation],
            frames: file.frames,
            clock: Clock.now()
        )
        guard case .committed(let item)? = answer.outcomes.first else {
            throw TestFailure("\(answer.outcomes)")
        }
        return item.id
    }
}
