import Foundation
import Glibc
import Logging
import Replica
import Synchronization
import Testing
import UbiquityModel

@testable import SyncEngine

/// Folders that populate themselves, in a real replica.
@Suite struct PopulatorTests {
    private func remote(_ number: UInt64, in parent: ItemID, _ content: ItemContent) throws -> RemoteItem {
        RemoteItem(
            id: ItemID(high: 7, low: number),
            place: Place(parent: parent, name: try Name("item \(number)")),
            content: content,
            attributes: ItemAttributes(modified: Timestamp(nanoseconds: 1), mode: 0o755),
            position: number,
            author: "device",
            edited: Timestamp(nanoseconds: 1)
        )
    }

    private func populator(_ replica: Replica) -> Populator {
        Populator(
            replica: replica,
            known: KnownRevisions(),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
    }

    /// `ls` beside what asks for names: an item is in the cloud's list until it is on the disk, and was missing from both.
    @Test func `whoever lists a folder sees all of it while its items come to be here`() throws {
        let path = "/var/tmp/ubiquity-test-\(RevisionID.random())"
        defer { try? FileManager.default.removeItem(atPath: path) }
        let replica = try Replica(directory: path)
        try replica.database.beginListing()
        let folders = try (1...300).map { try remote($0, in: .root, .folder) }
        let items = try folders.map { folder in
            try (1...6).map { try remote(folder.position * 1000 + $0, in: folder.id, .symlink(target: [0x78])) }
        }
        try replica.database.write(
            listing: folders + items.joined(),
            manifests: [:],
            complete: [.root] + folders.map(\.id)
        )
        let populator = populator(replica)
        try populator.load()
        for folder in folders { _ = try populator.populate(replica.tree.rootKey, folder.place.name) }
        let keys = try folders.map { try #require(populator.key(of: $0.id)) }

        let current = Atomic(0)
        let failure = Mutex<(any Error)?>(nil)
        let thread = Thread {
            do {
                for (key, items) in zip(keys, items) {
                    for item in items { _ = try populator.populate(key, item.place.name) }
                    current.add(1, ordering: .releasing)
                }
            } catch {
                failure.withLock { $0 = error }
                current.store(keys.count, ordering: .releasing)
            }
        }
        thread.start()
        while case let index = current.load(ordering: .acquiring), index < keys.count {
            // As the driver does: the cloud's first.
            var seen = Set(try populator.entries(of: keys[index]).map(\.name.description))
            let folder = "\(replica.treePath)/\(folders[index].place.name)"
            seen.formUnion(try FileManager.default.contentsOfDirectory(atPath: folder))
            try #require(seen == Set(items[index].map(\.place.name.description)))
        }
        #expect(failure.withLock { $0 } == nil)
        #expect(populator.takeMade().count == folders.count * 7)
    }

    /// Its former inode had become a package, on a disk that failed: it went on showing what the cloud has in the folder.
    @Test func `a folder that comes back as another inode shows its items in that one only`() throws {
        let path = "/var/tmp/ubiquity-test-\(RevisionID.random())"
        defer { try? FileManager.default.removeItem(atPath: path) }
        let replica = try Replica(directory: path)
        let populator = populator(replica)
        let folder = ItemID(high: 7, low: 1)
        let former = InodeKey(tag: 1, words: (2, 0, 0))
        let key = InodeKey(tag: 1, words: (3, 0, 0))
        populator.folderAppeared(former, folder)
        populator.folderAppeared(key, folder)
        #expect(populator.item(of: former) == nil)
        #expect(populator.item(of: key) == folder)
        #expect(populator.key(of: folder) == key)
    }

    /// A lookup had made it just before it was staged: what came into it later was never shown.
    @Test func `a folder that is not published after all shows its items where it was`() throws {
        let path = "/var/tmp/ubiquity-test-\(RevisionID.random())"
        defer { try? FileManager.default.removeItem(atPath: path) }
        let replica = try Replica(directory: path)
        let populator = populator(replica)
        let folder = ItemID(high: 7, low: 1)
        let former = InodeKey(tag: 1, words: (2, 0, 0))
        let key = InodeKey(tag: 1, words: (3, 0, 0))
        let staged = try replica.staging.makeFolder(mode: 0o755)
        populator.folderAppeared(former, folder)
        populator.folderAppeared(key, folder, staged: staged)
        populator.discarded(staged)
        #expect(populator.item(of: former) == folder)
        #expect(populator.item(of: key) == nil)
        #expect(populator.key(of: folder) == former)
    }

    /// `mv d was; mkdir d`, with the row written between two steps of the second lookup: the folder came back under its old name.
    @Test func `what was renamed at once does not come back while its row is written`() throws {
        let path = "/var/tmp/ubiquity-test-\(RevisionID.random())"
        defer { try? FileManager.default.removeItem(atPath: path) }
        let replica = try Replica(directory: path)
        try replica.database.beginListing()
        let folders = try (1...2000).map { try remote($0, in: .root, .folder) }
        try replica.database.write(listing: folders, manifests: [:], complete: [.root])
        let populator = populator(replica)
        try populator.load()

        let isOver = Atomic(false)
        let failure = Mutex<(any Error)?>(nil)
        let thread = Thread {
            while !isOver.load(ordering: .acquiring) {
                do {
                    let made = populator.takeMade()
                    var changes = SyncedChanges()
                    changes.upserts = made.map { SyncedItem($0.remote, local: LocalEvidence($0.state)) }
                    try replica.database.apply(changes, unpopulated: [])
                    populator.recorded(made)
                } catch {
                    failure.withLock { $0 = error }
                    return
                }
            }
        }
        thread.start()
        defer { isOver.store(true, ordering: .releasing) }
        var again: [Name] = []
        for folder in folders {
            let place = "\(replica.treePath)/\(folder.place.name)"
            try #require(try populator.populate(replica.tree.rootKey, folder.place.name))
            try #require(rename(place, place + " was") == 0)
            for _ in 1...20 {
                _ = try populator.populate(replica.tree.rootKey, folder.place.name)
                if access(place, F_OK) == 0 {
                    again.append(folder.place.name)
                    break
                }
            }
        }
        #expect(again == [])
        #expect(failure.withLock { $0 } == nil)
    }

    /// The engine has published it, a program has renamed it, and its row comes when the pass ends.
    @Test func `what was renamed while the engine has not written its row does not come back`() throws {
        let path = "/var/tmp/ubiquity-test-\(RevisionID.random())"
        defer { try? FileManager.default.removeItem(atPath: path) }
        let replica = try Replica(directory: path)
        try replica.database.beginListing()
        let items = try (1...2).map { try remote($0, in: .root, .symlink(target: [0x78])) }
        try replica.database.write(listing: items, manifests: [:], complete: [.root])
        let populator = populator(replica)
        try populator.load()
        let root = replica.tree.rootKey
        let staged = try items.map { try Preparation.stage($0, in: replica) }

        populator.willAppear(zip(items, staged).map { (item: $0.id, name: $1) })
        #expect(try populator.entries(of: root).count == 2, "none is published yet")
        try replica.staging.remove(staged[0])
        #expect(try populator.entries(of: root).map(\.id) == [items[1].id])
        _ = try populator.populate(root, items[0].place.name)
        #expect(access("\(replica.treePath)/\(items[0].place.name)", F_OK) != 0)
        // One that was asked for sooner than it was published is made.
        _ = try populator.populate(root, items[1].place.name)
        var status = stat()
        #expect(lstat("\(replica.treePath)/\(items[1].place.name)", &status) == 0)

        // It had no row after all, and has gone: the cloud has it still.
        populator.haveAppeared()
        _ = try populator.populate(root, items[0].place.name)
        #expect(lstat("\(replica.treePath)/\(items[0].place.name)", &status) == 0)
    }

    /// Nobody could have it otherwise until the pass has ended.
    @Test func `what the engine did not publish after all is made for whoever asks`() throws {
        let path = "/var/tmp/ubiquity-test-\(RevisionID.random())"
        defer { try? FileManager.default.removeItem(atPath: path) }
        let replica = try Replica(directory: path)
        try replica.database.beginListing()
        let item = try remote(1, in: .root, .folder)
        try replica.database.write(listing: [item], manifests: [:], complete: [.root])
        let populator = populator(replica)
        try populator.load()
        let staged = try Preparation.stage(item, in: replica)
        populator.willAppear([(item: item.id, name: staged)])
        populator.discarded(staged)
        try replica.staging.remove(staged)
        #expect(try populator.entries(of: replica.tree.rootKey).count == 1)
        _ = try populator.populate(replica.tree.rootKey, item.place.name)
        #expect(access("\(replica.treePath)/\(item.place.name)", F_OK) == 0)
    }
}
