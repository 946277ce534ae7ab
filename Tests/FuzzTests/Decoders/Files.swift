import CatalogModel
import CatalogStore
import ChunkStore
import Foundation
import GRDB
import Replica
import TestSupport
import UbiquityModel

/// Files that another version, a bad disk or somebody has changed.
extension FuzzTarget {
    static let files: [FuzzTarget] = [
        FuzzTarget("the deletion log", cost: 20) { arbitrary in
            try FuzzFolder.with { folder in
                let log = try DeletionLog(path: folder + "/log")
                for number in 0..<UInt64(arbitrary.below(5)) {
                    try log.append(.item(ItemID(high: 1, low: number)))
                    try log.append(.inode(InodeKey(tag: 1, words: (number, 2, 3))))
                    if arbitrary.chance(2) { try log.remove([.item(ItemID(high: 1, low: number))]) }
                }
                return try Files.read(folder + "/log")
            }
        } check: { bytes in
            try FuzzFolder.with { folder in
                try Files.write(bytes, to: folder + "/log")
                let entry = DeletionEntry.item(ItemID(high: 9, low: 9))
                guard
                    let entries = try accepted(
                        ReplicaError.self,
                        { () throws(ReplicaError) in
                            try DeletionLog(path: folder + "/log")
                        }
                    ).map({ log in
                        try log.append(entry)
                        return log.entries()
                    })
                else { return false }
                try promise(try DeletionLog(path: folder + "/log").entries() == entries, "not what was written")
                return true
            }
        },
        FuzzTarget("a pack", cost: 100) { arbitrary in
            try await FuzzFolder.lasting { folder in
                let store = try FolderChunkStore(folder: folder)
                var chunks = [StoredChunk]()
                for _ in 0...arbitrary.below(3) {
                    let data = arbitrary.bytes(1 + arbitrary.below(50))
                    let chunk = try arbitrary.chunk()
                    chunks.append(
                        StoredChunk(container: 1, chunk: chunk, length: 9, isCompressed: false, data: data[...])
                    )
                }
                _ = try await store.store(chunks)
                await store.close()
                return try Files.read(folder + "/0000000000000001.pack")
            }
        } check: { bytes in
            try await FuzzFolder.lasting { folder in
                try Files.write(bytes, to: folder + "/0000000000000001.pack")
                let store: FolderChunkStore
                do { store = try FolderChunkStore(folder: folder) } catch is ChunkStoreError { return false }
                var arbitrary = Arbitrary(seed: UInt64(bytes.count))
                let data = [1, 2, 3] as [UInt8]
                let chunk = try arbitrary.chunk()
                let record = StoredChunk(container: 1, chunk: chunk, length: 3, isCompressed: false, data: data[...])
                let location = try await store.store([record])[0]
                let places = [
                    location, ChunkLocation(pack: 1, offset: UInt64(bitPattern: arbitrary.integer()), length: 99),
                    ChunkLocation(pack: 1, offset: 16, length: UInt32(truncatingIfNeeded: arbitrary.integer())),
                ]
                for place in places {
                    let isDamaged = try? await isDamaged(chunk, at: place, in: store)
                    if place == location {
                        try promise(isDamaged == false, "a chunk that was stored is not there")
                    }
                }
                await store.close()
                return location.offset > 16
            }
        },
        FuzzTarget("the state database", cost: 400) { arbitrary in
            arbitrary.bytes(40)
        } check: { bytes in
            try FuzzFolder.with { folder in
                let path = folder + "/state"
                let database = try StateDatabase(path: path)
                var arbitrary = Arbitrary(seed: 1)
                let items = try (0..<3).map { _ in try arbitrary.item() }
                try database.write(
                    remote: items,
                    manifests: [arbitrary.content(): arbitrary.manifest()],
                    position: arbitrary.position()
                )
                let key = InodeKey(tag: 1, words: (1, 2, 3))
                let local = LocalEvidence(
                    key: key,
                    size: 1,
                    modified: arbitrary.time(),
                    changed: arbitrary.time(),
                    isDataless: true
                )
                try database.write(synced: items.map { SyncedItem($0, local: local) })
                let placeholder = Placeholder(
                    revision: arbitrary.identifier(),
                    generation: 1,
                    size: 9,
                    modified: arbitrary.time(),
                    mode: 0
                )
                try database.write(ranges: ByteRangeSet(0..<5), items[0].id, placeholder)
                try database.write(sending: [(items[0].id, SentRevision(revision: placeholder.revision, content: nil))])
                try database.setPinned(true, [items[0].id])
                try database.close()
                var damage = Damage(bytes)
                try damage.apply(to: path)
                return try look(path, items, key, placeholder)
            }
        },
        FuzzTarget("the catalogue", cost: 400) { arbitrary in
            arbitrary.bytes(40)
        } check: { bytes in
            try await FuzzFolder.lasting { folder in
                let path = folder + "/catalog"
                let catalog = try await FuzzCatalog.make(path)
                try catalog.close()
                var damage = Damage(bytes)
                try damage.apply(to: path)
                return await FuzzCatalog.look(path)
            }
        },
    ]

    /// Asks the state database everything. Whether each question got an answer.
    private static func look(
        _ path: String,
        _ items: [RemoteItem],
        _ key: InodeKey,
        _ placeholder: Placeholder
    ) throws -> Bool {
        do {
            let database = try StateDatabase(path: path)
            defer { _ = try? database.close() }
            let remote = try database.remoteItems(after: nil, limit: 9) + database.conflicts()
            let synced = try database.syncedItems(after: nil, limit: 9) + database.synced(key: key)
            let sizes = remote.map(\.content.size) + synced.map(\.content.size)
            try promise(sizes.allSatisfy { $0 >= 0 }, "sizes of \(sizes)")
            for item in items {
                _ = try (database.remotePath(of: item.id), database.syncedPath(of: item.id))
                _ = try database.ranges(item.id, placeholder)
                if case .file(let file) = item.content, let content = file.content {
                    _ = try database.manifest(content)
                }
            }
            _ = try (database.position(), database.nonce(), database.pins(), database.held(), database.sending())
            _ = try (database.differences(limit: 9), database.counts(), database.unlisted(), database.isListed())
            _ = try (database.unpopulatedFolders(root: key), database.syncedSubtree(of: .root))
            return true
        } catch is ReplicaError { return false }
    }
}

/// A folder for one input.
enum FuzzFolder {
    private static func make() throws -> String {
        let parent = (try? Files.names(in: "/dev/shm")) == nil ? "/tmp" : "/dev/shm"
        let folder = "\(parent)/ubiquity-fuzz-\(RevisionID.random())"
        try Files.makeFolder(folder)
        return folder
    }

    static func with<Value>(_ body: (String) throws -> Value) throws -> Value {
        let folder = try make()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        return try body(folder)
    }

    static func lasting<Value>(_ body: (String) async throws -> Value) async throws -> Value {
        let folder = try make()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        return try await body(folder)
    }
}

/// Another value in some column of a row, as the bytes say, or other bytes in the file.
struct Damage {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) { rest = bytes[...] }

    private mutating func byte() -> Int { Int(rest.popFirst() ?? 0) }

    mutating func apply(to path: String) throws {
        if byte() % 4 == 0 {
            var file = try Files.read(path)
            for _ in 0..<3 where !file.isEmpty {
                // The header and the schema more often than not: little of the rest is in use.
                let place =
                    (byte() << 16 | byte() << 8 | byte()) % (byte() % 2 == 0 ? file.count : min(file.count, 120))
                file[place] = UInt8(byte())
            }
            return try Files.write(file, to: path)
        }
        do {
            let queue = try DatabaseQueue(path: path)
            defer { try? queue.close() }
            try queue.writeWithoutTransaction { database in
                let tables = try String.fetchAll(
                    database,
                    sql: "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name"
                )
                guard !tables.isEmpty else { return }
                for _ in 0...byte() % 3 {
                    let table = tables[byte() % tables.count]
                    let columns = try database.columns(in: table)
                    let column = columns[byte() % columns.count].name
                    let value = value()
                    // What the table refuses cannot stand in it.
                    try? database.execute(sql: "UPDATE \(table) SET \(column) = ?", arguments: [value])
                }
                if byte() % 16 == 0 {
                    try database.execute(sql: "PRAGMA user_version = \(Int32(bitPattern: UInt32(byte()) << 24))")
                }
            }
        } catch is DatabaseError {}
    }

    private mutating func value() -> DatabaseValue {
        switch byte() % 6 {
        case 0: return Int64.min.databaseValue
        case 1: return [Int64.max, -1, 0, 1, 300, 1 << 33, -(1 << 40)][byte() % 7].databaseValue
        case 2: return "x\u{0}/".databaseValue
        case 3: return DatabaseValue.null
        case 4: return 1.5e300.databaseValue
        default:
            let count = byte() % 40
            return Data(rest.prefix(count)).databaseValue
        }
    }
}

/// As the server reads a chunk.
private func isDamaged(_ chunk: ChunkID, at place: ChunkLocation, in store: FolderChunkStore) async throws -> Bool {
    let count = try store.dataCount(at: place)
    return try await store.read { reader throws(ChunkStoreError) in
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 8)
        defer { room.deallocate() }
        return try reader.read(ChunkRequest(chunk: chunk, location: place), into: room, examining: true)
    }
}
