import Glibc
import Replica
import TestSupport
import Testing
import UbiquityModel

/// Folders whose items are in the cloud only, as the state database keeps them.
@Suite struct PopulationTests {
    let scratch: ScratchFolder
    let database: StateDatabase
    private let rootKey = evidence(1000).key

    init() throws {
        scratch = try ScratchFolder()
        database = try StateDatabase(path: scratch.appending("state.sqlite"))
        try database.beginListing()
    }

    private func folder(_ number: UInt64, _ text: String, in parent: ItemID = .root) throws -> RemoteItem {
        var folder = try remoteFile(number, text, in: parent)
        folder.content = .folder
        return folder
    }

    /// A folder in the root, two files and a folder in it.
    private func listed() throws -> (top: RemoteItem, below: [RemoteItem]) {
        let top = try folder(1, "top")
        let below = [
            try remoteFile(2, "b", in: top.id), try folder(3, "c", in: top.id), try remoteFile(4, "a", in: top.id),
        ]
        try database.write(listing: [top], manifests: [:], complete: [.root])
        try database.write(listing: below, manifests: [:], complete: [top.id])
        return (top, below)
    }

    @Test func `the first listing begins with the root, once, and goes on with the folders that it finds`() throws {
        #expect(try database.unlisted() == [.root])
        #expect(try database.unpopulatedFolders(root: rootKey) == [rootKey: .root])
        let (top, below) = try listed()
        #expect(try database.unlisted() == [below[1].id])
        #expect(try database.isUnpopulated(top.id) && database.isUnpopulated(below[1].id))
        try database.write(listing: [], manifests: [:], complete: [below[1].id])
        try database.beginListing()
        #expect(try database.unlisted() == [])
    }

    @Test func `a replica that knew something before is not listed anew`() throws {
        let other = try StateDatabase(path: scratch.appending("other.sqlite"))
        try other.write(remote: [try remoteFile(1, "file")], position: LogPosition(counter: 1, hash: [1]))
        try other.beginListing()
        #expect(try other.unlisted() == [])
        #expect(try other.unpopulatedFolders(root: rootKey) == [:])
    }

    @Test func `what is listed is known by name and not pending; what is here is no longer the cloud's alone`() throws {
        let (top, below) = try listed()
        #expect(try database.differing(limit: 10) == [])
        #expect(
            try database.cloudOnlyEntries(of: top.id) == [
                CloudEntry(id: below[2].id, name: name("a"), kind: .file),
                CloudEntry(id: below[0].id, name: name("b"), kind: .file),
                CloudEntry(id: below[1].id, name: name("c"), kind: .folder),
            ]
        )
        #expect(try database.cloudOnly(at: below[2].place) == below[2])
        try database.write(synced: [SyncedItem(below[2], local: evidence(4))])
        #expect(try database.cloudOnly(at: below[2].place) == nil)
        #expect(try database.cloudOnlyEntries(of: top.id, limit: 1).map(\.name) == [name("b")])
        // From now on it is followed like any other.
        var changed = below[2]
        changed.position += 1
        changed.attributes.mode = 0o600
        try database.write(remote: [changed], position: nil)
        #expect(try database.differing(limit: 10) == [changed.id])
    }

    /// Git makes a pack under a passing name and removes it while it is being sent: it must not be listed once it is gone here.
    @Test func `what this device is just sending is not the cloud's alone`() throws {
        let (top, below) = try listed()
        let sent = SentRevision(revision: .random(), content: nil)
        try database.write(sending: [(item: below[2].id, sent: sent)])
        #expect(try database.cloudOnly(at: below[2].place) == nil)
        #expect(try database.cloudOnlyEntries(of: top.id).map(\.name) == [name("b"), name("c")])
        // Once it was answered without a row of what is here, it is.
        var changes = SyncedChanges()
        changes.answered = [below[2].id]
        try database.apply(changes)
        #expect(try database.cloudOnly(at: below[2].place) == below[2])
    }

    /// The answer to a commit was lost with the service, and the file was renamed over another: nobody asks for that name again.
    @Test func `what this device has sent without an answer is pending until it is known what became of it`() throws {
        let (top, _) = try listed()
        let own = try remoteFile(9, "own", in: top.id)
        let sent = SentRevision(revision: .random(), content: nil)
        try database.write(sending: [(item: own.id, sent: sent)])
        #expect(try database.differing(limit: 10) == [])
        try database.write(remote: [own], position: nil)
        #expect(try database.differing(limit: 10) == [own.id])
        // Answered with nothing of it here: it is the cloud's alone, like all that was never here.
        var changes = SyncedChanges()
        changes.answered = [own.id]
        try database.apply(changes)
        #expect(try database.differing(limit: 10) == [])
        #expect(try database.cloudOnly(at: own.place) == own)
    }

    @Test func `a new folder of an unpopulated one is unpopulated, a deleted one is nothing`() throws {
        let (top, below) = try listed()
        let fresh = try folder(7, "fresh", in: below[1].id)
        try database.write(remote: [fresh, try remoteFile(8, "in it", in: fresh.id)], position: nil)
        #expect(try database.isUnpopulated(fresh.id))
        #expect(try database.differing(limit: 10) == [])
        var deleted = fresh
        deleted.position += 1
        deleted.isDeleted = true
        try database.write(remote: [deleted], position: nil)
        #expect(try !database.isUnpopulated(fresh.id))
        #expect(try database.cloudOnlyEntries(of: below[1].id) == [])
        // One that comes to lie where all is here has to come here.
        var moved = below[1]
        moved.position += 1
        moved.place = Place(parent: ItemID(high: 5, low: 5), name: try name("moved"))
        try database.write(remote: [moved], position: nil)
        #expect(try database.differing(limit: 10) == [moved.id])
        #expect(try database.cloudOnlyEntries(of: top.id).count == 2)
    }

    @Test func `what was here and is still in the cloud comes back by itself`() throws {
        let (_, below) = try listed()
        try database.write(synced: [SyncedItem(below[0], local: evidence(2))])
        try database.apply(SyncedChanges(removals: [below[0].id]))
        #expect(try database.differing(limit: 10) == [below[0].id])
    }

    @Test func `a folder that is to be all here has everything pending`() throws {
        let (top, below) = try listed()
        try database.write(synced: [SyncedItem(below[0], local: evidence(2))])
        try database.setPopulated([top.id])
        #expect(try database.differing(limit: 10) == [below[1].id, below[2].id])
        #expect(try !database.isUnpopulated(top.id))
    }

    @Test func `a database of the first version is brought up to this one`() throws {
        let path = scratch.appending("old.sqlite")
        let item = try remoteFile(1, "file")
        do {
            let old = try StateDatabase(path: path)
            try old.write(remote: [item], position: nil)
            try old.close()
        }
        try succeed(
            "sqlite3",
            path,
            """
            DROP TABLE unpopulated; DROP TABLE unlisted; DROP INDEX remoteChildren;
            CREATE INDEX remotePlace ON remote (parent, name); ALTER TABLE sending DROP COLUMN boot;
            ALTER TABLE sending DROP COLUMN target;
            DROP INDEX syncedContent; ALTER TABLE synced DROP COLUMN used; ALTER TABLE ranges DROP COLUMN bytes;
            DROP INDEX remoteFolded; ALTER TABLE remote DROP COLUMN folded;
            PRAGMA user_version = 1;
            """
        )
        let database = try StateDatabase(path: path)
        try database.beginListing()
        #expect(try database.unlisted() == [])
        #expect(try database.remote(at: item.place) == [item])
        #expect(try database.remoteChildren(of: .root) == [item])
    }
}
