import EngineCore
import Reconciliation
import Testing
import UbiquityModel

/// What becomes of files, whose content may be elsewhere.
extension ItemTrackerTests {
    func file(_ number: UInt8, _ name: String, revision: UInt8, size: Int64) throws -> RemoteItem {
        let file = FileContent(revision: try self.revision(revision), content: try content(revision), size: size)
        return RemoteItem(
            id: ItemID(number: number),
            place: Place(parent: .root, name: try Name(name)),
            content: .file(file),
            attributes: ItemAttributes(modified: Timestamp(nanoseconds: Int64(revision)), mode: 0o644),
            position: UInt64(revision)
        )
    }

    private func revision(_ number: UInt8) throws -> RevisionID {
        try #require(RevisionID(bytes: [UInt8](repeating: 0, count: 15) + [number]))
    }

    private func content(_ number: UInt8) throws -> ContentID {
        try #require(ContentID(bytes: [UInt8](repeating: number, count: 32)))
    }

    func dataless(_ revision: UInt8, size: Int64) throws -> LocalState {
        var state = device.newInode(.file)
        state.size = size
        state.mode = 0o644
        state.modified = Timestamp(nanoseconds: Int64(revision))
        state.placeholder = Placeholder(
            revision: try self.revision(revision),
            generation: 1,
            size: size,
            modified: state.modified,
            mode: 0o644
        )
        return state
    }

    @Test func `a placeholder that an apply left behind is the older state that it is, not the newest`() throws {
        let place = try place("f")
        device.put(try dataless(2, size: 4), at: place)
        let newest = try file(1, "f", revision: 3, size: 7)
        device.cloud[newest.id] = newest
        let tracker = ItemTracker(view: device)
        let pass = Pass(seenUpTo: 1)
        try tracker.collect(.place(place), into: pass)
        #expect(tracker.decide(pass).sends.isEmpty)
        let row = try #require(pass.changes.upserts.first)
        #expect(row.id == newest.id)
        #expect(row.content == .file(FileContent(revision: try revision(2), content: nil, size: 4)))
        #expect(row.attributes.modified == Timestamp(nanoseconds: 2))
        #expect(tracker.settle(pass, [.place(place)]).verdicts == [.place(place): .again])
        // With that row, the newest is what differs: it is applied, and nothing is sent.
        device.rows[row.id] = row
        let second = Pass(seenUpTo: 1)
        try tracker.collect(.place(place), into: second)
        #expect(tracker.decide(second).sends.isEmpty)
        #expect(second.candidates[row.id]?.applies.isEmpty == false)
    }

    /// Sent as `f`, with the answer lost, and renamed since: when the feed told of it, it came into being a second time.
    @Test func `what was sent without an answer is found under its new name`() throws {
        let sent = try file(1, "f", revision: 2, size: 4)
        device.cloud[sent.id] = sent
        var state = device.newInode(.file)
        state.size = 4
        let tracker = ItemTracker(view: device)
        tracker.newItems.note(state.key, sent.id, at: try place("f"))
        let renamed = try place("g")
        device.put(state, at: renamed)
        tracker.moves[state.key] = renamed
        let pass = Pass(seenUpTo: 1)
        try tracker.collect(.item(sent.id), into: pass)
        #expect(pass.candidates[sent.id]?.found?.place == renamed)
    }

    /// Announced by this device as `f` and moved to `g` by another, where something else has just been made here.
    @Test(arguments: [LocalKind.folder, .file])
    func `what is new at an announced name is another item while its author's file is elsewhere`(
        _ kind: LocalKind
    ) throws {
        var announced = try file(1, "g", revision: 2, size: 1 << 30)
        announced.content = .file(FileContent(revision: try revision(2), content: nil, size: 1 << 30))
        device.cloud[announced.id] = announced
        var large = device.newInode(.file)
        large.size = 1 << 30
        device.put(large, at: try place("f"))
        device.put(device.newInode(kind), at: try place("g"))
        let tracker = ItemTracker(view: device)
        tracker.sending[announced.id] = SentRevision(revision: try revision(2), content: nil)
        tracker.newItems.note(large.key, announced.id, at: try place("f"))
        let pass = Pass(seenUpTo: 1)
        try tracker.collect(.place(try place("g")), into: pass)
        #expect(pass.candidates[announced.id] == nil)
        #expect(pass.all.count == 1)
        // Nobody's word is needed for a folder: it is never the file that was announced.
        if kind == .folder { tracker.newItems.remove(large.key) }
        let second = Pass(seenUpTo: 1)
        try tracker.collect(.place(try place("g")), into: second)
        #expect(second.candidates[announced.id] == nil)
    }

    /// Put here by an apply that was not written down, and moved in the cloud since: it was reported as content that is nowhere.
    @Test func `a placeholder that an apply left behind follows its item to another name`() throws {
        let place = try place("f")
        device.put(try dataless(2, size: 4), at: place)
        let item = try file(1, "g", revision: 2, size: 4)
        device.cloud[item.id] = item
        let tracker = ItemTracker(view: device)
        let pass = Pass(seenUpTo: 1)
        try tracker.collect(.place(place), into: pass)
        #expect(tracker.decide(pass).sends.isEmpty)
        let row = try #require(pass.changes.upserts.first)
        #expect(row.id == item.id)
        #expect(row.place.name == place.name)
        device.rows[row.id] = row
        let second = Pass(seenUpTo: 1)
        try tracker.collect(.item(item.id), into: second)
        _ = tracker.decide(second)
        guard case .planned(.move(item.place))? = second.candidates[item.id]?.applies.first else {
            Issue.record("it is not moved")
            return
        }
    }

    /// Killed after it had put it here and before it wrote that down; deleted by others meanwhile: `sync` said for ever that it has no content.
    @Test(arguments: ["f", "g"])
    func `a placeholder that an apply left behind goes with its item, unless somebody moved it`(name: String) throws {
        let place = try place("f")
        device.put(try dataless(2, size: 4), at: place)
        var item = try file(1, name, revision: 2, size: 4)
        item.isDeleted = true
        device.cloud[item.id] = item
        let tracker = ItemTracker(view: device)
        let pass = Pass(seenUpTo: 1)
        try tracker.collect(.place(place), into: pass)
        #expect(tracker.decide(pass).sends.isEmpty)
        let candidate = try #require(pass.all.first { $0.found?.place == place })
        guard case .planned(.vanish)? = candidate.applies.first else {
            #expect(name == "g" && candidate.verdict == .later(.seconds(2)))
            return
        }
        #expect(name == "f")
    }

    /// Its author sent something else, or nothing, and no row tells any more whose it was.
    @Test(arguments: [true, false])
    func `a placeholder of nobody goes only if there was nothing but an announcement`(wasAnnounced: Bool) throws {
        let place = try place("f")
        var stray = try dataless(2, size: 4)
        stray.placeholder?.wasAnnounced = wasAnnounced
        device.put(stray, at: place)
        let tracker = ItemTracker(view: device)
        for absence in [nil, ContentAbsence.gone] {
            let first = Pass(seenUpTo: 1)
            try tracker.collect(.place(place), into: first)
            _ = tracker.decide(first)
            _ = tracker.noteUndeliverable(stray.key, absence: absence, askedAt: tracker.newsCount)
            let pass = Pass(seenUpTo: 1)
            try tracker.collect(.place(place), into: pass)
            #expect(tracker.decide(pass).sends.isEmpty)
            let candidate = try #require(pass.all.first { $0.found?.place == place })
            if case .planned(.vanish)? = candidate.applies.first {
                #expect(wasAnnounced && absence == .gone)
            } else {
                #expect(!wasAnnounced || absence == nil)
            }
        }
    }

    /// Two devices' rows know the item by another content: the placeholder went to a name of its own before its content had come.
    @Test(arguments: [nil, ContentAbsence.superseded, .withdrawn, .gone])
    func `only what the cloud says makes a placeholder another content's`(absence: ContentAbsence?) throws {
        let stray = try dataless(2, size: 4)
        let old = try place("f")
        let new = try place("g")
        device.rows[ItemID(number: 1)] = SyncedItem(
            try file(1, "f", revision: 2, size: 4),
            local: LocalEvidence(stray)
        )
        device.cloud[ItemID(number: 1)] = try file(1, "f", revision: 3, size: 9)
        device.put(stray, at: new)
        let target = device.newInode(.file)
        device.put(target, at: old)
        let tracker = ItemTracker(view: device)
        tracker.moves[stray.key] = new
        // Its own item goes on as the new file there, and leaves it behind.
        let first = Pass(seenUpTo: 1)
        try tracker.collect(.place(new), into: first)
        #expect(!tracker.noteUndeliverable(stray.key, absence: absence, askedAt: tracker.newsCount).isEmpty)
        device.rows[ItemID(number: 1)] = SyncedItem(
            try file(1, "f", revision: 3, size: 9),
            local: LocalEvidence(target)
        )
        let pass = Pass(seenUpTo: 1)
        try tracker.collect(.place(new), into: pass)
        _ = tracker.decide(pass)
        let candidate = try #require(pass.all.first { $0.found?.state.key == stray.key })
        switch (absence, candidate.applies.first) {
        case (.superseded, .refer(let remote)?): #expect(remote.id == ItemID(number: 1))
        case (.withdrawn, .planned(.vanish)?): break
        case (.gone, nil): #expect(candidate.verdict == .parked)
        // A disk or a connection failed: it is asked for once more in a while.
        case (nil, nil): #expect(candidate.verdict == .later(.seconds(60)))
        default: Issue.record("\(String(describing: candidate.applies.first))")
        }
    }

    /// Others have moved `f` away and given its name to another item, whose file is here already.
    @Test func `of two rows of one name, the one whose inode is there is meant`() throws {
        let name = try place("f")
        let (old, new) = (try dataless(2, size: 4), try dataless(3, size: 4))
        let rows = [
            SyncedItem(try file(1, "f", revision: 2, size: 4), local: LocalEvidence(old)),
            SyncedItem(try file(2, "f", revision: 3, size: 4), local: LocalEvidence(new)),
        ]
        for row in rows { device.rows[row.id] = row }
        device.cloud[rows[0].id] = try file(1, "g", revision: 2, size: 4)
        device.cloud[rows[1].id] = try file(2, "f", revision: 3, size: 4)
        device.put(new, at: name)
        let pass = try look(at: [name])
        #expect(pass.candidates[rows[1].id]?.found?.state.key == new.key)
        #expect(pass.candidates[rows[0].id]?.found == nil)
    }

    /// Renamed to a free name, whose move was not sent yet, and from there over another file: nobody looked at its item any more.
    @Test func `a file that goes on as another item ends the one that it was`() throws {
        let state = device.newInode(.file)
        let target = device.newInode(.file)
        let rows = [
            SyncedItem(try file(1, "b", revision: 2, size: 0), local: LocalEvidence(state)),
            SyncedItem(try file(2, "d", revision: 3, size: 0), local: LocalEvidence(target)),
        ]
        for row in rows { device.rows[row.id] = row }
        device.cloud[rows[0].id] = try file(1, "b", revision: 2, size: 0)
        device.cloud[rows[1].id] = try file(2, "d", revision: 3, size: 0)
        let tracker = ItemTracker(view: device)
        device.put(state, at: try place("d"))
        tracker.moves[state.key] = try place("d")
        let pass = Pass(seenUpTo: 1)
        try tracker.collect(.place(try place("d")), into: pass)
        #expect(pass.candidates[rows[1].id]?.found?.state.key == state.key)
        #expect(pass.candidates[rows[0].id]?.deletionIsProven == true)
    }

    /// Saved by rename, sent without an answer, and renamed on: by its row it was the temporary file, which had ended in the cloud with the
    /// same commit, and was taken away.
    @Test(arguments: [false, true])
    func `what was saved by rename and sent without an answer is that item wherever it goes`(isTaken: Bool) throws {
        let (former, saved, other) = (device.newInode(.file), device.newInode(.file), device.newInode(.file))
        var rows = [
            SyncedItem(try file(1, "d", revision: 2, size: 0), local: LocalEvidence(former)),
            SyncedItem(try file(2, "tmp", revision: 3, size: 0), local: LocalEvidence(saved)),
        ]
        let sent = try file(1, "d", revision: 4, size: 0)
        var ended = try file(2, "tmp", revision: 3, size: 0)
        ended.isDeleted = true
        device.cloud = [sent.id: sent, ended.id: ended]
        if isTaken {
            let third = try file(3, "c", revision: 5, size: 0)
            device.cloud[third.id] = third
            rows.append(SyncedItem(third, local: LocalEvidence(other)))
        }
        for row in rows { device.rows[row.id] = row }
        let tracker = ItemTracker(view: device)
        tracker.sending[sent.id] = SentRevision(revision: try revision(4), content: try content(4))
        tracker.sentAs[saved.key] = sent.id
        let (d, c) = (try place("d"), try place("c"))
        device.put(saved, at: c)
        tracker.moves[saved.key] = c
        tracker.vanished = [d]
        let pass = Pass(seenUpTo: 1)
        for place in [d, c] { try tracker.collect(.place(place), into: pass) }
        #expect(pass.candidates[ended.id]?.found == nil)
        let sends = tracker.decide(pass).sends
        if isTaken {
            // The name wins: it has the content now, and `d` is gone.
            #expect(pass.candidates[rows[2].id]?.found?.state.key == saved.key)
            #expect(sends.map(\.candidate.id) == [sent.id])
        } else {
            #expect(pass.candidates[sent.id]?.found?.place == c)
            #expect(sends.isEmpty)
        }
    }

    /// The disk has lost it with the power: the old bytes went out as a new edit, over what had been sent.
    @Test(arguments: [true, false], [true, false])
    func `what was sent and is not here any more comes back`(isChanged: Bool, isDoubtful: Bool) throws {
        var state = device.newInode(.file)
        let row = SyncedItem(try file(1, "f", revision: 2, size: 0), local: LocalEvidence(state))
        device.rows[row.id] = row
        let sent = try file(1, "f", revision: 3, size: 0)
        device.cloud[sent.id] = sent
        if isChanged { state.changed = Timestamp(nanoseconds: 9) }
        device.put(state, at: try place("f"))
        let tracker = ItemTracker(view: device)
        tracker.sending[sent.id] = SentRevision(
            revision: try revision(3),
            content: try content(3),
            isDoubtful: isDoubtful
        )
        let pass = Pass(seenUpTo: 1)
        try tracker.collect(.place(try place("f")), into: pass)
        // What was written here since comes after what was sent only where that is known to have been here.
        let candidate = try #require(pass.candidates[sent.id])
        #expect(candidate.synced?.content == (isChanged && !isDoubtful ? sent.content : row.content))
        let sends = tracker.decide(pass).sends
        #expect(!sends.contains { $0.actions.contains { if case .edit = $0 { true } else { false } } })
    }

    @Test(arguments: [true, false])
    func `a deletion takes along what was known then, and not an edit told of later`(isNew: Bool) throws {
        var remote = try file(1, "f", revision: 2, size: 4)
        let state = device.newInode(.file)
        device.cloud[remote.id] = remote
        device.rows[remote.id] = SyncedItem(remote, local: LocalEvidence(state))
        device.deletions = [.inode(state.key)]
        let tracker = ItemTracker(view: device)
        let loser = ItemVersion(
            revision: try revision(3),
            kind: .conflict,
            content: try content(3),
            size: 4,
            edited: state.modified,
            modified: state.modified,
            device: "bert",
            name: remote.place.name
        )
        remote.conflicts = [loser]
        if !isNew { device.cloud[remote.id] = remote }
        tracker.noteArriving([remote])
        device.cloud[remote.id] = remote
        let pass = Pass(seenUpTo: 1)
        try tracker.collect(.item(remote.id), into: pass)
        #expect(pass.candidates[remote.id]?.deletionIsProven == !isNew)
        #expect(tracker.decide(pass).sends.map(\.actions) == (isNew ? [] : [[.delete(base: try revision(2))]]))
    }

    @Test func `a deletion while the answer to its creation was lost is sent`() throws {
        let sent = try file(1, "f", revision: 2, size: 4)
        device.cloud[sent.id] = sent
        device.deletions = [.item(sent.id)]
        let tracker = ItemTracker(view: device)
        tracker.sending[sent.id] = SentRevision(revision: try revision(2), content: try content(2))
        let pass = Pass(seenUpTo: 1)
        try tracker.collect(.item(sent.id), into: pass)
        #expect(tracker.decide(pass).sends.map(\.actions) == [[.delete(base: try revision(2))]])
        // Not what others have made of it since.
        device.cloud[sent.id] = try file(1, "f", revision: 3, size: 4)
        let second = Pass(seenUpTo: 1)
        try tracker.collect(.item(sent.id), into: second)
        #expect(tracker.decide(second).sends.isEmpty)
    }

    @Test func `large new files are announced, and no more of them travel than may`() throws {
        let tracker = ItemTracker(view: device)
        let places = try (0...TransferSlots.limit).map { try place("f\($0)") }
        for place in places {
            var state = device.newInode(.file)
            state.size = 1 << 30
            device.put(state, at: place)
        }
        let first = Pass(seenUpTo: 1)
        for place in places { try tracker.collect(.place(place), into: first) }
        let announced = tracker.decide(first)
        #expect(announced.sends.map(\.isAnnouncement) == places.map { _ in true })
        #expect(announced.transfers.isEmpty)
        // As the cloud answers.
        for (number, send) in announced.sends.enumerated() {
            let found = try #require(send.candidate.found)
            let revision = try revision(UInt8(number + 1))
            tracker.sending[send.candidate.id] = SentRevision(revision: revision, content: nil)
            device.cloud[send.candidate.id] = RemoteItem(
                id: send.candidate.id,
                place: Place(parent: .root, name: found.place.name),
                content: .file(FileContent(revision: revision, content: nil, size: found.state.size)),
                attributes: found.attributes,
                position: UInt64(number + 1)
            )
        }
        let second = Pass(seenUpTo: 1)
        for place in places { try tracker.collect(.place(place), into: second) }
        let transfers = tracker.decide(second).transfers
        #expect(transfers.map(\.id) == announced.sends.dropLast().map(\.candidate.id))
        let verdicts = tracker.settle(second, places.map { .place($0) }).verdicts
        #expect(verdicts.values.filter { $0 == .transferring }.count == TransferSlots.limit)
        #expect(verdicts[.place(try #require(places.last))] == .later(TransferSlots.longestWait))
    }

    @Test func `what is said of a place while a pass has it is kept for the next`() throws {
        let tracker = ItemTracker(view: device)
        let (seen, new) = (try place("seen"), try place("new"))
        for (place, change) in [(seen, 1), (new, 2)] {
            tracker.changedAt[place] = UInt64(change)
            tracker.aspects[place] = .content
        }
        let pass = Pass(seenUpTo: 1)
        for place in [seen, new] { try tracker.collect(.place(place), into: pass) }
        _ = tracker.decide(pass)
        _ = tracker.settle(pass, [.place(seen), .place(new)])
        #expect(tracker.aspects == [new: .content])
    }
}
