import EngineCore
import Reconciliation
import Testing
import UbiquityModel

/// What a `.ubiquityignore` keeps on this device, and what it does not.
@Suite struct IgnoringTests {
    private let device = FakeDevice()
    private let tracker: ItemTracker<FakeDevice>

    init() { tracker = ItemTracker(view: device) }

    private func place(_ name: String, in folder: InodeKey? = nil) throws -> LocalPlace {
        LocalPlace(folder: folder ?? device.rootKey, name: try Name(name))
    }

    /// Puts something new there.
    @discardableResult
    private func make(_ kind: LocalKind, _ place: LocalPlace, size: Int64 = 0) -> LocalState {
        var state = device.newInode(kind)
        state.size = size
        device.put(state, at: place)
        return state
    }

    private func write(rules text: String, in folder: InodeKey? = nil) {
        let place = LocalPlace(folder: folder ?? device.rootKey, name: IgnoreRules.name)
        let state = make(.file, place, size: Int64(text.utf8.count))
        device.texts[state.key] = text
        tracker.ignoring.noteName(place.name, in: place.folder)
    }

    private func remote(
        _ number: UInt8,
        _ name: String,
        _ content: ItemContent = .folder,
        in parent: ItemID = .root
    ) throws -> RemoteItem {
        let remote = RemoteItem(
            id: ItemID(number: number),
            place: Place(parent: parent, name: try Name(name)),
            content: content,
            attributes: ItemAttributes(modified: Timestamp(nanoseconds: 1), mode: 0o755),
            position: UInt64(number)
        )
        device.cloud[remote.id] = remote
        return remote
    }

    private func file(size: Int64) throws -> ItemContent {
        let revision = try #require(RevisionID(bytes: [UInt8](repeating: 0, count: 15) + [7]))
        return .file(
            FileContent(revision: revision, content: ContentID(bytes: [UInt8](repeating: 7, count: 32)), size: size)
        )
    }

    private struct Outcome {
        var pass: Pass
        var sends: [PlannedSend]
        var verdicts: [EngineCore.Work: EngineCore.Verdict]
    }

    private func look(at places: [LocalPlace], items: [ItemID] = []) throws -> Outcome {
        let works = places.map { EngineCore.Work.place($0) } + items.map { .item($0) }
        let pass = Pass(seenUpTo: 1)
        for work in works { try tracker.collect(work, into: pass) }
        let sends = tracker.decide(pass).sends
        return Outcome(pass: pass, sends: sends, verdicts: tracker.settle(pass, works).verdicts)
    }

    // MARK: What is new

    @Test func `what is new and ignored is no item, and people are told why`() throws {
        write(rules: "# of builds\n*.o\n")
        let place = try place("a.o")
        let state = make(.symlink, place)
        let outcome = try look(at: [place])
        #expect(outcome.pass.all.isEmpty && outcome.verdicts == [.place(place): .done])
        guard case .ignored(let reason) = try tracker.ruling(onUnsent: place, state) else {
            Issue.record("it is not ignored")
            return
        }
        #expect(reason.description == "ignored by .ubiquityignore, line 2: *.o")
        #expect(tracker.ignoring.withUnsent == [device.rootKey])
        // What is not named is sent, the file with the rules too.
        let other = try self.place("d")
        make(.folder, other)
        let rules = LocalPlace(folder: device.rootKey, name: IgnoreRules.name)
        #expect(try look(at: [other, rules]).pass.all.count == 2)
    }

    @Test func `what the cloud has stays synced under an ignored name`() throws {
        write(rules: "*.o\n")
        let item = try remote(1, "d")
        let place = try place("d.o")
        let state = make(.folder, place)
        device.rows[item.id] = SyncedItem(item, local: LocalEvidence(state))
        let outcome = try look(at: [place])
        #expect(outcome.sends.map(\.actions) == [[.move(Place(parent: .root, name: place.name))]])
    }

    @Test func `in an ignored folder nothing is sent, whatever is said in it`() throws {
        write(rules: "build/\n")
        let build = make(.folder, try place("build"))
        let inner = make(.folder, try place("inner", in: build.key))
        write(rules: "!*\n", in: inner.key)
        let file = try place("f", in: inner.key)
        make(.file, file)
        let outcome = try look(at: [file])
        #expect(outcome.pass.all.isEmpty && outcome.verdicts == [.place(file): .done])
        #expect(tracker.ignoring.unsentFolders == [build.key, inner.key])
    }

    @Test func `an ignored folder goes along with what is synced and was moved there`() throws {
        write(rules: "build/\n")
        let item = try remote(1, "d")
        let build = make(.folder, try place("build"))
        let place = try place("d", in: build.key)
        let state = make(.folder, place)
        device.rows[item.id] = SyncedItem(item, local: LocalEvidence(state))
        let first = try look(at: [place])
        #expect(first.verdicts == [.place(place): .again])
        // It may get another name elsewhere before anybody here is told that it was sent: it is looked at for itself as well.
        #expect(first.pass.lookAlsoAt == [try self.place("build")])
        let outcome = try look(at: [place])
        #expect(outcome.sends.map(\.actions).first == [.create])
        let parent = try #require(outcome.sends.first).candidate.id
        #expect(outcome.sends.last?.actions == [.move(Place(parent: parent, name: place.name))])
        // Nothing else in it does.
        let other = try self.place("other", in: build.key)
        make(.folder, other)
        #expect(try !look(at: [other]).sends.contains { $0.candidate.found?.place == other })
    }

    @Test func `an ignored folder goes along with a placeholder`() throws {
        write(rules: "build/\n")
        let build = make(.folder, try place("build"))
        let place = try place("f", in: build.key)
        device.put(try placeholder(of: file(size: 4)), at: place)
        #expect(try look(at: [place]).verdicts == [.place(place): .again])
        #expect(try look(at: [place]).sends.map(\.actions).first == [.create])
    }

    @Test func `other rules are noticed with the next look`() throws {
        write(rules: "*.o\n")
        let place = try place("a.o")
        make(.symlink, place)
        _ = try look(at: [place])
        tracker.ignoring.changed = []
        write(rules: "*.c\n")
        _ = try look(at: [LocalPlace(folder: device.rootKey, name: IgnoreRules.name)])
        #expect(tracker.ignoring.changed == [device.rootKey])
        #expect(try look(at: [place]).pass.all.count == 1)
    }

    @Test func `a file that is too large means nothing, and that is told`() throws {
        let place = LocalPlace(folder: device.rootKey, name: IgnoreRules.name)
        let state = make(.file, place, size: Int64(IgnoreRules.largestFile) + 1)
        device.texts[state.key] = "*\n"
        tracker.ignoring.noteName(place.name, in: place.folder)
        let other = try self.place("d")
        make(.folder, other)
        #expect(try look(at: [other]).sends.map(\.actions) == [[.create]])
        #expect(tracker.ignoring.faults[device.rootKey]?.contains("1 MiB") == true)
    }

    // MARK: Rules that are not here

    private func placeholder(of content: ItemContent) throws -> LocalState {
        var state = device.newInode(.file)
        state.size = 4
        state.placeholder = Placeholder(
            revision: try #require(content.revision),
            generation: 1,
            size: 4,
            modified: state.modified,
            mode: 0o644
        )
        return state
    }

    /// Puts a file with rules there whose content is only in the cloud.
    private func putDatalessRules() throws -> (place: LocalPlace, item: RemoteItem, state: LocalState) {
        let place = LocalPlace(folder: device.rootKey, name: IgnoreRules.name)
        let item = try remote(1, ".ubiquityignore", file(size: 4))
        let state = try placeholder(of: item.content)
        device.put(state, at: place)
        device.rows[item.id] = SyncedItem(item, local: LocalEvidence(state))
        tracker.ignoring.noteName(place.name, in: place.folder)
        return (place, item, state)
    }

    @Test func `what is new waits for rules that are a placeholder`() throws {
        var (rules, _, state) = try putDatalessRules()
        let place = try place("a.o")
        make(.folder, place)
        let outcome = try look(at: [place])
        #expect(outcome.sends.isEmpty && outcome.verdicts == [.place(place): .later(.seconds(2))])
        #expect(device.fetched == [rules])
        state.placeholder = nil
        device.put(state, at: rules)
        device.texts[state.key] = "*.o\n"
        #expect(try look(at: [place]).pass.all.isEmpty)
    }

    @Test func `rules whose content is nowhere mean nothing, and that is told`() throws {
        let (_, _, state) = try putDatalessRules()
        let place = try place("a.o")
        make(.folder, place)
        #expect(try look(at: [place]).sends.isEmpty)
        #expect(tracker.noteUndeliverable(state.key, absence: .gone, askedAt: tracker.newsCount) == [.place(place)])
        #expect(try look(at: [place]).sends.map(\.actions) == [[.create]])
        #expect(tracker.ignoring.faults[device.rootKey]?.contains("nowhere") == true)
    }

    @Test func `what is new waits for rules that have another content by now`() throws {
        let (_, _, state) = try putDatalessRules()
        let place = try place("a.o")
        make(.folder, place)
        _ = try look(at: [place])
        _ = tracker.noteUndeliverable(state.key, absence: .superseded, askedAt: tracker.newsCount)
        #expect(try look(at: [place]).sends.isEmpty)
    }

    @Test func `rules wait for those above them`() throws {
        let (upper, _, _) = try putDatalessRules()
        let parent = try remote(2, "d")
        let folder = make(.folder, try place("d"))
        device.rows[parent.id] = SyncedItem(parent, local: LocalEvidence(folder))
        write(rules: "*.o\n", in: folder.key)
        tracker.ignoring.withUnsent.insert(folder.key)
        let rules = LocalPlace(folder: folder.key, name: IgnoreRules.name)
        let item = try remote(3, ".ubiquityignore", file(size: 4), in: parent.id)
        device.rows[item.id] = SyncedItem(item, local: LocalEvidence(try #require(device.tree[rules])))
        #expect(try look(at: [rules]).verdicts == [.place(rules): .later(.seconds(2))])
        #expect(device.fetched.contains(upper))
    }

    @Test func `an item does not wait for the rules that it is`() throws {
        let (rules, item, _) = try putDatalessRules()
        tracker.ignoring.withUnsent.insert(device.rootKey)
        let outcome = try look(at: [], items: [item.id])
        #expect(outcome.verdicts == [.item(item.id): .done])
        #expect(outcome.pass.lookAlsoAt == [rules])
        #expect(try look(at: [rules]).verdicts == [.place(rules): .later(.seconds(2))])
    }

    @Test func `what is new waits for rules that only the cloud has`() throws {
        let item = try remote(1, ".ubiquityignore", file(size: 4))
        let place = try place("a.o")
        make(.folder, place)
        let outcome = try look(at: [place])
        #expect(outcome.sends.isEmpty && outcome.verdicts == [.place(place): .later(.milliseconds(200))])
        #expect(outcome.pass.candidates[item.id]?.appears == true)
    }

    // MARK: What others send

    @Test(arguments: [true, false])
    func `an incoming item gets a second name where something ignored is`(isMoved: Bool) throws {
        write(rules: "*.o\n")
        let place = try place("a.o")
        make(.file, place)
        let item = try remote(1, "a.o")
        if isMoved {
            // It is here under another name, and comes from there.
            let state = make(.folder, try self.place("d"))
            device.rows[item.id] = SyncedItem(item, local: LocalEvidence(state))
            device.rows[item.id]?.place.name = try Name("d")
        }
        let outcome = try look(at: isMoved ? [place] : [], items: [item.id])
        #expect(outcome.sends.map(\.actions) == [[.move(Place(parent: .root, name: try Name("a 2.o")))]])
        #expect(outcome.pass.candidates[item.id]?.applies.isEmpty == true)
    }

    @Test func `a second name is none that differs from another in case only`() throws {
        device.isCaseInsensitive = true
        write(rules: "*.o\n")
        let place = try place("a.o")
        make(.file, place)
        make(.file, try self.place("A 2.O"))
        let item = try remote(1, "a.o")
        let outcome = try look(at: [], items: [item.id])
        #expect(outcome.sends.map(\.actions) == [[.move(Place(parent: .root, name: try Name("a 3.o")))]])
    }

    @Test(arguments: [true, false])
    func `an item that comes back or moves gets a second name there, whatever led to it`(isHere: Bool) throws {
        write(rules: "*.o\n")
        let place = try place("a.o")
        make(.file, place)
        _ = try look(at: [place])
        let item = try remote(1, "a.o")
        device.rows[item.id] = SyncedItem(item, local: nil)
        if isHere {
            let state = make(.folder, try self.place("d"))
            device.rows[item.id] = SyncedItem(item, local: LocalEvidence(state))
            device.rows[item.id]?.place.name = try Name("d")
        }
        let outcome = try look(at: [], items: [item.id])
        #expect(outcome.sends.map(\.actions) == [[.move(Place(parent: .root, name: try Name("a 2.o")))]])
        #expect(outcome.pass.candidates[item.id]?.applies.isEmpty == true)
    }

    @Test func `an ignored folder that the cloud has as well is one`() throws {
        write(rules: "build\n")
        let place = try place("build")
        let state = make(.folder, place)
        let item = try remote(1, "build")
        let outcome = try look(at: [], items: [item.id])
        #expect(outcome.sends.isEmpty)
        #expect(outcome.pass.changes.upserts.map(\.id) == [item.id])
        #expect(outcome.pass.changes.upserts.first?.local?.key == state.key)
    }
}
