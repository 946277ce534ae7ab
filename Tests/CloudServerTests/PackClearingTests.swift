import CatalogModel
import ChunkStore
import Reconciliation
import TestSupport
import Testing
import UbiquityModel

@testable import CatalogStore
@testable import CloudServer

/// Packs on disks that do not do all they are told.
@Suite struct PackClearingTests {
    private static let never = Timestamp(nanoseconds: .max)

    /// Packs that are filled by hand, beside a catalogue that knows of them.
    private struct Shelf {
        /// Long after what is lost was sent.
        static let now = Timestamp(seconds: 1_700_000_000, nanoseconds: 0)
        static let chunkBytes = 10_000

        let catalog: SQLiteCatalog
        let chunks: FaultyChunkStore
        /// Goes with the shelf, if that has made it.
        private let folder: ServerFolder?
        private let scope = Scope(token: TokenHash(token: [1]), container: .documents)

        init(in path: String? = nil) async throws {
            let folder = try path == nil ? ServerFolder() : nil
            self.folder = folder
            let data = try #require(path ?? folder?.path)
            catalog = try SQLiteCatalog(path: data + "/catalog.sqlite")
            // Each time that something is stored it is a pack of its own.
            chunks = FaultyChunkStore(try FolderChunkStore(folder: data + "/packs", packLimit: 1))
            try await catalog.addAccount("anna", quota: nil, now: Self.now)
            let secret = SecretHash(secret: [2])
            let invitation = Invitation(secret: secret, grant: .everything, expires: Self.now.after(.hours(1)))
            try await catalog.addInvitation(invitation, account: "anna")
            let device = NewDevice(id: .random(), name: "laptop", token: scope.token, nonce: [1])
            _ = try await catalog.join(secret, as: device, now: Self.now)
            let container = ContainerInfo(
                id: .documents,
                key: [UInt8](repeating: 7, count: 32),
                layout: .drive,
                isCaseInsensitive: false,
                isReadOnly: false
            )
            _ = try await catalog.createContainer(container, by: scope.token, now: Self.now)
        }

        /// Fills another pack. Of what is in it, only some is kept.
        /// - Returns: what is.
        @discardableResult
        func fill(kept: Int, lost: Int) async throws -> [ChunkRecord] {
            let stored = try (0..<kept + lost).map { _ in
                let bytes = (0..<32).map { _ in UInt8.random(in: 0...255) }
                return StoredChunk(
                    container: 1,
                    chunk: try #require(ChunkID(bytes: bytes)),
                    length: UInt32(Self.chunkBytes),
                    isCompressed: false,
                    data: randomBytes(Self.chunkBytes)[...]
                )
            }
            let locations = try await chunks.store(stored)
            let records = zip(stored, locations).map { chunk, location in
                ChunkRecord(
                    chunk: chunk.chunk,
                    length: chunk.length,
                    isCompressed: false,
                    pack: location.pack,
                    offset: location.offset,
                    recordLength: location.length
                )
            }
            let (here, gone) = (Array(records.prefix(kept)), Array(records.dropFirst(kept)))
            let former = Self.now.before(ChunkCollection.uploadLifetime + ChunkCollection.answerLifetime)
            try await catalog.addChunks(here, renewed: [], scope, now: Self.now)
            try await catalog.addChunks(gone, renewed: [], scope, now: former)
            _ = try await catalog.collectChunks(after: nil, now: Self.now)
            return here
        }

        /// - Returns: when there is something to do again.
        func clear(after pause: Duration) async throws -> Timestamp {
            let housekeeping = Housekeeping(
                catalog: catalog,
                chunks: chunks,
                now: { Self.now },
                logger: RunningServer.logger
            )
            return try await housekeeping.clearPacks(Self.now.after(pause), isBehind: false)
        }

        /// A whole round, at that time by the clock.
        func round(after pause: Duration) async throws {
            let now = Self.now.after(pause)
            let housekeeping = Housekeeping(
                catalog: catalog,
                chunks: chunks,
                now: { now },
                logger: RunningServer.logger
            )
            _ = try await housekeeping.round()
        }

        func left(in pack: UInt64) async throws -> [ChunkID] {
            try await catalog.chunks(in: pack).map(\.record.chunk)
        }

        func close() async throws {
            await chunks.close()
            try catalog.close()
        }
    }

    @Test func `a pack that cannot be removed is in no other one's way`() async throws {
        let shelf = try await Shelf()
        for _ in 0..<2 { try await shelf.fill(kept: 0, lost: 1) }
        try await shelf.fill(kept: 1, lost: 0)
        shelf.chunks.faults.lasting = [1]
        #expect(try await shelf.clear(after: .zero) == Shelf.now.after(.hours(1)))
        #expect(try await shelf.clear(after: .hours(1)) == Self.never)
        #expect(shelf.chunks.hasPack(1) && !shelf.chunks.hasPack(2) && shelf.chunks.hasPack(3))
        shelf.chunks.faults.lasting = []
        #expect(try await shelf.clear(after: .hours(2)) == Self.never)
        #expect(!shelf.chunks.hasPack(1))
        #expect(try await shelf.catalog.thinnedPacks(now: Shelf.now) == [])
        try await shelf.close()
    }

    @Test func `on a full disk nothing is moved, and what makes room is done`() async throws {
        let shelf = try await Shelf()
        var kept: [ChunkRecord] = []
        for _ in 0..<2 { kept += try await shelf.fill(kept: 1, lost: 2) }
        try await shelf.fill(kept: 0, lost: 1)
        try await shelf.fill(kept: 1, lost: 0)
        shelf.chunks.faults.isFull = true
        let stores = shelf.chunks.faults.stores
        #expect(try await shelf.clear(after: .zero) == Shelf.now.after(.hours(1)))
        // It is no use to try it with the second one.
        #expect(shelf.chunks.faults.stores == stores + 1)
        #expect(try await shelf.clear(after: .hours(1)) == Self.never)
        #expect(!shelf.chunks.hasPack(3))
        #expect(try await shelf.left(in: 1) + shelf.left(in: 2) == kept.map(\.chunk))
        shelf.chunks.faults.isFull = false
        #expect(try await shelf.clear(after: .hours(2)) == Shelf.now.after(.hours(3)))
        #expect(try await shelf.left(in: 1) + shelf.left(in: 2) == [])
        try await shelf.close()
    }

    @Test(.enabled(if: SmallDisk.isAvailable, "mounting a small disk needs root"), arguments: [true, false])
    func `on a full disk a clock that goes back, or is right again, keeps nobody from making room`(
        goesBack: Bool
    ) async throws {
        let disk = try SmallDisk(bytes: 4 * 1024 * 1024)
        let shelf = try await Shelf(in: disk.path)
        try await shelf.fill(kept: 0, lost: 1)
        try await shelf.fill(kept: 1, lost: 0)
        #expect(try await shelf.clear(after: .zero) == Shelf.now.after(.hours(1)))
        // Its time comes, and it cannot be removed yet.
        shelf.chunks.faults.lasting = [1]
        try await shelf.round(after: .hours(2))
        if !goesBack { try await shelf.round(after: .hours(1)) }
        shelf.chunks.faults.lasting = []
        #expect(shelf.chunks.hasPack(1))
        // As much as there is room for.
        _ = try? Files.write([UInt8](repeating: 1, count: 8 * 1024 * 1024), to: disk.path + "/filler")
        await #expect(throws: CatalogError.noSpace) { try await shelf.catalog.set("a", to: "b") }
        try await shelf.round(after: .hours(goesBack ? 1 : 3))
        #expect(!shelf.chunks.hasPack(1))
        try await shelf.close()
    }

    @Test func `a chunk that is not where it should be stays alone in its pack`() async throws {
        let shelf = try await Shelf()
        let kept = try await shelf.fill(kept: 2, lost: 3)
        try await shelf.fill(kept: 1, lost: 0)
        shelf.chunks.faults.unreadable = [kept[0].chunk]
        #expect(try await shelf.clear(after: .zero) == Shelf.now.after(.hours(1)))
        #expect(try await shelf.left(in: 1) == [kept[0].chunk])
        // Where nothing was moved there is nothing to do soon.
        #expect(try await shelf.clear(after: .hours(1)) == Self.never)
        shelf.chunks.faults.unreadable = []
        #expect(try await shelf.clear(after: .hours(2)) == Shelf.now.after(.hours(3)))
        #expect(try await shelf.left(in: 1) == [])
        try await shelf.close()
    }

    @Test func `what is moved takes a quarter of the free room at most, and none for a week where there is little`()
        async throws
    {
        let shelf = try await Shelf()
        let kept = try await shelf.fill(kept: 1, lost: 2)
        try await shelf.fill(kept: 1, lost: 0)
        shelf.chunks.faults.freeBytes = 4 * Int64(kept[0].recordLength) - 1
        #expect(try await shelf.clear(after: .zero) == Self.never)
        #expect(try await shelf.left(in: 1) == kept.map(\.chunk))
        shelf.chunks.faults.freeBytes = 4 * Int64(kept[0].recordLength)
        #expect(try await shelf.clear(after: .zero) == Shelf.now.after(.hours(1)))
        #expect(try await shelf.left(in: 1) == [])
        // It is empty from the next round on.
        shelf.chunks.faults.freeBytes = nil
        for pause in [Duration.hours(1), Duration.hours(3)] {
            #expect(try await shelf.clear(after: pause) == Shelf.now.after(Duration.hours(1) + .days(7)))
        }
        shelf.chunks.faults.freeBytes = 1024 * 1024 * 1024
        #expect(try await shelf.clear(after: .hours(3)) == Self.never)
        #expect(!shelf.chunks.hasPack(1))
        try await shelf.close()
    }
}
