import EngineCore
import Testing
import UbiquityModel

@Suite struct ItemObserverTests {
    private let device = FakeDevice()

    private func place(_ name: String) throws -> LocalPlace {
        LocalPlace(folder: device.rootKey, name: try Name(name))
    }

    /// A folder that lies in the cloud, as its row says when it has been made here.
    private func folder(_ number: UInt8, _ name: String, _ state: LocalState) throws -> SyncedItem {
        let remote = RemoteItem(
            id: ItemID(number: number),
            place: Place(parent: .root, name: try Name(name)),
            content: .folder,
            attributes: ItemAttributes(modified: state.modified, mode: state.mode),
            position: UInt64(number)
        )
        device.cloud[remote.id] = remote
        return SyncedItem(remote, local: LocalEvidence(state))
    }

    private func look(at places: [LocalPlace]) throws -> Pass {
        let observer = ItemObserver(view: device)
        let pass = Pass(seenUpTo: 1)
        for place in places { try observer.collect(.place(place), into: pass) }
        return pass
    }

    @Test func `a folder that a lookup made while the pass ran, and that moved at once, is no new one`() throws {
        let state = device.newInode(.folder)
        let row = try folder(1, "d", state)
        let (from, to) = (try place("d"), try place("t"))
        // `mv d t` on a device that has nothing yet: the lookup makes the folder, the rename moves it, and then the pass looks.
        device.beforeLook = { [device] looked in
            guard looked == to, device.tree[to] == nil else { return }
            device.made.append(row)
            device.put(state, at: to)
        }
        let pass = try look(at: [to])
        #expect(pass.order == [row.id])
        #expect(pass.candidates[row.id]?.found?.place == to)
        #expect(pass.candidates[row.id]?.synced?.place.name == from.name)
    }

    @Test func `two folders that swapped names keep their identities`() throws {
        let (one, other) = (device.newInode(.folder), device.newInode(.folder))
        let rows = [try folder(1, "d", one), try folder(2, "e", other)]
        for row in rows { device.rows[row.id] = row }
        let (d, e) = (try place("d"), try place("e"))
        device.put(other, at: d)
        device.put(one, at: e)
        let pass = try look(at: [d, e])
        #expect(Set(pass.order) == Set(rows.map(\.id)))
        #expect(pass.candidates[rows[0].id]?.found?.place == e)
        #expect(pass.candidates[rows[1].id]?.found?.place == d)
    }

    @Test(arguments: [true, false])
    func `absence is a deletion only with a word of somebody`(isLogged: Bool) throws {
        let state = device.newInode(.folder)
        let row = try folder(1, "d", state)
        device.rows[row.id] = row
        if isLogged { device.deletions.insert(.inode(state.key)) }
        let pass = try look(at: [try place("d")])
        let candidate = try #require(pass.candidates[row.id])
        #expect(candidate.found == nil)
        #expect(candidate.deletionIsProven == isLogged)
        // A rename is reported a moment after the disk has it: without a word, it is looked at again first.
        #expect((candidate.verdict == nil) == isLogged)
    }
}
