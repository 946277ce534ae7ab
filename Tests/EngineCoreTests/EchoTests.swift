import Reconciliation
import Testing
import UbiquityModel

@testable import EngineCore

/// What this device has sent comes back by the feed, often before the answer.
@Suite struct EchoTests {
    private let device = FakeDevice()
    private let synchronizer: Synchronizer<FakeDevice>

    init() {
        synchronizer = device.makeSynchronizer()
        for event in [EngineCore.Event.started, .connected, .caughtUp] { synchronizer.handle(event) }
    }

    private func remote(_ operation: ItemOperation) throws -> RemoteItem {
        guard case .create(let place, let content, let attributes, _, _) = operation.action else {
            throw BrokenDatabase()
        }
        return RemoteItem(id: operation.item, place: place, content: content, attributes: attributes, position: 1)
    }

    /// A new file, which is sent while the cloud tells of it.
    private func sendNewFile(isAnswered: Bool) async throws -> (place: LocalPlace, item: ItemID) {
        let place = LocalPlace(folder: device.rootKey, name: try Name("f"))
        device.put(device.newInode(.file), at: place)
        let (device, synchronizer) = (device, synchronizer)
        device.whileCommitting = { [self] in
            guard let operation = device.committed.last, let remote = try? remote(operation) else { return }
            device.cloud[remote.id] = remote
            synchronizer.remoteWritten([remote])
        }
        if isAnswered { device.answer = { [self] in (try? remote($0)).map { .committed($0) } ?? .cycle } }
        synchronizer.isRunningPass = true
        await synchronizer.run([.place(place)])
        return (place, try #require(device.committed.first).item)
    }

    @Test func `what the pass has settled is not looked at once more`() async throws {
        let (_, item) = try await sendNewFile(isAnswered: true)
        #expect(device.upserts.map(\.id) == [item])
        #expect(!synchronizer.core.isWaiting(.item(item)))
    }

    @Test func `what was not answered is`() async throws {
        let (_, item) = try await sendNewFile(isAnswered: false)
        #expect(device.upserts == [])
        #expect(synchronizer.core.isWaiting(.item(item)))
    }

    @Test func `a row that is there already is not written again`() async throws {
        let (place, item) = try await sendNewFile(isAnswered: true)
        let row = try #require(device.upserts.first)
        device.rows[item] = row
        device.upserts = []
        await synchronizer.run([.item(item), .place(place)])
        #expect(device.upserts == [])
        #expect(!synchronizer.core.isWaiting(.item(item)))
    }

    @Test func `one that differs is`() async throws {
        let (place, item) = try await sendNewFile(isAnswered: true)
        var row = try #require(device.upserts.first)
        row.local?.changed = Timestamp(nanoseconds: 0)
        device.rows[item] = row
        device.upserts = []
        await synchronizer.run([.place(place)])
        #expect(device.upserts.map(\.id) == [item])
    }

    @Test func `the cloud is asked less often where it lacked everything, and at once again where it did not`() {
        var offering = Offering()
        var asked: [Int] = []
        for commit in 1...60 where offering.isDue() {
            asked.append(commit)
            offering.note(allLacking: true)
        }
        #expect(asked == [1, 3, 7, 15, 31, 47])
        while !offering.isDue() {}
        for _ in 1...3 {
            offering.note(allLacking: false)
            let isDue = offering.isDue()
            #expect(isDue)
        }
    }
}
