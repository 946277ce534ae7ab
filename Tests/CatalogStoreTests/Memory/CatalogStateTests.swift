import CatalogModel
import MemoryCatalog
import Reconciliation
import Testing
import UbiquityModel

/// What a catalogue is good for that is a value.
@Suite struct CatalogStateTests {
    private let scope = Scope(token: TokenHash(token: [1]), container: .documents)

    private func commit(
        _ operations: [ItemOperation],
        chunks: [ChunkRecord] = [],
        to state: inout CatalogState
    ) throws -> CommitAnswer {
        let entries = operations.map { CommitRequest.Entry.operation($0) }
        return try state.commit(
            CommitRequest(chunks: chunks, entries: entries, deviceClock: time(1), now: time(1)),
            scope
        )
    }

    @Test func `a server that is restored from a copy does not know what came after it, though it counts alike`() throws
    {
        var server = try CatalogState(devices: [1])
        let before = try commit([try folder("a")], to: &server).position
        let backup = server
        let lost = try commit([try folder("b")], to: &server).position
        server = backup
        #expect(try server.changes(scope, since: lost, limit: 10).isUnknownPosition)
        let after = try commit([try folder("c")], to: &server).position
        #expect(after.counter == lost.counter)
        #expect(try server.changes(scope, since: lost, limit: 10).isUnknownPosition)
        let page = try server.changes(scope, since: before, limit: 10)
        #expect(page.entries.map(\.item.place.name) == [try Name("c")])
        #expect(try backup.changes(scope, since: nil, limit: 10).head == before)
    }

    /// A commit that copied the tables would take a thousand times as long as one that does not.
    @Test func `commits to a container of many items stay cheap`() throws {
        var server = try CatalogState(devices: [1])
        let start = ContinuousClock.now
        for number in 0..<10_000 {
            var file = TestFile("x")
            file.item = ItemID(high: 1, low: UInt64(number))
            file.revision = RevisionID(high: 1, low: UInt64(number))
            let answer = try commit([try file.create("\(number)")], chunks: file.records, to: &server)
            #expect(answer.isChanged)
        }
        // A loose bound: it takes a second in a debug build, and with copies ever longer.
        #expect(ContinuousClock.now - start < .seconds(20))
        #expect(try server.changes(scope, since: nil, limit: 1).head.counter == 10_000)
    }
}

extension CatalogState {
    /// One account with a container, and devices that are named by their tokens' bytes.
    init(devices: [UInt8], quota: Int64? = nil) throws {
        self.init()
        try addAccount("anna", quota: quota)
        for number in devices {
            let secret = SecretHash(secret: [number])
            let invitation = Invitation(secret: secret, grant: .everything, expires: time(100))
            try addInvitation(invitation, account: "anna")
            _ = try join(secret, as: device("device \(number)", token: [number]), now: time(2))
        }
        let info = ContainerInfo(
            id: .documents,
            key: [UInt8](repeating: 7, count: 32),
            layout: .drive,
            isCaseInsensitive: false,
            isReadOnly: false
        )
        _ = try createContainer(info, by: TokenHash(token: [devices[0]]))
    }
}
