import Dispatch
import Foundation
import Replica
import Synchronization
import Testing
import UbiquityModel

@Suite struct StateDatabaseTests {
    let scratch: ScratchFolder
    let database: StateDatabase

    init() throws {
        scratch = try ScratchFolder()
        database = try StateDatabase(path: scratch.appending("state.sqlite"))
    }

    @Test func `names that are asked for together are those of the moment`() throws {
        let items = try (1...40).map { try remoteFile($0, "file \($0)") }
        try database.write(remote: items, position: nil)
        try database.write(synced: items[..<20].map { SyncedItem($0, local: evidence($0.id.low)) })
        let database = database
        let isRight = Mutex(false)
        let done = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            database.readInBursts()
            database.readingTogether {
                isRight.withLock { isRight in
                    isRight = (try? Self.agree(database, items, synced: 20)) ?? false
                    // Written in the middle.
                    try? database.write(synced: [SyncedItem(items[20], local: nil)])
                    isRight = isRight && (try? Self.agree(database, items, synced: 21)) ?? false
                }
            }
            database.endReading()
            done.signal()
        }
        done.wait()
        #expect(isRight.withLock { $0 })
    }

    private static func agree(_ database: StateDatabase, _ items: [RemoteItem], synced: Int) throws -> Bool {
        try items.enumerated().allSatisfy { index, item in
            let rows = try database.synced(at: item.place)
            return try rows.map(\.id) == (index < synced ? [item.id] : []) && database.remote(at: item.place) == [item]
        }
    }

    private var version: ItemVersion {
        get throws {
            ItemVersion(
                revision: RevisionID(high: 4, low: 4),
                kind: .conflict,
                content: try contentID(9),
                size: 12,
                edited: Timestamp(nanoseconds: -5),
                modified: someTime,
                device: "läptop",
                name: try Name(bytes: [0xFF, 0x20])
            )
        }
    }

    @Test func `every kind of item comes back as it was written`() throws {
        var file = try remoteFile(1, "file")
        file.attributes.extended = [Array("user.a".utf8): [], Array("user.b".utf8): [0, 255]]
        file.conflicts = [try version, try version]
        file.position = .max
        var announced = try remoteFile(2, "announced")
        announced.content = .file(FileContent(revision: .random(), content: nil, size: 5))
        var folder = try remoteFile(3, "folder")
        folder.content = .folder
        var link = try remoteFile(4, "link")
        link.content = .symlink(target: [0xFF, 0x2F])
        var deleted = try remoteFile(5, "deleted")
        deleted.isDeleted = true
        deleted.author = "nul\0inside"
        let all = [file, announced, folder, link, deleted]
        try database.write(remote: all, position: nil)
        for item in all {
            #expect(try database.remote(item.id) == item)
            for local in [nil, evidence(item.id.low)] {
                let synced = SyncedItem(item, local: local)
                try database.write(synced: [synced])
                #expect(try database.synced(item.id) == synced)
            }
        }
        #expect(try database.remoteItems(after: nil, limit: 100).map(\.id) == all.map(\.id).sorted())
        #expect(try database.remoteItems(after: all[1].id, limit: 2).map(\.id) == [all[2].id, all[3].id])
        #expect(try database.conflicts() == [file])
        #expect(try database.remote(.random()) == nil)
    }

    @Test func `who reads in bursts sees what was written before each read, by whomever`() throws {
        let (first, second) = (try remoteFile(1, "first"), try remoteFile(2, "second"))
        let database = database
        let result = Mutex<[[ItemID]]>([])
        let (mayGoOn, hasRead) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        @Sendable func read() {
            result.withLock { $0.append((try? database.remoteItems(after: nil, limit: 9).map(\.id)) ?? []) }
        }
        let reader = Thread {
            database.readInBursts()
            read()
            hasRead.signal()
            mayGoOn.wait()
            // Another thread has written meanwhile, then this one does.
            read()
            try? database.write(remote: [second], position: nil)
            read()
            database.endReading()
            read()
            hasRead.signal()
        }
        reader.start()
        hasRead.wait()
        try database.write(remote: [first], position: nil)
        mayGoOn.signal()
        hasRead.wait()
        #expect(result.withLock { $0 } == [[], [first.id], [first.id, second.id], [first.id, second.id]])
        #expect(try database.remoteItems(after: nil, limit: 9).count == 2)
        try database.close()
    }

    @Test func `a server that is back at an older content is sent the newer one again`() throws {
        var newer = try remoteFile(1, "file")
        newer.position = 9
        var older = newer
        older.position = 4
        older.content = .file(FileContent(revision: .random(), content: try contentID(40), size: 3))
        let row = SyncedItem(newer, local: evidence(1))
        try database.apply(SyncedChanges(upserts: [row]), remote: [newer])
        try database.rewrite(remote: [older], manifests: [:])
        #expect(try database.remote(newer.id) == older)
        let now = try #require(try database.synced(newer.id))
        #expect(now.content == older.content)
        // The file here no longer counts as the agreed one.
        #expect(now.local?.key == row.local?.key)
        #expect(now.local?.changed != row.local?.changed)
    }

    @Test func `what a package was is known when its server has an older one, or none`() throws {
        let content = try contentID(41)
        var newer = try remoteFile(1, "package.rtfd")
        newer.position = 9
        newer.content = .file(FileContent(revision: .random(), content: content, size: 30, isPackage: true))
        var older = newer
        older.position = 4
        older.content = .file(FileContent(revision: .random(), content: try contentID(40), size: 20, isPackage: true))
        let manifest = Manifest(entries: [
            Manifest.Entry(chunk: try #require(ChunkID(bytes: [UInt8](repeating: 7, count: 32))), length: 30)
        ])
        let revision = try #require(newer.content.revision)
        try database.apply(SyncedChanges(upserts: [SyncedItem(newer, local: evidence(1))]), remote: [newer])
        try database.write(manifests: [content: manifest])
        #expect(try database.former(revision) == nil)
        try database.rewrite(remote: [older], manifests: [:])
        let former = try #require(try database.former(revision))
        #expect(former.item == newer.id && ItemContent.file(former.file) == newer.content)
        #expect(try database.wasFormer(content))
        try database.removeRemote([newer.id])
        try database.pruneContents()
        #expect(try database.manifest(content) == manifest)
        #expect(try database.former(try #require(older.content.revision))?.file.size == 20)
    }

    @Test func `what a server has lost is not taken for agreed on, and its answers are not either`() throws {
        var item = try remoteFile(1, "file")
        item.position = 9
        let row = SyncedItem(item, local: evidence(1))
        let answered = LogPosition(counter: 9, hash: [UInt8](repeating: 2, count: 32))
        try database.apply(SyncedChanges(upserts: [row]), remote: [item], answered: answered)
        #expect(try database.answeredPosition() == answered)
        try database.removeRemote([item.id], position: LogPosition(counter: 4, hash: [UInt8](repeating: 1, count: 32)))
        #expect(try database.answeredPosition() == nil)
        let now = try #require(try database.synced(item.id))
        guard case .file(let file) = now.content else {
            Issue.record("it is a file")
            return
        }
        // Whoever sends another content of that item must not replace this one.
        #expect(file.content == nil && file.revision == item.content.revision)
        #expect(now.local?.changed != row.local?.changed)
    }

    @Test func `what the server has told of its end is kept, however the answers come`() throws {
        func position(_ counter: UInt64) -> LogPosition {
            LogPosition(counter: counter, hash: [UInt8](repeating: UInt8(counter), count: 32))
        }
        let item = try remoteFile(1, "file")
        try database.write(remote: [item], position: position(3))
        #expect(try database.answeredPosition() == nil)
        // Cut off after this page, it asks for what follows the third; what was in those to come may be before that by then.
        try database.write(remote: [item], position: position(3), head: position(9))
        #expect(try database.answeredPosition() == position(9))
        try database.write(remote: [item], position: position(5), head: position(8))
        #expect(try database.answeredPosition() == position(9))
        #expect(try database.position() == position(5))
        try database.removeRemote([], position: position(4))
        #expect(try database.answeredPosition() == nil)
    }

    @Test func `a comparison that did not come to its end is known to have begun`() throws {
        let item = try remoteFile(1, "file")
        try database.write(remote: [item], position: LogPosition(counter: 9, hash: [UInt8](repeating: 2, count: 32)))
        #expect(try !database.isComparing())
        try database.rewrite(remote: [item], manifests: [:])
        // Its position may be one that the server knows again some day.
        try database.apply(SyncedChanges(), remote: [item], answered: .beginning)
        #expect(try database.isComparing())
        try database.removeRemote([], position: LogPosition(counter: 4, hash: [UInt8](repeating: 1, count: 32)))
        #expect(try !database.isComparing())
    }

    @Test func `items are found by place, folder and inode`() throws {
        let folder = ItemID(high: 9, low: 9)
        var items = try (1...4).map { try remoteFile(UInt64($0), "name \($0)", in: folder) }
        items[1].place.name = items[0].place.name
        items[2].isDeleted = true
        try database.write(remote: items, position: nil)
        #expect(try database.remote(at: items[0].place) == [items[0], items[1]])
        #expect(try database.remoteChildren(of: folder) == [items[0], items[1], items[3]])
        let synced = [SyncedItem(items[0], local: evidence(1)), SyncedItem(items[3], local: evidence(1))]
        try database.write(synced: synced)
        #expect(try database.synced(at: items[3].place) == [synced[1]])
        #expect(try database.synced(at: items[2].place) == [])
        #expect(try database.syncedChildren(of: folder) == synced)
        #expect(try database.synced(key: evidence(1).key) == synced)
        #expect(try database.synced(key: evidence(2).key) == [])
    }

    @Test func `paths and subtrees go through all levels`() throws {
        var items = try (1...3).map {
            try remoteFile(UInt64($0), "\($0)", in: $0 == 1 ? .root : ItemID(high: 0, low: UInt64($0 - 1)))
        }
        items[0].content = .folder
        items[1].content = .folder
        try database.write(remote: items, position: nil)
        try database.write(synced: items.map { SyncedItem($0, local: nil) })
        let path = ItemPath([try name("1"), try name("2"), try name("3")])
        #expect(try database.syncedPath(of: items[2].id) == path)
        #expect(try database.remotePath(of: items[2].id) == path)
        #expect(try database.syncedPath(of: .root) == .root)
        #expect(try database.syncedSubtree(of: .root).map(\.id) == items.map(\.id))
        #expect(try database.syncedSubtree(of: items[1].id).map(\.id) == [items[2].id])
        #expect(try database.syncedOrphans() == [])
        try database.apply(SyncedChanges(removals: [items[0].id]))
        #expect(try database.syncedPath(of: items[2].id) == nil)
        #expect(try database.syncedOrphans() == [items[1].id])
    }

    /// Each change of a remote item that agreed makes it differ, and agreeing on it ends that.
    @Test(arguments: Change.allCases)
    func `what differs is pending until it is agreed on`(change: Change) throws {
        let before = try remoteFile(1, "before")
        try database.write(remote: [before], position: nil)
        #expect(try database.differing(limit: 10) == [before.id])
        try database.write(synced: [SyncedItem(before, local: evidence(1))])
        #expect(try database.differing(limit: 10) == [])
        let after = try change.applied(to: before)
        try database.write(remote: [after], position: nil)
        let expected = change == .nothingOfThese ? [] : [after.id]
        #expect(try database.differing(limit: 10) == expected)
        #expect(try database.isDiffering(after.id) == !expected.isEmpty)
        if after.isDeleted {
            try database.apply(SyncedChanges(removals: [after.id]))
        } else {
            try database.write(synced: [SyncedItem(after, local: nil)])
        }
        #expect(try database.differing(limit: 10) == [])
    }

    enum Change: CaseIterable {
        case name, parent, revision, content, size, modified, mode, extended, kind, deleted, nothingOfThese

        func applied(to item: RemoteItem) throws -> RemoteItem {
            var item = item
            item.position += 1
            guard case .file(var file) = item.content else { return item }
            switch self {
            case .name: item.place.name = try Name("after")
            case .parent: item.place.parent = ItemID(high: 5, low: 5)
            case .revision: file.revision = RevisionID(high: 6, low: 6)
            case .content: file.content = nil
            case .size: file.size += 1
            case .modified: item.attributes.modified.nanoseconds += 1
            case .mode: item.attributes.mode = 0o600
            case .extended: item.attributes.extended = [[1]: [2]]
            case .kind, .deleted, .nothingOfThese: break
            }
            item.content = self == .kind ? .folder : .file(file)
            item.isDeleted = self == .deleted
            if self == .nothingOfThese {
                item.author = "other"
                item.edited.nanoseconds += 1
            }
            return item
        }
    }

    @Test func `synced without a remote row is pending, a tombstone without a synced one is not`() throws {
        var item = try remoteFile(1, "one")
        item.isDeleted = true
        try database.write(remote: [item], position: nil)
        #expect(try database.differing(limit: 1) == [])
        item.isDeleted = false
        item.position += 1
        try database.apply(SyncedChanges(upserts: [SyncedItem(item, local: nil)]), remote: [item])
        #expect(try database.differing(limit: 1) == [])
        try database.removeRemote([item.id])
        let difference = try #require(try database.differences(limit: 1).first)
        #expect(difference.remote == nil && difference.synced?.id == item.id)
        try database.apply(SyncedChanges(removals: [item.id]))
        #expect(try database.differing(limit: 1) == [])
    }

    @Test func `an older state never replaces a newer one, except in a listing`() throws {
        var item = try remoteFile(1, "new")
        item.position = 10
        try database.write(remote: [item], position: nil)
        var older = item
        older.position = 9
        older.place.name = try name("old")
        try database.write(remote: [older], position: nil)
        #expect(try database.remote(item.id) == item)
        try database.rewrite(remote: [older], manifests: [:])
        #expect(try database.remote(item.id) == older)
    }

    /// Random writes, against two dictionaries.
    @Test(arguments: 1...4 as ClosedRange<UInt64>)
    func `what is pending is always the difference of the trees`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        var remote: [ItemID: RemoteItem] = [:]
        var synced: [ItemID: SyncedItem] = [:]
        for step in 0..<150 {
            let number = UInt64.random(in: 1...12, using: &generator)
            var item = try remoteFile(number, "name \(Int.random(in: 0...2, using: &generator))")
            item.position = UInt64(step)
            item.isDeleted = Int.random(in: 0...3, using: &generator) == 0
            switch Int.random(in: 0...4, using: &generator) {
            case 0, 1:
                try database.write(remote: [item], position: nil)
                remote[item.id] = item
            case 2:
                let row = SyncedItem(item, local: nil)
                try database.write(synced: [row])
                synced[item.id] = row
            case 3:
                try database.apply(SyncedChanges(removals: [item.id]))
                synced[item.id] = nil
            default:
                try database.removeRemote([item.id])
                let row = synced[item.id]
                synced[item.id] = row?.agreed(withRestored: nil, known: remote[item.id]) ?? row
                remote[item.id] = nil
            }
        }
        let ids = Set(remote.keys).union(synced.keys).sorted()
        let expected = ids.filter { id in
            let live = remote[id].flatMap { $0.isDeleted ? nil : SyncedItem($0, local: nil) }
            return live != synced[id]
        }
        #expect(try database.differing(limit: 100) == expected)
        var paged: [ItemID] = []
        while true {
            let page = try database.differences(after: paged.last, limit: 3)
            guard !page.isEmpty else { break }
            for difference in page {
                #expect(difference.remote == remote[difference.id] && difference.synced == synced[difference.id])
            }
            paged += page.map(\.id)
        }
        #expect(paged == expected)
    }

    @Test func `ten thousand rows are written in one go and counted`() throws {
        let folder = ItemID(high: 9, low: 9)
        let items = try (1...10_000).map { try remoteFile(UInt64($0), "file \($0)", in: folder) }
        let clock = ContinuousClock()
        let duration = try clock.measure { try database.write(remote: items, position: .beginning) }
        // 0.15 s in a release build; an order of magnitude for builds without optimisation on busy machines.
        #expect(duration < .seconds(10))
        try database.write(synced: items.prefix(4000).map { SyncedItem($0, local: evidence($0.id.low)) })
        let counts = try database.counts()
        #expect(counts.remote == 10_000 && counts.synced == 4000 && counts.pending == 6000 && counts.dataless == 4000)
        #expect(counts.datalessBytes == (1...4000).reduce(0) { $0 + Int64($1) })
    }

    @Test func `manifests are kept as long as a tree names their content`() throws {
        let chunk = try #require(ChunkID(bytes: [UInt8](repeating: 3, count: 32)))
        let manifest = Manifest(entries: [.init(chunk: chunk, length: 7)])
        let named = try remoteFile(1, "one")
        guard case .file(let file) = named.content, let content = file.content else { return }
        try database.write(
            remote: [named],
            manifests: [content: manifest, try contentID(70): Manifest()],
            position: nil
        )
        try database.write(manifests: [try contentID(71): manifest])
        #expect(try database.manifest(try contentID(70)) == Manifest())
        try database.pruneContents(keeping: [try contentID(71)])
        #expect(try database.manifest(content) == manifest)
        #expect(try database.manifest(try contentID(70)) == nil)
        #expect(try database.manifest(try contentID(71)) == manifest)
        var deleted = named
        deleted.isDeleted = true
        deleted.position += 1
        try database.write(remote: [deleted], position: nil)
        try database.write(synced: [SyncedItem(named, local: nil)])
        try database.pruneContents()
        #expect(try database.manifest(content) == manifest, "it is still here")
        try database.apply(SyncedChanges(removals: [named.id]))
        try database.pruneContents()
        #expect(try database.manifest(content) == nil)
    }

    /// Ten of them are more than is kept without a look.
    private func longManifest() throws -> Manifest {
        let chunk = try #require(ChunkID(bytes: [UInt8](repeating: 3, count: 32)))
        return Manifest(entries: [Manifest.Entry](repeating: .init(chunk: chunk, length: 7), count: 60_000))
    }

    @Test func `what nothing names any more goes by itself when it is much`() throws {
        let manifest = try longManifest()
        let index = PackageIndex([])
        try database.pruneContentsIfMany()
        var item = try packageItem(1)
        for number in 1...10 as ClosedRange<UInt8> {
            let content = try contentID(number)
            item.position += 1
            item.content = .file(FileContent(revision: .random(), content: content, size: 1, isPackage: true))
            try database.write(packageIndexes: [content: index])
            try database.write(remote: [item], manifests: [content: manifest], position: nil)
        }
        let left = try (1...10 as ClosedRange<UInt8>).filter { try database.manifest(contentID($0)) != nil }
        // The look was at the eighth, and the last ones were written since.
        #expect(left == [8, 9, 10])
        #expect(try database.hasPackageIndex(contentID(10)))
    }

    @Test func `what is about to be named stays, and what a start finds goes if it is much`() throws {
        let manifest = try longManifest()
        try database.write(manifests: [try contentID(1): manifest])
        // A version that never looked may have left anything.
        try database.pruneContentsIfMany()
        #expect(try database.manifest(contentID(1)) == nil)
        for number in 2...9 as ClosedRange<UInt8> { try database.write(manifests: [try contentID(number): manifest]) }
        for number in 2...9 as ClosedRange<UInt8> { #expect(try database.manifest(contentID(number)) == manifest) }
        try database.pruneContentsIfMany()
        #expect(try database.manifest(contentID(2)) == manifest, "a look has just been taken")
        try database.close()
        let again = try StateDatabase(path: scratch.appending("state.sqlite"))
        for number in 10...12 as ClosedRange<UInt8> { try again.write(manifests: [try contentID(number): manifest]) }
        try again.pruneContentsIfMany()
        #expect(try again.manifest(contentID(2)) == nil && again.manifest(contentID(12)) == nil)
    }

    private func packageItem(_ number: UInt64, _ revision: RevisionID = .random()) throws -> RemoteItem {
        var item = try remoteFile(number, "package \(number).rtfd")
        let content = try contentID(UInt8(truncatingIfNeeded: revision.high))
        item.content = .file(FileContent(revision: revision, content: content, size: 30, isPackage: true))
        return item
    }

    @Test func `what a package was stays known for what was moved out of it without its content`() throws {
        let (first, second) = (RevisionID(high: 41, low: 1), RevisionID(high: 42, low: 1))
        let manifest = try longManifest()
        let row = SyncedItem(try packageItem(1, first), local: evidence(1))
        try database.apply(SyncedChanges(upserts: [row]), manifests: [try contentID(41): manifest])
        #expect(try database.former(first) == nil)
        // Its name, or whether its files are here, makes it no other.
        var moved = row
        moved.place.name = try name("other.rtfd")
        moved.local?.isDataless = false
        try database.write(synced: [moved, row])
        #expect(try database.former(first) == nil)
        try database.write(synced: [SyncedItem(try packageItem(1, second), local: evidence(1))])
        let former = try #require(try database.former(first))
        #expect(former.item == row.id && ItemContent.file(former.file) == row.content)
        try database.pruneContents()
        #expect(try database.manifest(contentID(41)) == manifest)
        // Also when the package is no more.
        try database.apply(SyncedChanges(removals: [row.id]))
        #expect(try database.former(second)?.item == row.id)
        #expect(try database.former(first)?.item == row.id)
    }

    @Test func `for a package that was all here, and for a file, nothing is remembered`() throws {
        let (first, second) = (RevisionID(high: 41, low: 1), RevisionID(high: 42, low: 1))
        var whole = evidence(1)
        whole.isDataless = false
        try database.write(synced: [SyncedItem(try packageItem(1, first), local: whole)])
        try database.write(synced: [SyncedItem(try packageItem(1, second), local: whole)])
        try database.apply(SyncedChanges(removals: [try packageItem(1).id]))
        #expect(try database.former(first) == nil && database.former(second) == nil)
        let file = try remoteFile(2, "file")
        // Beside a package, or nothing is looked for at all.
        try database.write(synced: [SyncedItem(try packageItem(1), local: whole), SyncedItem(file, local: evidence(2))])
        try database.apply(SyncedChanges(removals: [file.id]))
        #expect(try database.former(try #require(file.content.revision)) == nil)
    }

    @Test func `of each package the last revisions stay known`() throws {
        for number in 1...20 as ClosedRange<UInt64> {
            let revision = RevisionID(high: number, low: 0)
            try database.write(synced: [SyncedItem(try packageItem(1, revision), local: evidence(1))])
        }
        #expect(try database.former(RevisionID(high: 1, low: 0)) != nil)
        try database.pruneContents()
        let left = try (1...20 as ClosedRange<UInt64>).filter {
            try database.former(RevisionID(high: $0, low: 0)) != nil
        }
        #expect(left == Array(4...19))
    }

    @Test func `ranges belong to one revision and one generation`() throws {
        let item = ItemID(high: 1, low: 1)
        let old = somePlaceholder(size: 50)
        var newer = old
        newer.revision = RevisionID(high: 2, low: 0)
        var ranges = ByteRangeSet(0..<10)
        try database.write(ranges: ranges, item, old)
        ranges.insert(20..<30)
        try database.write(ranges: ranges, item, newer)
        #expect(try database.ranges(item, old) == nil)
        #expect(try database.ranges(item, newer) == ranges)
        // Given up and begun anew: what was here before is here no more.
        var again = newer
        again.generation += 1
        #expect(try database.ranges(item, again) == nil)
        try database.removeRanges([item])
        #expect(try database.ranges(item, newer) == nil)
    }

    @Test func `marks and what is known of the whole survive a restart`() throws {
        let ids = (1...3).map { ItemID(high: 0, low: UInt64($0)) }
        let position = LogPosition(counter: .max, hash: [UInt8](repeating: 5, count: 32))
        #expect(try database.position() == nil)
        #expect(try !database.wasStoppedCleanly())
        try database.setPinned(true, ids)
        try database.setPinned(false, [ids[1]])
        try database.setHeld(true, [ids[2]])
        try database.write(remote: [], position: position)
        try database.setStoppedCleanly(true)
        try database.setListed(true)
        try database.close()
        let again = try StateDatabase(path: scratch.appending("state.sqlite"))
        #expect(try again.pins() == [ids[0], ids[2]])
        #expect(try again.held() == [ids[2]])
        #expect(try again.position() == position)
        #expect(try again.wasStoppedCleanly())
        #expect(try again.isListed())
        #expect(try again.nonce() == nil)
    }

    @Test func `another program's file is refused`() throws {
        try scratch.write("other.sqlite", Array("no database at all, but long enough to look at".utf8))
        #expect(throws: ReplicaError.self) { _ = try StateDatabase(path: scratch.appending("other.sqlite")) }
    }

    @Test func `readers and writers on many threads see whole transactions`() throws {
        let pairs = try (0..<40).map { [try remoteFile(UInt64($0), "a"), try remoteFile(UInt64($0 + 1000), "b")] }
        DispatchQueue.concurrentPerform(iterations: 80) { index in
            do {
                if index % 2 == 0 {
                    try database.write(remote: pairs[index / 2], position: nil)
                } else {
                    let seen = try database.counts().remote
                    #expect(seen % 2 == 0)
                }
            } catch {
                Issue.record(error)
            }
        }
        #expect(try database.counts().remote == 80)
    }
}

func contentID(_ number: UInt8) throws -> ContentID {
    try #require(ContentID(bytes: [UInt8](repeating: number, count: 32)))
}

func remoteFile(_ number: UInt64, _ text: String, in parent: ItemID = .root) throws -> RemoteItem {
    RemoteItem(
        id: ItemID(high: 0, low: number),
        place: Place(parent: parent, name: try name(text)),
        content: .file(
            FileContent(
                revision: RevisionID(high: number, low: 1),
                content: try contentID(UInt8(truncatingIfNeeded: number)),
                size: Int64(number)
            )
        ),
        attributes: ItemAttributes(modified: someTime, mode: 0o644),
        position: number,
        author: "device",
        edited: someTime
    )
}

func evidence(_ number: UInt64) -> LocalEvidence {
    let bytes = withUnsafeBytes(of: number.littleEndian) { [UInt8](repeating: 1, count: 8) + Array($0) }
    guard let key = InodeKey(bytes: bytes) else { preconditionFailure("16 bytes are a key") }
    return LocalEvidence(key: key, size: 4, modified: someTime, changed: Timestamp(nanoseconds: 6), isDataless: true)
}
