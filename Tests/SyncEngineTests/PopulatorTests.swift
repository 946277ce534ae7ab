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
        let populator = Populator(
            replica: replica,
            known: KnownRevisions(),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
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
}
