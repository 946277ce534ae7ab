import EngineCore
import Reconciliation
import Testing
import UbiquityModel

/// Folders that are one document.
@Suite struct PackageTests {
    private let device = FakeDevice()
    private let tracker: ItemTracker<FakeDevice>

    init() { tracker = ItemTracker(view: device) }

    private func place(_ name: String, in folder: InodeKey? = nil) throws -> LocalPlace {
        LocalPlace(folder: folder ?? device.rootKey, name: try Name(name))
    }

    /// A package whose newest change was so long ago.
    @discardableResult
    private func makePackage(
        _ place: LocalPlace,
        age: Int64 = 10,
        as known: LocalState? = nil,
        dataless: Int = 0,
        fingerprint: Int64 = 77
    ) -> LocalState {
        var state = known ?? device.newInode(.package)
        state.kind = .package
        state.linkCount = 1
        state.size = 100
        state.facts = PackageFacts(
            fingerprint: Timestamp(nanoseconds: fingerprint),
            datalessElements: dataless,
            bytes: 50,
            localBytes: 50,
            newestChange: Timestamp(seconds: 1000 - age, nanoseconds: 0)
        )
        device.put(state, at: place)
        device.packages[state.key] = place
        return state
    }

    private func row(_ number: UInt8, _ name: String, _ content: ItemContent, _ state: LocalState?) throws -> SyncedItem
    {
        let remote = RemoteItem(
            id: ItemID(number: number),
            place: Place(parent: .root, name: try Name(name)),
            content: content,
            attributes: ItemAttributes(modified: Timestamp(nanoseconds: 1), mode: 0o755),
            position: UInt64(number)
        )
        device.cloud[remote.id] = remote
        let row = SyncedItem(remote, local: state.map { LocalEvidence($0) })
        device.rows[row.id] = row
        return row
    }

    private func content(_ number: UInt8 = 7, isPackage: Bool = true) throws -> ItemContent {
        let revision = try #require(RevisionID(bytes: [UInt8](repeating: 0, count: 15) + [number]))
        let id = ContentID(bytes: [UInt8](repeating: number, count: 32))
        return .file(FileContent(revision: revision, content: id, size: 100, isPackage: isPackage))
    }

    private func look(at places: [LocalPlace]) throws -> (pass: Pass, sends: [PlannedSend], transfers: [Candidate]) {
        let pass = Pass(seenUpTo: 1)
        for place in places { try tracker.collect(.place(place), into: pass) }
        let decided = tracker.decide(pass)
        return (pass, decided.sends, decided.transfers)
    }

    @Test func `what changed in it changed the package, and is no item`() throws {
        let package = try place("D.rtfd")
        let state = makePackage(package)
        let row = try row(1, "D.rtfd", content(), state)
        let inner = try place("TXT.rtf", in: state.key)
        device.put(device.newInode(.file), at: inner)
        tracker.aspects[package] = .content
        let outcome = try look(at: [inner])
        #expect(outcome.pass.all.map(\.id) == [row.id])
        #expect(outcome.transfers.map(\.id) == [row.id])
        #expect(outcome.sends.isEmpty)
    }

    @Test func `files that come or go in it as content do not change it`() throws {
        let package = try place("D.rtfd")
        let whole = makePackage(package)
        let row = try row(1, "D.rtfd", content(), whole)
        makePackage(package, as: whole, dataless: 1)
        let outcome = try look(at: [package])
        #expect(outcome.transfers.isEmpty && outcome.sends.isEmpty)
        #expect(outcome.pass.candidates[row.id]?.found?.content == .unchanged)
    }

    @Test(arguments: [(Int64(0), 2.0), (1, 1.0), (2, 0), (100, 0), (-1, 2.0), (-60, 0)])
    func `it is quiet two seconds after its last change, and when the clock was set back`(
        age: Int64,
        rest: Double
    ) throws {
        let state = makePackage(try place("D.rtfd"), age: age)
        #expect(tracker.quietRest(of: state) == .seconds(rest))
    }

    @Test func `a folder that becomes one ends as an item, with what lies in it, when it is quiet`() throws {
        let named = try place("D.rtfd")
        var folder = device.newInode(.folder)
        folder.linkCount = 2
        let old = try row(1, "D", .folder, folder)
        let inner = try place("x", in: folder.key)
        let file = device.newInode(.file)
        let child = SyncedItem(
            id: ItemID(number: 2),
            place: Place(parent: old.id, name: inner.name),
            content: try content(9, isPackage: false),
            attributes: ItemAttributes(modified: Timestamp(nanoseconds: 1), mode: 0o644),
            local: LocalEvidence(file)
        )
        device.rows[child.id] = child
        device.cloud[child.id] = RemoteItem(
            id: child.id,
            place: child.place,
            content: child.content,
            attributes: child.attributes,
            position: 2
        )
        makePackage(named, age: 0, as: folder)
        #expect(try look(at: [named]).sends.isEmpty)
        makePackage(named, age: 5, as: folder)
        let outcome = try look(at: [named])
        // Not before it can take their place in the cloud.
        #expect(outcome.sends.isEmpty)
        let new = try #require(outcome.pass.all.first { $0.found?.state.kind == .package })
        #expect(new.id != old.id && outcome.transfers.map(\.id) == [new.id])
        #expect(tracker.waitingForNews[new.id] == [.place(named)])
        tracker.transferring = []
        let pass = Pass(seenUpTo: 1)
        try tracker.collect(.place(named), into: pass)
        let uploaded = try #require(pass.candidates[new.id])
        let state = try #require(uploaded.found).state
        let content = try #require(ContentID(bytes: [UInt8](repeating: 7, count: 32)))
        uploaded.read = ReadContent(manifest: Manifest(), content: content, state: state, chunks: [:])
        #expect(Set(deletions(tracker.decide(pass).sends)) == [old.id, child.id])
    }

    @Test func `one that takes the folder's own name does not wait for itself`() throws {
        let place = try place("D")
        var folder = device.newInode(.folder)
        folder.linkCount = 2
        let old = try row(1, "D", .folder, folder)
        makePackage(place, age: 5, as: folder)
        let sends = try look(at: [place]).sends
        #expect(deletions(sends) == [old.id])
    }

    private func deletions(_ sends: [PlannedSend]) -> [ItemID] {
        sends.filter(\.isDeletion).map(\.candidate.id)
    }

    @Test func `what is moved into it leaves the cloud, when its content is here`() throws {
        let package = try place("D.rtfd")
        let state = makePackage(package)
        let document = try row(1, "D.rtfd", content(), state)
        var file = device.newInode(.file)
        let moved = try row(2, "file", content(9, isPackage: false), file)
        let inner = try place("file", in: state.key)
        file.placeholder = Placeholder(
            revision: try #require(moved.content.revision),
            generation: 1,
            size: 100,
            modified: file.modified,
            mode: 0o644
        )
        device.put(file, at: inner)
        #expect(try look(at: [inner]).sends.isEmpty)
        #expect(device.fetched == [inner])
        file.placeholder = nil
        device.put(file, at: inner)
        // The package has changed by that, and is sent first.
        makePackage(package, as: state, fingerprint: 78)
        let outcome = try look(at: [inner])
        #expect(outcome.sends.isEmpty && outcome.transfers.map(\.id) == [document.id])
        #expect(tracker.waitingForNews[document.id] == [.place(inner)])
        // It is agreed on, with the file in it.
        tracker.transferring = []
        makePackage(package, as: state)
        let sends = try look(at: [inner]).sends
        #expect(sends.map(\.candidate.id) == [moved.id])
        #expect(sends.first?.actions == [.delete(base: moved.content.revision)])
    }

    @Test func `what was renamed in a folder that leaves is brought here first`() throws {
        let kept = try place("D.nosync")
        let folder = device.newInode(.folder)
        let old = try row(1, "D", .folder, folder)
        device.put(folder, at: kept)
        var file = device.newInode(.file)
        let content = try content(9, isPackage: false)
        file.placeholder = Placeholder(
            revision: try #require(content.revision),
            generation: 1,
            size: 100,
            modified: file.modified,
            mode: 0o644
        )
        var child = try row(2, "x", content, file)
        child.place = Place(parent: old.id, name: child.place.name)
        device.rows[child.id] = child
        let renamed = try place("y", in: folder.key)
        device.put(file, at: renamed)
        tracker.moves[file.key] = renamed
        #expect(try look(at: [kept]).sends.isEmpty)
        #expect(device.fetched == [renamed])
        file.placeholder = nil
        device.put(file, at: renamed)
        #expect(Set(try look(at: [kept]).sends.map(\.candidate.id)) == [old.id, child.id])
    }

    @Test func `what is moved out of one to where it stays here is brought here`() throws {
        let outside = try place("x.nosync")
        var file = device.newInode(.file)
        file.placeholder = Placeholder(
            revision: try #require(try content(8).revision),
            generation: 1,
            size: 100,
            modified: file.modified,
            mode: 0o644,
            offset: 50
        )
        device.put(file, at: outside)
        let pass = try look(at: [outside]).pass
        #expect(device.fetched == [outside])
        #expect(pass.verdicts[.place(outside)] == .later(.seconds(2)))
    }

    @Test(arguments: [ContentAbsence.superseded, .withdrawn])
    func `what is moved into it, and never came, does not hold it up`(_ absence: ContentAbsence) throws {
        let package = try place("D.rtfd")
        let state = makePackage(package, dataless: 1)
        _ = try row(1, "D.rtfd", content(), state)
        var file = device.newInode(.file)
        file.placeholder = Placeholder(
            revision: try #require(try content(8).revision),
            generation: 1,
            size: 100,
            modified: file.modified,
            mode: 0o644
        )
        var moved = try row(2, "file", content(8, isPackage: false), file)
        let inner = try place("file", in: state.key)
        device.put(file, at: inner)
        #expect(try look(at: [inner]).pass.candidates[moved.id]?.applies.isEmpty == true)
        // Its author has sent something else, or has taken it back.
        if absence == .superseded {
            moved.content = try content(9, isPackage: false)
            device.cloud[moved.id]?.content = moved.content
        } else {
            device.cloud[moved.id]?.isDeleted = true
        }
        _ = tracker.noteUndeliverable(file.key, absence: absence, askedAt: tracker.newsCount)
        let candidate = try #require(try look(at: [inner]).pass.candidates[moved.id])
        switch (absence, candidate.applies.first) {
        case (.superseded, .refer(let remote)?): #expect(remote.content == moved.content)
        case (.withdrawn, .planned(.vanish)?): break
        default: Issue.record("\(candidate.applies)")
        }
    }

    @Test func `a file of its name is another item`() throws {
        let package = try place("D.rtfd")
        makePackage(package)
        let remote = RemoteItem(
            id: ItemID(number: 3),
            place: Place(parent: .root, name: package.name),
            content: try content(isPackage: false),
            attributes: ItemAttributes(modified: Timestamp(nanoseconds: 1), mode: 0o644),
            position: 3
        )
        device.cloud[remote.id] = remote
        let candidate = try #require(try look(at: [package]).pass.all.first { $0.found != nil })
        guard case .aside? = candidate.applies.first else {
            Issue.record("\(candidate.applies)")
            return
        }
    }
}
