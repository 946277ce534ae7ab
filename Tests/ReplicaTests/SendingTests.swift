import Replica
import Testing
import UbiquityModel

/// What the state database knows of what was sent and is not answered.
@Suite struct SendingTests {
    let scratch: ScratchFolder
    let database: StateDatabase

    init() throws {
        scratch = try ScratchFolder()
        database = try StateDatabase(path: scratch.appending("state.sqlite"))
    }

    @Test func `what was sent stays known until it is answered`() throws {
        let item = try remoteFile(1, "file")
        let (first, second) = (
            SentRevision(revision: .random(), content: try contentID(1)),
            SentRevision(revision: .random(), content: try contentID(2))
        )
        try database.write(sending: [(item.id, first)])
        try database.write(sending: [(item.id, second), (ItemID(high: 2, low: 2), first)])
        #expect(
            try StateDatabase(path: scratch.appending("state.sqlite")).sending() == [
                item.id: second, ItemID(high: 2, low: 2): first,
            ]
        )
        try database.apply(SyncedChanges(upserts: [SyncedItem(item, local: nil)], answered: [item.id]))
        #expect(try database.sending() == [ItemID(high: 2, low: 2): first])
    }

    @Test func `a link's target that was sent stays known until it is answered`() throws {
        let (link, file) = (ItemID(high: 1, low: 1), ItemID(high: 2, low: 2))
        let first = SentLink(operation: .random(), target: Array("there".utf8))
        let second = SentLink(operation: .random(), target: Array("elsewhere".utf8))
        let revision = SentRevision(revision: .random(), content: try contentID(1))
        try database.write(sending: [(file, revision)])
        try database.write(sentLinks: [(link, first)])
        try database.write(sentLinks: [(link, second)])
        let other = try StateDatabase(path: scratch.appending("state.sqlite"))
        #expect(try other.sentLinks() == [link: second])
        #expect(try other.sending() == [file: revision])
        try database.apply(SyncedChanges(answered: [link]))
        #expect(try database.sentLinks() == [:])
        #expect(try database.sending() == [file: revision])
    }

    @Test func `a deletion that was sent stays known until it is answered, whatever becomes of its content`() throws {
        let (item, other) = (ItemID(high: 1, low: 1), ItemID(high: 2, low: 2))
        let first = SentDeletion(operation: .random(), base: nil)
        let second = SentDeletion(operation: .random(), base: .random(), isLeaving: true)
        let revision = SentRevision(revision: .random(), content: try contentID(1))
        try database.write(sending: [(item, revision)])
        try database.write(sentDeletions: [(item, first), (other, first)])
        try database.write(sentDeletions: [(item, second)])
        let again = try StateDatabase(path: scratch.appending("state.sqlite"))
        #expect(try again.sentDeletions() == [item: second, other: first])
        try database.apply(SyncedChanges(answered: [other], answeredDeletions: [item]))
        #expect(try database.sentDeletions() == [other: first])
        #expect(try database.sending() == [item: revision])
    }
}
