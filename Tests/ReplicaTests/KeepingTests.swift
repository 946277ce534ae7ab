import Replica
import TestSupport
import Testing
import UbiquityModel

/// How much content is here, and when it was used.
@Suite struct KeepingTests {
    let scratch: ScratchFolder
    let database: StateDatabase

    init() throws {
        scratch = try ScratchFolder()
        database = try StateDatabase(path: scratch.appending("state.sqlite"))
    }

    private func key(_ number: UInt64) -> InodeKey { evidence(number).key }

    /// A file of `number` bytes that came at the moment `changed`.
    private func file(_ number: UInt64, changed: Int64 = 6, isDataless: Bool = false) throws -> SyncedItem {
        var local = evidence(number)
        local.changed = Timestamp(nanoseconds: changed)
        local.isDataless = isDataless
        return SyncedItem(try remoteFile(number, "file\(number)"), local: local)
    }

    /// A package of `number` bytes. What stands in the place of its change time is none.
    private func somePackage(_ number: UInt64, isDataless: Bool = false) throws -> SyncedItem {
        var item = try remoteFile(number, "package\(number).rtfd")
        var content = try fileContent(of: item)
        content.isPackage = true
        item.content = .file(content)
        var local = evidence(number)
        local.changed = Timestamp(nanoseconds: .max)
        local.isDataless = isDataless
        return SyncedItem(item, local: local)
    }

    private func fileContent(of item: RemoteItem) throws -> FileContent {
        guard case .file(let file) = item.content else { throw ReplicaError.corrupted("no file") }
        return file
    }

    private func order(limit: Int = 10) throws -> [UInt64] { try database.localContents(limit: limit).map(\.id.low) }

    @Test func `whole files count with their size, and parts with what is written down of them`() throws {
        var folder = try remoteFile(100, "folder")
        folder.content = .folder
        let placeholder = somePlaceholder(size: 50)
        #expect(try database.localBytes() == 0)
        try database.write(synced: [
            try file(1), try file(2), try file(3, isDataless: true), try file(50, isDataless: true),
            SyncedItem(folder, local: evidence(100)), SyncedItem(try remoteFile(7, "not here"), local: nil),
        ])
        #expect(try database.localBytes() == 3)
        try database.write(ranges: ByteRangeSet(10..<30), ItemID(high: 0, low: 50), placeholder)
        // A row that is left from before it was whole counts once.
        try database.write(ranges: ByteRangeSet(0..<1), ItemID(high: 0, low: 2), placeholder)
        #expect(try database.localBytes() == 23)
        #expect(try database.countedBytes(of: key(50)) == 20)
        #expect(try database.countedBytes(of: key(3)) == 0)
        // Who asks for what comes may have seen it as a part just before.
        #expect(try database.countedBytes(of: key(2)) == 2)
        #expect(try order() == [1, 2, 50])
        #expect(try database.localContents(limit: 10).map(\.bytes) == [1, 2, 20])
        try database.apply(SyncedChanges(removals: [ItemID(high: 0, low: 2)]))
        #expect(try database.localBytes() == 21)
    }

    @Test func `what was used least recently comes first, and what was never opened by the time it came`() throws {
        try database.write(synced: [
            try file(1, changed: 100), try file(2, changed: 200), try file(3, changed: 300), try file(4, changed: 400),
        ])
        #expect(try order() == [1, 2, 3, 4])
        try database.write(uses: [key(1): Timestamp(nanoseconds: 350), key(9): Timestamp(nanoseconds: 1)])
        #expect(try order() == [2, 3, 1, 4])
        // What was told late changes nothing.
        try database.write(uses: [key(1): Timestamp(nanoseconds: 50)])
        #expect(try order() == [2, 3, 1, 4])
        #expect(try order(limit: 2) == [2, 3])
        #expect(try database.firstUse(after: Timestamp(nanoseconds: 300)) == Timestamp(nanoseconds: 350))
        #expect(try database.firstUse(after: Timestamp(nanoseconds: 400)) == nil)
        // A newer revision from elsewhere is no use.
        try database.write(synced: [try file(1, changed: 900)])
        #expect(try order() == [2, 3, 1, 4])
        try database.close()
        let again = try StateDatabase(path: scratch.appending("state.sqlite"))
        #expect(try again.localContents(limit: 10).map(\.id.low) == [2, 3, 1, 4])
    }

    @Test func `packages count with what is here of them, from when that is known on`() throws {
        let whole = try somePackage(10)
        let part = try somePackage(20, isDataless: true)
        try database.write(synced: [whole, part, try file(1, changed: 100)])
        #expect(try database.localBytes() == 11)
        try database.write(localBytes: 5, ofPackage: part)
        #expect(try database.localBytes() == 16)
        #expect(try order() == [1])
        try database.write(useOfUndatedPackages: Timestamp(nanoseconds: 50))
        try database.write(useOfUndatedPackages: Timestamp(nanoseconds: 70))
        #expect(try order() == [10, 20, 1])
        #expect(try database.localContents(limit: 10).map(\.bytes) == [10, 5, 1])
        #expect(try database.firstUse(after: Timestamp(nanoseconds: 40)) == Timestamp(nanoseconds: 50))
        try database.write(uses: [key(10): Timestamp(nanoseconds: 200)])
        #expect(try order() == [20, 1, 10])
        #expect(try database.firstUse(after: Timestamp(nanoseconds: 100)) == Timestamp(nanoseconds: 200))
        try database.write(localBytes: 0, ofPackage: part)
        #expect(try database.localBytes() == 11)
        #expect(try order() == [1, 10])
    }

    @Test func `filling is a use`() throws {
        try database.write(synced: [try file(1, changed: 100, isDataless: true), try file(2, changed: 200)])
        try database.write(uses: [key(1): Timestamp(nanoseconds: 150)])
        var whole = try file(1, changed: 500)
        let local = try #require(whole.local)
        try database.write(filled: [(RevisionID(high: 1, low: 1), local)])
        #expect(try order() == [2, 1])
        whole.local = local
        #expect(try database.synced(whole.id) == whole)
        #expect(try database.localContents(limit: 2).last?.lastUsed == Timestamp(nanoseconds: 500))
    }

    @Test func `what is in the cloud and not here is found by name, folder by folder`() throws {
        var folder = try remoteFile(100, "folder")
        folder.content = .folder
        var announced = try remoteFile(6, "e")
        announced.content = .file(FileContent(revision: .random(), content: nil, size: 5))
        var deleted = try remoteFile(7, "f")
        deleted.isDeleted = true
        let whole = try remoteFile(1, "a")
        let dataless = try remoteFile(2, "b")
        let cloudOnly = [try remoteFile(3, "c"), try remoteFile(4, "d")]
        let below = try remoteFile(5, "x", in: folder.id)
        try database.write(remote: [folder, announced, deleted, whole, dataless, below] + cloudOnly, position: nil)
        var local = evidence(1)
        local.isDataless = false
        try database.write(synced: [SyncedItem(whole, local: local), SyncedItem(dataless, local: evidence(2))])
        let found = try database.missingContents(in: .root, after: nil, limit: 2)
        #expect(found.map(\.id.low) == [2, 3])
        #expect(found.map(\.file) == [try fileContent(of: dataless), try fileContent(of: cloudOnly[0])])
        #expect(try database.missingContents(in: .root, after: found.last?.place.name, limit: 2).map(\.id.low) == [4])
        #expect(try database.missingContents(in: folder.id, after: nil, limit: 2).map(\.place) == [below.place])
        #expect(try database.remoteFolders(in: .root) == [folder.id])
        #expect(try database.missingContent(below.id)?.file.size == 5)
        #expect(try database.missingContent(whole.id) == nil)
        let totals = try database.missingTotals()
        #expect(totals.count == 4)
        #expect(totals.bytes == 2 + 3 + 4 + 5)
    }

    @Test func `in a database of the version before, what is partly here is counted`() throws {
        let path = scratch.appending("old.sqlite")
        let item = ItemID(high: 0, low: 50)
        do {
            let old = try StateDatabase(path: path)
            try old.write(synced: [try file(50, isDataless: true), try file(3)])
            try old.write(ranges: ByteRangeSet(10..<30), item, somePlaceholder(size: 50))
            try old.close()
        }
        try succeed(
            "sqlite3",
            path,
            """
            DROP INDEX syncedContent; ALTER TABLE synced DROP COLUMN used; ALTER TABLE ranges DROP COLUMN bytes;
            DROP INDEX remoteFolded; ALTER TABLE remote DROP COLUMN folded;
            ALTER TABLE sending DROP COLUMN target;
            PRAGMA user_version = 3;
            """
        )
        let database = try StateDatabase(path: path)
        #expect(try database.localBytes() == 23)
        #expect(try database.localContents(limit: 5).map(\.lastUsed) == [6, 6].map { Timestamp(nanoseconds: $0) })
    }
}
