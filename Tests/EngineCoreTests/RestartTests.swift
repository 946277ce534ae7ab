import Reconciliation
import Testing
import UbiquityModel

@testable import EngineCore

/// What a start has to know of the process before.
@Suite struct RestartTests {
    private let device = FakeDevice()

    /// A process with nothing in its memory but what the state database tells.
    private func start() -> Synchronizer<FakeDevice> {
        let synchronizer = device.makeSynchronizer()
        synchronizer.load(sentDeletions: device.sentDeletions)
        synchronizer.load(unwitnessed: device.unwitnessed.sorted())
        return synchronizer
    }

    private func connect(_ synchronizer: Synchronizer<FakeDevice>) {
        for event in [EngineCore.Event.started, .connected, .caughtUp] { synchronizer.handle(event) }
    }

    /// A program has written to a file.
    private func write(to place: LocalPlace, _ state: LocalState) -> LocalChange {
        LocalChange(
            aspects: .content,
            parent: place.folder,
            name: place.name,
            key: state.key,
            mayHaveOtherNames: false,
            isFolder: false
        )
    }

    /// A file that is here as it was agreed on.
    private func file() throws -> (place: LocalPlace, state: LocalState, remote: RemoteItem) {
        let place = LocalPlace(folder: device.rootKey, name: try Name("f"))
        let state = device.newInode(.file)
        let content = try #require(ContentID(bytes: [UInt8](repeating: 7, count: 32)))
        let file = FileContent(revision: RevisionID(high: 1, low: 1), content: content, size: state.size)
        let remote = RemoteItem(
            id: ItemID(number: 1),
            place: Place(parent: .root, name: place.name),
            content: .file(file),
            attributes: ItemAttributes(modified: state.modified, mode: state.mode),
            position: 1
        )
        device.put(state, at: place)
        device.cloud[remote.id] = remote
        device.rows[remote.id] = SyncedItem(remote, local: LocalEvidence(state))
        return (place, state, remote)
    }

    @Test func `a deletion whose answer was lost is the same one after a restart, until it is answered`() async throws {
        let (place, state, remote) = try file()
        device.tree[place] = nil
        device.deletions = [.inode(state.key)]
        let first = start()
        connect(first)
        await first.run([.place(place)])
        let sent = try #require(device.committed.first)
        #expect(device.sentDeletions == [remote.id: SentDeletion(operation: sent.id, base: remote.content.revision)])
        let second = start()
        connect(second)
        // Others have brought it back since.
        device.answer = { _ in .committed(remote) }
        await second.run([.place(place)])
        #expect(device.committed.map(\.id) == [sent.id, sent.id])
        #expect(device.sentDeletions == [:])
        #expect(second.unansweredDeletions == [:])
    }

    @Test func `what leaves the cloud for where nothing is sent from is known after a restart, until it is here again`()
        async throws
    {
        let (place, _, remote) = try file()
        let sent = SentDeletion(operation: device.newOperation(), base: remote.content.revision, isLeaving: true)
        device.sentDeletions = [remote.id: sent]
        let synchronizer = start()
        #expect(synchronizer.tracker.leftItems == [remote.id])
        connect(synchronizer)
        device.databaseFails = true
        device.cloud[remote.id]?.isDeleted = true
        await synchronizer.run([.place(place)])
        #expect(synchronizer.unansweredDeletions == [remote.id: sent])
        device.databaseFails = false
        await synchronizer.run([.place(place)])
        #expect(device.sentDeletions == [:])
        #expect(device.committed == [])
    }

    @Test func `what was changed while nothing ran is so after a further restart, until a program changes it`()
        async throws
    {
        let (place, agreed, remote) = try file()
        var state = agreed
        state.changed = Timestamp(nanoseconds: 2)
        device.put(state, at: place)
        try start().scan(isAfterCleanStop: true)
        #expect(device.unwitnessed == [place])
        let second = start()
        try second.scan(isAfterCleanStop: false)
        connect(second)
        await second.run([.place(place)])
        #expect(device.committed.map(\.item) == [remote.id])
        #expect(device.committed.map(\.isUnwitnessed) == [true])
        #expect(device.unwitnessed == [place])
        second.note(write(to: place, state))
        #expect(device.unwitnessed == [])
        await second.run([.place(place)])
        #expect(device.committed.map(\.isUnwitnessed) == [true, false])
    }

    @Test(arguments: [true, false])
    func `what is as agreed on, or was changed before a further clean stop, is forgotten`(isClean: Bool) throws {
        let (place, state, _) = try file()
        device.unwitnessed = [place, LocalPlace(folder: state.key, name: place.name)]
        let synchronizer = start()
        try synchronizer.scan(isAfterCleanStop: isClean)
        #expect(device.unwitnessed == [])
        #expect(synchronizer.tracker.unwitnessed.isEmpty)
    }

    @Test func `what a program has told of before the first look is its act`() throws {
        let (place, agreed, _) = try file()
        var state = agreed
        state.changed = Timestamp(nanoseconds: 2)
        device.put(state, at: place)
        let synchronizer = start()
        synchronizer.note(write(to: place, state))
        try synchronizer.scan(isAfterCleanStop: true)
        #expect(device.unwitnessed == [])
        #expect(synchronizer.tracker.unwitnessed.isEmpty)
    }

    @Test(arguments: [true, false])
    func `attributes that were set in the tick of what was agreed on are found by a scan`(isMode: Bool) throws {
        let (place, agreed, _) = try file()
        var state = agreed
        if isMode { state.mode = 0o600 } else { device.extended[state.key] = [Array("user.tag".utf8): [1]] }
        device.put(state, at: place)
        let synchronizer = start()
        try synchronizer.scan(isAfterCleanStop: false)
        #expect(synchronizer.tracker.aspects[place] != nil)
    }

    @Test func `what could not be written down is written the next time`() throws {
        let (place, agreed, _) = try file()
        var state = agreed
        state.changed = Timestamp(nanoseconds: 2)
        device.put(state, at: place)
        device.databaseFails = true
        let synchronizer = start()
        try synchronizer.scan(isAfterCleanStop: true)
        #expect(device.unwitnessed == [])
        device.databaseFails = false
        synchronizer.storeUnwitnessed()
        #expect(device.unwitnessed == [place])
    }
}
