import Reconciliation
import Testing
import UbiquityModel

@testable import EngineCore

/// Packages that others have changed or deleted, and programs write to at this moment.
@Suite struct PackageReplacingTests {
    private let device = FakeDevice()
    private let synchronizer: Synchronizer<FakeDevice>
    private let place: LocalPlace
    private let state: LocalState
    private let remote: RemoteItem

    init() throws {
        synchronizer = device.makeSynchronizer()
        for event in [EngineCore.Event.started, .connected, .caughtUp] { synchronizer.handle(event) }
        place = LocalPlace(folder: device.rootKey, name: try Name("D.rtfd"))
        var state = device.newInode(.package)
        state.facts = PackageFacts(
            fingerprint: Timestamp(nanoseconds: 77),
            datalessElements: 0,
            bytes: 50,
            localBytes: 50,
            newestChange: Timestamp(seconds: 900, nanoseconds: 0)
        )
        self.state = state
        device.put(state, at: place)
        device.packages[state.key] = place
        let content = try #require(ContentID(bytes: [UInt8](repeating: 7, count: 32)))
        let file = FileContent(revision: RevisionID(high: 1, low: 1), content: content, size: 50, isPackage: true)
        remote = RemoteItem(
            id: ItemID(number: 1),
            place: Place(parent: .root, name: place.name),
            content: .file(file),
            attributes: ItemAttributes(modified: state.modified, mode: state.mode),
            position: 1
        )
        device.rows[remote.id] = SyncedItem(remote, local: LocalEvidence(state))
        device.cloud[remote.id] = remote
    }

    /// As many bytes, and the time set back: its evidence is what it was.
    private func writeWithoutATrace() {
        guard let name = try? Name("TXT.rtf") else { return }
        synchronizer.note(LocalChange(aspects: .content, parent: state.key, name: name, key: nil, isFolder: false))
    }

    @Test(arguments: [true, false])
    func `what was written while a new state came here is not replaced`(isWritten: Bool) async throws {
        let content = try #require(ContentID(bytes: [UInt8](repeating: 8, count: 32)))
        let file = FileContent(revision: RevisionID(high: 2, low: 2), content: content, size: 60, isPackage: true)
        device.cloud[remote.id]?.content = .file(file)
        device.whole = { [self] in
            if isWritten { writeWithoutATrace() }
            return .staged("new")
        }
        await synchronizer.run([.item(remote.id)])
        #expect(device.performed == (isWritten ? 0 : 1))
        #expect(device.discarded == ["new"])
        #expect(synchronizer.core.isWaiting(.place(place)) == isWritten)
    }

    @Test(arguments: [true, false])
    func `what was written since it was looked at is not deleted`(isWritten: Bool) async throws {
        device.cloud[remote.id]?.isDeleted = true
        // The pass hears programs once when it has looked.
        device.whenHeard = { [self] in if isWritten, $0 == 2 { writeWithoutATrace() } }
        await synchronizer.run([.item(remote.id)])
        #expect(device.performed == (isWritten ? 0 : 1))
    }

    @Test func `attributes of its folder that the disk did not take are not agreed on`() {
        var remote = remote
        remote.attributes.extended = [Array("user.big".utf8): [1], Array("user.small".utf8): [2]]
        device.extended[state.key] = [Array("user.small".utf8): [2]]
        // To publish it moves the change time of its folder.
        var now = state
        now.changed = Timestamp(nanoseconds: 5)
        device.tree[place] = now
        let row = synchronizer.agreed(remote, state, place)
        #expect(row.attributes.extended == [Array("user.small".utf8): [2]])
    }
}
