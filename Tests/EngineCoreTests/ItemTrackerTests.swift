import EngineCore
import Reconciliation
import Testing
import UbiquityModel

@Suite struct ItemTrackerTests {
    let device = FakeDevice()

    func place(_ name: String) throws -> LocalPlace {
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

    func look(at places: [LocalPlace]) throws -> Pass {
        let tracker = ItemTracker(view: device)
        let pass = Pass(seenUpTo: 1)
        for place in places { try tracker.collect(.place(place), into: pass) }
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
        #expect(pass.all.map(\.id) == [row.id])
        #expect(pass.candidates[row.id]?.found?.place == to)
        #expect(pass.candidates[row.id]?.synced?.place.name == from.name)
    }

    @Test(arguments: [true, false])
    func `who makes room for a name that differs in case is known in the same pass`(isCaseInsensitive: Bool) throws {
        device.isCaseInsensitive = isCaseInsensitive
        let former = try folder(1, "Docs", device.newInode(.folder))
        device.rows[former.id] = former
        device.deletions = [.item(former.id)]
        let place = try place("docs")
        device.put(device.newInode(.folder), at: place)
        let pass = try look(at: [place])
        #expect(pass.all.contains { $0.found?.place == place })
        #expect(pass.candidates[former.id]?.deletionIsProven == (isCaseInsensitive ? true : nil))
    }

    /// A file here and one in the cloud, of the same name and content, made by two devices.
    private func madeTwice(mode: UInt16) throws -> (place: LocalPlace, state: LocalState, remote: RemoteItem) {
        let place = try place("f")
        let state = device.newInode(.file)
        device.put(state, at: place)
        let content = try #require(ContentID(bytes: [UInt8](repeating: 7, count: 32)))
        let file = FileContent(revision: RevisionID(high: 1, low: 1), content: content, size: 0)
        let remote = RemoteItem(
            id: ItemID(number: 1),
            place: Place(parent: .root, name: place.name),
            content: .file(file),
            attributes: ItemAttributes(modified: state.modified, mode: mode),
            position: 1
        )
        device.cloud[remote.id] = remote
        return (place, state, remote)
    }

    @Test(arguments: [(mode: UInt16(0o755), isDone: true), (mode: UInt16(0o700), isDone: false)])
    func `what was made twice agrees in one pass if it is the same in all`(mode: UInt16, isDone: Bool) throws {
        let (place, state, remote) = try madeTwice(mode: mode)
        guard case .file(let file) = remote.content, let content = file.content else { return }
        let tracker = ItemTracker(view: device)
        let pass = Pass(seenUpTo: 1)
        device.deletions = [.item(remote.id)]
        device.problems = [remote.id: "a name is taken"]
        try tracker.collect(.place(place), into: pass)
        for candidate in pass.all where candidate.found != nil {
            candidate.read = ReadContent(manifest: Manifest(), content: content, state: state, chunks: [:])
        }
        _ = tracker.decide(pass)
        #expect(pass.changes.upserts.map(\.id) == [remote.id])
        #expect((pass.changes.upserts.first == SyncedItem(remote, local: LocalEvidence(state))) == isDone)
        #expect(tracker.settle(pass, [.place(place)]).verdicts == [.place(place): isDone ? .done : .again])
        // As for every item that is where it should be.
        #expect(device.deletions.isEmpty == isDone)
        #expect(device.problems.isEmpty == isDone)
    }

    /// Exchanged with a file that this device had announced, and saved anew under the other name. Its item has another content by now.
    @Test(arguments: [false, true])
    func `a placeholder of what never came gets what followed, or goes, also where an announcement waits for content`(
        isDeleted: Bool
    ) throws {
        func file(_ number: UInt8, _ name: String, _ revision: UInt64, _ content: ContentID?) throws -> RemoteItem {
            RemoteItem(
                id: ItemID(number: number),
                place: Place(parent: .root, name: try Name(name)),
                content: .file(FileContent(revision: RevisionID(high: 1, low: revision), content: content, size: 4)),
                attributes: ItemAttributes(modified: Timestamp(nanoseconds: 1), mode: 0o644),
                position: UInt64(number)
            )
        }
        var announced = try file(1, "e", 1, nil)
        announced.author = device.deviceName
        device.cloud[announced.id] = announced
        let promised = try file(2, "a", 2, nil)
        device.rows[promised.id] = SyncedItem(promised, local: LocalEvidence(device.newInode(.file)))
        var other = try file(2, "a", 3, ContentID(bytes: [UInt8](repeating: 7, count: 32)))
        other.isDeleted = isDeleted
        device.cloud[other.id] = other
        let there = try place("e")
        var state = device.newInode(.file)
        state.placeholder = Placeholder(
            revision: RevisionID(high: 1, low: 2),
            generation: 1,
            size: 4,
            modified: state.modified,
            mode: 0o644,
            wasAnnounced: true
        )
        device.put(state, at: there)

        let tracker = ItemTracker(view: device)
        tracker.sending[announced.id] = SentRevision(revision: RevisionID(high: 1, low: 1), content: nil)
        _ = tracker.noteUndeliverable(state.key, absence: .superseded, askedAt: tracker.newsCount)
        let pass = Pass(seenUpTo: 1)
        try tracker.collect(.place(there), into: pass)
        _ = tracker.decide(pass)
        let candidate = try #require(pass.candidates[announced.id])
        #expect(candidate.verdict == nil)
        switch (isDeleted, candidate.applies.first) {
        case (true, .planned(.vanish)): break
        case (false, .refer(let remote)): #expect(remote.id == other.id)
        case (_, let step): Issue.record("\(String(describing: step))")
        }
    }

    @Test func `two folders that swapped names keep their identities`() throws {
        let (one, other) = (device.newInode(.folder), device.newInode(.folder))
        let rows = [try folder(1, "d", one), try folder(2, "e", other)]
        for row in rows { device.rows[row.id] = row }
        let (d, e) = (try place("d"), try place("e"))
        device.put(other, at: d)
        device.put(one, at: e)
        let pass = try look(at: [d, e])
        #expect(Set(pass.all.map(\.id)) == Set(rows.map(\.id)))
        #expect(pass.candidates[rows[0].id]?.found?.place == e)
        #expect(pass.candidates[rows[1].id]?.found?.place == d)
    }

    /// Saved anew by way of `t`, which was sent without an answer, and then moved to another name, while others had changed what they got
    /// as `t`: both were looked at as that item, again and again.
    @Test func `what was sent as an item that is here as another inode by now is new under its next name`() throws {
        let (saved, came) = (device.newInode(.file), device.newInode(.file))
        let sent = RemoteItem(
            id: ItemID(number: 7),
            place: Place(parent: .root, name: try Name("t")),
            content: .file(FileContent(revision: .random(), content: nil, size: 0)),
            attributes: ItemAttributes(modified: came.modified, mode: came.mode),
            position: 7
        )
        device.cloud[sent.id] = sent
        device.rows[sent.id] = SyncedItem(sent, local: LocalEvidence(came))
        device.put(came, at: try place("t"))
        device.put(saved, at: try place("b"))
        let tracker = ItemTracker(view: device)
        tracker.newItems.note(saved.key, sent.id, at: try place("a"))
        let pass = Pass(seenUpTo: 1)
        for name in ["t", "b"] { try tracker.collect(.place(try place(name)), into: pass) }
        #expect(pass.candidates[sent.id]?.found?.place == (try place("t")))
        #expect(pass.all.count == 2)
        #expect(pass.all.map(\.verdict) == [nil, nil])
        #expect(pass.all.last?.found?.place == (try place("b")))
    }

    /// Sent as `d`, with the answer lost, and renamed before the next look: it was taken for settled under a name that it has not.
    @Test func `what is agreed on for the first time is looked at again by its row`() throws {
        let state = device.newInode(.folder)
        let row = try folder(1, "d", state)
        let to = try place("t")
        device.put(state, at: to)
        let tracker = ItemTracker(view: device)
        tracker.newItems.note(state.key, row.id, at: to)
        let pass = Pass(seenUpTo: 1)
        try tracker.collect(.place(to), into: pass)
        _ = tracker.decide(pass)
        #expect(pass.changes.upserts == [row])
        #expect(pass.candidates[row.id]?.verdict == .again)
        #expect(tracker.newItems[state.key] == nil)
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
