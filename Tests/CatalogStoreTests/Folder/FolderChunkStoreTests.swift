import ChunkStore
import Crypto
import Foundation
import Glibc
import TestSupport
import Testing
import UbiquityModel

@Suite struct FolderChunkStoreTests {
    private func stored(_ text: String, size: Int = 1_000, seed: UInt64 = 1) throws -> StoredChunk {
        let id = try #require(chunk(text))
        return StoredChunk(
            container: 3,
            chunk: id,
            length: UInt32(size),
            isCompressed: false,
            data: randomBytes(size, seed: seed)[...]
        )
    }

    private func requests(_ chunks: [StoredChunk], _ locations: [ChunkLocation]) -> [ChunkRequest] {
        zip(chunks, locations).map { ChunkRequest(chunk: $0.chunk, location: $1) }
    }

    @Test func `what was stored is read back, after opening again too`() async throws {
        let folder = try TemporaryFolder()
        let chunks = try (0..<20).map { try stored("\($0)", seed: UInt64($0 + 1)) }
        let store = try FolderChunkStore(folder: folder.path + "/packs")
        var locations = try await store.store(Array(chunks.prefix(10)))
        locations += try await store.store(Array(chunks.suffix(10)))
        #expect(try await store.read(requests(chunks, locations), examining: true).map(\.data) == chunks.map(\.data))
        await store.close()
        await #expect(throws: ChunkStoreError.closed) { try await store.store(chunks) }
    }

    /// The last number there is, other spellings of a number, and what is none.
    @Test(arguments: ["ffffffffffffffff", "1", "+000000000000007", "000000000000000A", "x", ""])
    func `files that are no packs are in nobody's way`(name: String) async throws {
        let folder = try TemporaryFolder()
        try Files.write("not ours", to: "\(folder.path)/\(name).pack")
        let store = try FolderChunkStore(folder: folder.path)
        let chunks = [try stored("a")]
        guard name != "ffffffffffffffff" else {
            // After it there is no other, and it is not written over.
            await #expect(throws: ChunkStoreError.self) { try await store.store(chunks) }
            return await store.close()
        }
        let locations = try await store.store(chunks)
        #expect(locations[0].pack == 1)
        #expect(try await store.read(requests(chunks, locations), examining: true).map(\.isDamaged) == [false])
        await store.close()
    }

    @Test(
        arguments: [(.max, 100), (UInt64(Int64.max) - 50, 100), (16, .max), (16, 0), (1 << 40, 100)]
            as [(UInt64, UInt32)]
    )
    func `a place that cannot be is not there`(offset: UInt64, length: UInt32) async throws {
        let folder = try TemporaryFolder()
        let store = try FolderChunkStore(folder: folder.path)
        let chunks = [try stored("a")]
        _ = try await store.store(chunks)
        let place = ChunkLocation(pack: 1, offset: offset, length: length)
        await #expect(throws: ChunkStoreError.missing(pack: 1)) {
            try await store.read(requests(chunks, [place]), examining: false)
        }
        await store.close()
    }

    @Test func `a killed server finds everything that was answered`() async throws {
        let folder = try TemporaryFolder()
        let chunks = try (0..<5).map { try stored("\($0)", seed: UInt64($0 + 1)) }
        let locations: [ChunkLocation]
        do {
            // Never closed.
            let store = try FolderChunkStore(folder: folder.path)
            locations = try await store.store(chunks)
        }
        let again = try await reopened(folder.path)
        #expect(try await again.read(requests(chunks, locations), examining: true).allSatisfy { !$0.isDamaged })
    }

    /// The former store's threads may hold its last reference, and with it the lock, for a moment longer.
    private func reopened(_ path: String) async throws -> FolderChunkStore {
        try eventually("the packs' lock is free") {
            do { return try FolderChunkStore(folder: path) } catch ChunkStoreError.inUse { return nil }
        }
    }

    @Test func `two servers never share a folder`() throws {
        let folder = try TemporaryFolder()
        let store = try FolderChunkStore(folder: folder.path)
        #expect(throws: ChunkStoreError.inUse(folder.path)) { try FolderChunkStore(folder: folder.path) }
        withExtendedLifetime(store) {}
    }

    /// Started again right after a kill: its files were not closed yet although nobody saw it any more.
    @Test func `the folder of a server that is about to be gone is waited for`() throws {
        let folder = try TemporaryFolder()
        let held = open("\(folder.path)/lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        try #require(held >= 0 && flock(held, LOCK_EX | LOCK_NB) == 0)
        let thread = Thread {
            // Whoever opens the store has the file open as well by now, and has found it locked.
            _ = try? eventually("somebody waits for the lock") {
                let open = try Files.names(in: "/proc/self/fd").compactMap {
                    try? Files.target(of: "/proc/self/fd/\($0)")
                }
                return open.filter { $0 == "\(folder.path)/lock" }.count > 1
            }
            close(held)
        }
        thread.start()
        _ = try FolderChunkStore(folder: folder.path)
    }

    @Test func `packs end at their limit, and all are read`() async throws {
        let folder = try TemporaryFolder()
        let store = try FolderChunkStore(folder: folder.path, packLimit: 3_000)
        var chunks = [StoredChunk]()
        var locations = [ChunkLocation]()
        for number in 0..<10 {
            let chunk = try stored("\(number)", seed: UInt64(number + 1))
            chunks.append(chunk)
            locations += try await store.store([chunk])
        }
        #expect(Set(locations.map(\.pack)).count == 4)
        #expect(try await store.read(requests(chunks, locations), examining: true).map(\.data) == chunks.map(\.data))
        for location in locations {
            #expect(store.hasPack(location.pack))
            #expect(store.hasPack(location.pack, upTo: location.offset + UInt64(location.length)))
        }
        #expect(!store.hasPack(99) && !store.hasPack(99, upTo: 0))
    }

    struct Tail: Sendable, CustomTestStringConvertible {
        var testDescription: String
        /// Bytes that are missing from the last record, or that were added after it.
        var cut = 0
        var added: [UInt8] = []
    }

    @Test(arguments: [
        Tail(testDescription: "one byte of the last record is missing", cut: 1),
        Tail(testDescription: "only the header of the last record is there", cut: 1_000),
        Tail(testDescription: "half of the header is there", cut: 1_032),
        Tail(testDescription: "zeros follow", added: [UInt8](repeating: 0, count: 5_000)),
        Tail(testDescription: "noise follows", added: randomBytes(5_000, seed: 99)),
        Tail(testDescription: "a mark follows", added: Array("UChk".utf8)),
    ])
    func `a torn tail is cut off, and what is stored then goes elsewhere`(tail: Tail) async throws {
        let folder = try TemporaryFolder()
        let chunks = try (0..<3).map { try stored("\($0)", seed: UInt64($0 + 1)) }
        var locations: [ChunkLocation]
        do {
            let store = try FolderChunkStore(folder: folder.path)
            locations = try await store.store(chunks)
            await store.close()
        }
        let pack = folder.path + "/0000000000000001.pack"
        let size = Int(try Files.status(pack).st_size)
        try shorten(pack, to: size - tail.cut)
        try overwrite(pack, at: size - tail.cut, with: tail.added)
        let survivors = tail.cut > 0 ? 2 : 3
        let store = try await reopened(folder.path)
        let end = try #require(locations.prefix(survivors).last)
        #expect(try Files.status(pack).st_size == Int(end.offset) + Int(end.length))
        let kept = end.offset + UInt64(end.length)
        #expect(store.hasPack(1, upTo: kept) && !store.hasPack(1, upTo: kept + 1))
        let more = try stored("more", seed: 50)
        let new = try await store.store([more])
        #expect(new.map(\.pack) == [2])
        #expect(try Files.status(pack).st_size == Int(kept))
        locations = Array(locations.prefix(survivors)) + new
        let all = Array(chunks.prefix(survivors)) + [more]
        let read = try await store.read(requests(all, locations), examining: true)
        #expect(read.map(\.data) == all.map(\.data))
        #expect(read.allSatisfy { !$0.isDamaged })
    }

    @Test(arguments: [0, 4, 20, 60, 500])
    func `a damaged record in the middle is told, and takes nothing else with it`(at offset: Int) async throws {
        let folder = try TemporaryFolder()
        let chunks = try (0..<3).map { try stored("\($0)", seed: UInt64($0 + 1)) }
        let locations: [ChunkLocation]
        do {
            let store = try FolderChunkStore(folder: folder.path)
            locations = try await store.store(chunks)
            await store.close()
        }
        let pack = folder.path + "/0000000000000001.pack"
        let position = Int(locations[1].offset) + offset
        let before = try Files.read(pack)
        try overwrite(pack, at: position, with: [~before[position]])
        let store = try await reopened(folder.path)
        #expect(try Files.status(pack).st_size == before.count)
        let read = try await store.read(requests(chunks, locations), examining: true)
        #expect(read.map(\.isDamaged) == [false, true, false])
        // From now on it counts as lost: whoever has it is asked for it.
        let ends = locations.map { $0.offset + UInt64($0.length) }
        #expect(ends.map { store.hasRecord(in: 1, endingAt: $0) } == [true, false, true])
        #expect(store.hasPack(1, upTo: ends[2]))
        // Unless it can be read again. (On a busy machine a look may take so long that nobody looks for a while.)
        try overwrite(pack, at: position, with: [before[position]])
        try eventually("all are whole") { ends.allSatisfy { store.hasRecord(in: 1, endingAt: $0) } }
    }

    @Test func `what was found damaged is so when the store is opened again, until it is whole`() async throws {
        let folder = try TemporaryFolder()
        // The last one stays whole: a damaged one at the end of the newest pack is taken for torn, and cut off.
        let chunks = try (0..<4).map { try stored("\($0)", seed: UInt64($0 + 1)) }
        var store = try FolderChunkStore(folder: folder.path)
        let locations = try await store.store(chunks)
        let ends = locations.map { $0.offset + UInt64($0.length) }
        let pack = folder.path + "/0000000000000001.pack"
        let notes = folder.path + "/damaged-1"
        let before = try Files.read(pack)
        let places = locations.map { Int($0.offset) + 500 }
        func damage(_ index: Int) async throws {
            try overwrite(pack, at: places[index], with: [~before[places[index]]])
            #expect(try await store.read(requests(chunks, locations), examining: true)[index].isDamaged)
        }
        func reopen() async throws {
            await store.close()
            store = try await reopened(folder.path)
        }
        func whole() -> [Bool] { ends.map { store.hasRecord(in: 1, endingAt: $0) } }
        #expect(!Files.exists(notes))
        try await damage(1)
        #expect(try Files.read(notes).count == 52)
        try await reopen()
        #expect(whole() == [true, false, true, true])
        // Half an entry, as a crash leaves it: the next one takes its place.
        try overwrite(notes, at: 52, with: [0, 0, 0, 0, 0, 0, 0, 1, 0])
        try await reopen()
        #expect(whole() == [true, false, true, true])
        try await damage(2)
        #expect(try Files.read(notes).count == 104)
        try await reopen()
        #expect(whole() == [true, false, false, true])
        try overwrite(pack, at: 0, with: before)
        try eventually("all are whole") { whole() == [true, true, true, true] }
        // It has its entry already.
        try await damage(1)
        #expect(try Files.read(notes).count == 104)
        await store.close()
    }

    @Test func `what cannot be noted is known as long as the store is open`() async throws {
        let folder = try TemporaryFolder()
        try Files.makeFolder(folder.path + "/damaged-1")
        let store = try FolderChunkStore(folder: folder.path)
        let chunks = [try stored("a")]
        let locations = try await store.store(chunks)
        try overwrite(folder.path + "/0000000000000001.pack", at: Int(locations[0].offset) + 100, with: [0, 1, 2, 3])
        for _ in 0..<2 {
            #expect(try await store.read(requests(chunks, locations), examining: true).map(\.isDamaged) == [true])
            #expect(!store.hasRecord(in: 1, endingAt: locations[0].offset + UInt64(locations[0].length)))
        }
        await store.close()
    }

    struct Numbering: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var newest: UInt64
        var firstPack: UInt64
        var gap: UInt64 = 1_000
        var number: UInt64
    }

    @Test(arguments: [
        Numbering(testDescription: "the clock is right", newest: 100, firstPack: 200, number: 200),
        Numbering(testDescription: "the clock is behind", newest: 100, firstPack: 50, number: 1_100),
        Numbering(testDescription: "opened twice in one second", newest: 100, firstPack: 100, number: 1_100),
        Numbering(testDescription: "no gap is asked for", newest: 100, firstPack: 50, gap: 0, number: 101),
        Numbering(
            testDescription: "the last gap there is",
            newest: UInt64(Int64.max) - 1_000,
            firstPack: 1,
            number: UInt64(Int64.max)
        ),
        Numbering(
            testDescription: "no number has a sign",
            newest: UInt64(Int64.max) - 999,
            firstPack: 1,
            number: UInt64(Int64.max) - 998
        ),
        Numbering(testDescription: "a gap too long", newest: 100, firstPack: 1, gap: .max, number: 101),
    ])
    func `packs that are a backup are not numbered on where others may be lost`(numbering: Numbering) async throws {
        let folder = try TemporaryFolder()
        let first = try stored("first")
        do {
            let store = try FolderChunkStore(folder: folder.path, firstPack: numbering.newest)
            #expect(try await store.store([first]).map(\.pack) == [numbering.newest])
            await store.close()
        }
        let store = try FolderChunkStore(
            folder: folder.path,
            packLimit: 1,
            firstPack: numbering.firstPack,
            gap: numbering.gap
        )
        let chunk = try stored("a")
        let locations = try await store.store([chunk])
        #expect(locations.map(\.pack) == [numbering.number])
        #expect(try await store.read(requests([chunk], locations), examining: true).map(\.isDamaged) == [false])
        // From there on one by one.
        if numbering.number < UInt64(Int64.max) {
            #expect(try await store.store([try stored("b")]).map(\.pack) == [numbering.number + 1])
        }
        await store.close()
    }

    @Test func `what the disk does not give back at all is damaged, and nothing else comes in its place`() async throws
    {
        let folder = try TemporaryFolder()
        let store = try FolderChunkStore(folder: folder.path)
        let chunks = try (0..<2).map { try stored("\($0)", seed: UInt64($0 + 1)) }
        let locations = try await store.store(chunks)
        let ends = locations.map { $0.offset + UInt64($0.length) }
        // At the beginning of a process there is no memory: EIO.
        let pack = folder.path + "/0000000000000001.pack"
        try Files.remove(pack)
        try #require(symlink("/proc/self/mem", pack) == 0)
        #expect(Files.readFailure(pack, at: Int(locations[0].offset)) == EIO)
        #expect(ends.allSatisfy { store.hasRecord(in: 1, endingAt: $0) })
        for examining in [false, true] {
            let read = try await store.read(requests([chunks[0]], [locations[0]]), examining: examining)
            #expect(read.map(\.isDamaged) == [true])
            #expect(read.allSatisfy { $0.data.allSatisfy { $0 == 0 } })
            // Of the other one nobody knows.
            #expect(ends.map { store.hasRecord(in: 1, endingAt: $0) } == [false, true])
        }
        await store.close()
    }

    @Test func `a removed pack that many have read at once is not held open`() async throws {
        let folder = try TemporaryFolder()
        // Each in a pack of its own.
        let store = try FolderChunkStore(folder: folder.path, packLimit: 1)
        let chunks = try (0..<40).map { try stored("\($0)", seed: UInt64($0 + 1)) }
        for chunk in chunks {
            let wanted = requests([chunk], try await store.store([chunk]))
            // Only a pack that is not added to any more is removed.
            _ = try await store.store([try stored("next")])
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<8 { group.addTask { _ = try? await store.read(wanted, examining: true) } }
                group.addTask { try? await store.remove(wanted[0].location.pack) }
            }
            #expect(!store.hasPack(wanted[0].location.pack))
        }
        try eventually("no removed pack is open") {
            let open = try Files.names(in: "/proc/self/fd").compactMap { try? Files.target(of: "/proc/self/fd/\($0)") }
            return !open.contains { $0.hasPrefix(folder.path) && $0.hasSuffix(" (deleted)") }
        }
        await store.close()
    }

    @Test func `a store tells what its disk has room for`() async throws {
        let folder = try TemporaryFolder()
        let store = try FolderChunkStore(folder: folder.path)
        let free = try #require(await store.freeBytes())
        #expect(free > 0)
        await store.close()
    }

    @Test func `a pack of the first format version is read, repaired, and not added to`() async throws {
        let folder = try TemporaryFolder()
        let chunks = try (0..<2).map { try stored("\($0)", seed: UInt64($0 + 1)) }
        let old: [ChunkLocation]
        do {
            let store = try FolderChunkStore(folder: folder.path)
            old = try await store.store(chunks)
            await store.close()
        }
        let pack = folder.path + "/0000000000000001.pack"
        var bytes = try Files.read(pack)
        bytes[11] = 1
        for location in old {
            let start = Int(location.offset)
            bytes[start + 5] = 0
            let checked = bytes[start..<start + 56] + bytes[start + 64..<start + Int(location.length)]
            bytes.replaceSubrange(start + 56..<start + 64, with: Array(SHA256.hash(data: Array(checked))).prefix(8))
        }
        try Files.write(bytes + [0, 0, 0], to: pack)
        let store = try await reopened(folder.path)
        #expect(try Files.read(pack) == bytes)
        let more = try stored("more", seed: 50)
        let new = try await store.store([more])
        #expect(new.map(\.pack) == [2])
        let read = try await store.read(requests(chunks + [more], old + new), examining: true)
        #expect(read.map(\.data) == (chunks + [more]).map(\.data))
        #expect(read.allSatisfy { !$0.isDamaged })
        #expect(try Files.read(pack) == bytes)
        try overwrite(pack, at: bytes.count - 1, with: [~bytes[bytes.count - 1]])
        #expect(try await store.read(requests(chunks, old), examining: true).map(\.isDamaged) == [false, true])
        await store.close()
    }

    @Test func `large and small records lie where they are said to`() async throws {
        let folder = try TemporaryFolder()
        let store = try FolderChunkStore(folder: folder.path)
        let sizes =
            [1, 16 * 1024, 100, 262_144, 262_144, 5, 16 * 1024 - 1, 300, 300] + [Int](repeating: 10_000, count: 40)
        let chunks = try sizes.enumerated().map { try stored("\($0)", size: $1, seed: UInt64($0 + 1)) }
        let locations = try await store.store(chunks)
        let read = try await store.read(requests(chunks, locations), examining: true)
        #expect(read.map(\.data) == chunks.map(\.data))
        #expect(read.allSatisfy { !$0.isDamaged })
        let end = try #require(locations.last)
        let size = try Files.status(folder.path + "/0000000000000001.pack").st_size
        #expect(size == Int(end.offset) + Int(end.length))
        await store.close()
    }

    @Test func `a record under another name is damaged`() async throws {
        let folder = try TemporaryFolder()
        let store = try FolderChunkStore(folder: folder.path)
        let location = try #require(try await store.store([try stored("a")]).first)
        let other = try #require(chunk("b"))
        let read = try await store.read([ChunkRequest(chunk: other, location: location)], examining: false)
        #expect(read.map(\.isDamaged) == [true])
        // Whose it is has it.
        let again = try await store.read([ChunkRequest(chunk: other, location: location)], examining: true)
        #expect(again.map(\.isDamaged) == [true])
        #expect(store.hasRecord(in: 1, endingAt: location.offset + UInt64(location.length)))
        let beyond = ChunkLocation(pack: 1, offset: 100_000, length: 100)
        await #expect(throws: ChunkStoreError.missing(pack: 1)) {
            _ = try await store.read([ChunkRequest(chunk: other, location: beyond)], examining: false)
        }
        await #expect(throws: ChunkStoreError.missing(pack: 9)) {
            let elsewhere = ChunkLocation(pack: 9, offset: 16, length: 100)
            _ = try await store.read([ChunkRequest(chunk: other, location: elsewhere)], examining: false)
        }
    }

    @Test func `a pack that a crash left without its header is left alone`() async throws {
        let folder = try TemporaryFolder()
        try Files.write([1, 2, 3], to: folder.path + "/0000000000000001.pack")
        let store = try FolderChunkStore(folder: folder.path)
        let locations = try await store.store([try stored("a")])
        #expect(locations.map(\.pack) == [2])
    }

    @Test func `many small writes at the same time all get their own place`() async throws {
        let folder = try TemporaryFolder()
        let store = try FolderChunkStore(folder: folder.path)
        let chunks = try (0..<300).map { try stored("\($0)", size: 100, seed: UInt64($0 + 1)) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for chunk in chunks {
                group.addTask {
                    let locations = try await store.store([chunk])
                    let requests = locations.map { ChunkRequest(chunk: chunk.chunk, location: $0) }
                    let read = try await store.read(requests, examining: true)
                    #expect(read.map(\.data) == [chunk.data])
                    #expect(read.allSatisfy { !$0.isDamaged })
                }
            }
            try await group.waitForAll()
        }
    }

    @Test(.enabled(if: SmallDisk.isAvailable, "mounting a small disk needs root"))
    func `a full disk refuses, leaves nothing half-written, and is used again when there is room`() async throws {
        let disk = try SmallDisk(bytes: 512 * 1024)
        let store = try FolderChunkStore(folder: disk.path + "/packs")
        let first = try stored("first", size: 100_000)
        var locations = try await store.store([first])
        let big = try stored("big", size: 250_000, seed: 2)
        let filler = disk.path + "/filler"
        try Files.write([UInt8](repeating: 1, count: 250_000), to: filler)
        let pack = disk.path + "/packs/0000000000000001.pack"
        let size = try Files.status(pack).st_size
        await #expect(throws: ChunkStoreError.noSpace) { try await store.store([big]) }
        #expect(try Files.status(pack).st_size == size)
        let small = try stored("small", size: 100, seed: 3)
        locations += try await store.store([small])
        try Files.remove(filler)
        locations += try await store.store([big])
        let read = try await store.read(requests([first, small, big], locations), examining: true)
        #expect(read.map(\.data) == [first.data, small.data, big.data])
        await store.close()
    }
}
