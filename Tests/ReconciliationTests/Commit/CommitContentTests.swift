import Reconciliation
import Testing
import UbiquityModel

@Suite struct CommitContentTests {
    @Test(arguments: ["kept", "discarded", "unwanted"])
    func `an old content that nobody saw being written is an edit if it is not kept any more`(fate: String) throws {
        var world = CommitWorld()
        let (file, first) = try world.file("a", "one")
        _ = world.edit(file, base: first, "two", edited: 200)
        let second = try #require(world.current(file))
        world.revisions[first]?.isDiscarded = fate == "discarded"
        world.revisions[first]?.isUnwanted = fate == "unwanted"
        _ = world.edit(file, base: second, "one", edited: 300, isUnwitnessed: true)
        #expect((world.current(file) == second) == (fate == "kept"))
        #expect(world.violation == nil)
    }

    @Test(arguments: [true, false])
    func `an old content that nobody saw being written is no edit`(isUnwitnessed: Bool) throws {
        var world = CommitWorld()
        let (file, first) = try world.file("a", "one")
        _ = world.edit(file, base: first, "two", edited: 200)
        let second = try #require(world.current(file))
        _ = world.edit(file, base: second, "three", edited: 300)
        let third = try #require(world.current(file))
        for base in [third, second] {
            let outcome = world.edit(file, base: base, "one", edited: 400, isUnwitnessed: isUnwitnessed)
            if isUnwitnessed {
                #expect(outcome.item?.content.revision == third)
                #expect(outcome.item?.conflicts == [])
            } else {
                #expect(world.current(file) != third)
            }
        }
        // What it never had is an edit all the same.
        let current = try #require(world.current(file))
        _ = world.edit(file, base: current, "four", edited: 500, isUnwitnessed: isUnwitnessed)
        #expect(world.current(file) != current)
        #expect(world.violation == nil)
    }

    @Test func `an edit of the current revision replaces it and keeps it as a saved version`() throws {
        var world = CommitWorld()
        let (file, first) = try world.file("a", "one")
        let item = try #require(world.edit(file, base: first, "two", edited: 200).item)
        #expect(item.conflicts.isEmpty)
        #expect(world.revisions[first]?.version.kind == .saved)
        #expect(world.current(file) != first)
        #expect(world.violation == nil)
    }

    struct Race {
        var name: String
        var firstEdited: Int64
        var secondEdited: Int64
        /// The one committed second.
        var secondWins: Bool
    }

    @Test(arguments: [
        Race(name: "the later edit wins", firstEdited: 300, secondEdited: 400, secondWins: true),
        Race(
            name: "the earlier edit loses although it came last",
            firstEdited: 400,
            secondEdited: 300,
            secondWins: false
        ),
        Race(
            name: "of equal times the one that was there stays",
            firstEdited: 300,
            secondEdited: 300,
            secondWins: false
        ),
        Race(name: "a time in the future is now", firstEdited: 1_000, secondEdited: 99_999, secondWins: false),
    ])
    func `of two edits of one base the later wins and the other is kept`(race: Race) throws {
        var world = CommitWorld()
        let (file, base) = try world.file("a", "one")
        let anna: RevisionID = world.fresh()
        let bert: RevisionID = world.fresh()
        _ = world.edit(file, base: base, "anna's", as: anna, edited: race.firstEdited)
        let item = try #require(
            world.edit(file, base: base, "bert's", as: bert, edited: race.secondEdited, device: "bert").item
        )
        #expect(world.current(file) == (race.secondWins ? bert : anna), "\(race.name)")
        #expect(item.conflicts.map(\.revision) == [race.secondWins ? anna : bert])
        #expect(item.conflicts.first?.device == (race.secondWins ? "anna" : "bert"))
        #expect(item.author == (race.secondWins ? "bert" : "anna"))
        #expect(world.violation == nil)
    }

    @Test(arguments: [("two", 0), ("three", 0), ("other", 1)])
    func `an edit that the other side made too, and went on from, is no conflict`(text: String, conflicts: Int) throws {
        var world = CommitWorld()
        let (file, base) = try world.file("a", "one")
        let second: RevisionID = world.fresh()
        _ = world.edit(file, base: base, "two", as: second, edited: 200)
        _ = world.edit(file, base: second, "three", edited: 300)
        // Died after it had applied "two", before it wrote that down.
        let item = try #require(world.edit(file, base: base, text, edited: 400, device: "bert").item)
        #expect(item.conflicts.count == conflicts)
        #expect(world.violation == nil)
    }

    /// Its author may have the last copy.
    @Test func `an edit that the other side made too, and the cloud has discarded since, is one`() throws {
        var world = CommitWorld()
        let (file, base) = try world.file("a", "one")
        let second: RevisionID = world.fresh()
        _ = world.edit(file, base: base, "two", as: second, edited: 200)
        _ = world.edit(file, base: second, "three", edited: 300)
        world.revisions[second]?.isDiscarded = true
        let item = try #require(world.edit(file, base: base, "two", edited: 400, device: "bert").item)
        #expect(item.conflicts.count == 1)
        #expect(world.violation == nil)
    }

    @Test func `edit times are corrected by the difference of the clocks`() throws {
        var world = CommitWorld()
        let (file, base) = try world.file("a", "one")
        // Anna's clock is an hour ahead: her 3900 is the server's 300.
        _ = world.edit(file, base: base, "anna's", edited: 3_900, clockOffset: 3_600)
        let bert: RevisionID = world.fresh()
        _ = world.edit(file, base: base, "bert's", as: bert, edited: 400, device: "bert")
        #expect(world.current(file) == bert)
    }

    @Test func `identical edits are no conflict`() throws {
        var world = CommitWorld()
        let (file, base) = try world.file("a", "one")
        let first = try #require(world.edit(file, base: base, "same", edited: 300).item)
        let second = try #require(world.edit(file, base: base, "same", edited: 400, device: "bert").item)
        #expect(second == first)
    }

    @Test func `an old content from a stale base is no edit`() throws {
        var world = CommitWorld()
        let (file, first) = try world.file("a", "one")
        let second: RevisionID = world.fresh()
        _ = world.edit(file, base: first, "two", as: second, edited: 200)
        let current = try #require(world.edit(file, base: second, "three", edited: 300).item)
        #expect(world.edit(file, base: second, "two", edited: 400, device: "bert").item == current)
        #expect(world.violation == nil)
    }

    /// Somebody has brought it back, here, while another went on there: neither is lost, nor only an old version.
    @Test func `going back from a stale base is a conflict`() throws {
        var world = CommitWorld()
        let (file, first) = try world.file("a", "one")
        let second: RevisionID = world.fresh()
        _ = world.edit(file, base: first, "two", as: second, edited: 200)
        let third: RevisionID = world.fresh()
        _ = world.edit(file, base: second, "three", as: third, edited: 400)
        let back: RevisionID = world.fresh()
        _ = world.edit(file, base: second, "one", as: back, edited: 300, device: "bert")
        #expect(world.current(file) == third)
        #expect(world.conflicts(file) == [back])
        #expect(world.violation == nil)
    }

    @Test func `going back to an old content from the current revision is an edit`() throws {
        var world = CommitWorld()
        let (file, first) = try world.file("a", "one")
        let second: RevisionID = world.fresh()
        _ = world.edit(file, base: first, "two", as: second, edited: 200)
        let third: RevisionID = world.fresh()
        _ = world.edit(file, base: second, "one", as: third, edited: 300)
        #expect(world.current(file) == third)
        #expect(world.violation == nil)
    }

    @Test(arguments: [(500, true), (350, false)])
    func `an edit of a loser replaces it`(edited: Int64, wins: Bool) throws {
        var world = CommitWorld()
        let (file, base) = try world.file("a", "one")
        let winner: RevisionID = world.fresh()
        let loser: RevisionID = world.fresh()
        _ = world.edit(file, base: base, "winner", as: winner, edited: 400)
        _ = world.edit(file, base: base, "loser", as: loser, edited: 300, device: "bert")
        let next: RevisionID = world.fresh()
        _ = world.edit(file, base: loser, "loser, improved", as: next, edited: edited, device: "bert")
        #expect(world.current(file) == (wins ? next : winner))
        #expect(world.conflicts(file) == [wins ? winner : next])
        #expect(world.revisions[loser]?.version.kind == .saved)
        #expect(world.violation == nil)
    }

    @Test func `the same loser twice is one conflict version`() throws {
        var world = CommitWorld()
        let (file, base) = try world.file("a", "one")
        _ = world.edit(file, base: base, "winner", edited: 400)
        _ = world.edit(file, base: base, "loser", edited: 300, device: "bert")
        _ = world.edit(file, base: base, "loser", edited: 350, device: "cleo")
        #expect(world.conflicts(file).count == 1)
        // And when it wins after all, nothing of it is left as a conflict.
        let late: RevisionID = world.fresh()
        _ = world.edit(file, base: base, "loser", as: late, edited: 900, device: "dora")
        #expect(world.current(file) == late)
        #expect(world.items[file]?.conflicts.count == 1)
        #expect(world.violation == nil)
    }

    @Test func `making what the winner is settles the loser that one came from`() throws {
        var world = CommitWorld()
        let (file, base) = try world.file("a", "one")
        let loser: RevisionID = world.fresh()
        _ = world.edit(file, base: base, "winner", edited: 400)
        _ = world.edit(file, base: base, "loser", as: loser, edited: 300, device: "bert")
        let item = try #require(world.edit(file, base: loser, "winner", edited: 500, device: "bert").item)
        #expect(item.conflicts.isEmpty)
        #expect(world.violation == nil)
    }

    @Test func `a revision is committed once`() throws {
        var world = CommitWorld()
        let (file, base) = try world.file("a", "one")
        let revision: RevisionID = world.fresh()
        let first = try #require(world.edit(file, base: base, "two", as: revision, edited: 300).item)
        #expect(world.edit(file, base: base, "two", as: revision, edited: 300).item == first)
        let (other, _) = try world.file("b", "three")
        guard case .invalid = world.edit(other, base: nil, "two", as: revision, edited: 300) else {
            Issue.record("a revision went to two items")
            return
        }
    }

    @Test func `chunks that are missing are named, and nothing is committed`() throws {
        var world = CommitWorld()
        let content = content(world.fresh(), "not uploaded")
        let id: ItemID = world.fresh()
        let create = ItemOperation.Action.create(
            place: try place("a"),
            content: .file(content.file),
            attributes: attributes(1),
            manifest: content.manifest,
            edited: seconds(1)
        )
        #expect(world.commit(id, create) == .missingChunks(content.manifest.entries.map(\.chunk)))
        world.isQuotaExceeded = true
        #expect(world.commit(id, create) == .quotaExceeded)
        #expect(world.items.isEmpty)
    }

    @Test func `an announced file claims no name and becomes whole by create`() throws {
        var world = CommitWorld()
        let announced: ItemID = world.fresh()
        let revision: RevisionID = world.fresh()
        let content = content(revision, "big")
        let action = ItemOperation.Action.announce(
            place: try place("a"),
            content: content.file,
            attributes: attributes(5)
        )
        #expect(try #require(world.commit(announced, action).item).isAnnounced)
        let (other, _) = try world.file("a", "small")
        let create = world.create(try place("a"), revision, "big")
        #expect(world.commit(announced, create) == .nameTaken(by: other))
        let item = try #require(world.commit(announced, world.create(try place("a 2"), revision, "big")).item)
        #expect(!item.isAnnounced)
        #expect(world.violation == nil)
    }

    @Test func `a file that became a link keeps its content as a version`() throws {
        var world = CommitWorld()
        let (file, base) = try world.file("a", "one")
        let link = ItemContent.symlink(target: Array("b".utf8))
        let edit = ItemOperation.Action.edit(
            base: base,
            content: link,
            attributes: attributes(1),
            manifest: Manifest(),
            edited: seconds(200)
        )
        #expect(try #require(world.commit(file, edit).item).content == link)
        #expect(world.revisions[base]?.version.kind == .saved)
        #expect(world.edit(file, base: nil, "a file again", edited: 300, formerTarget: "b").item?.content.kind == .file)
        #expect(world.violation == nil)
    }

    /// There are no versions of what a link leads to.
    @Test(arguments: [nil, "old", "new"])
    func `only who has seen what a link leads to changes or deletes it`(seen: String?) throws {
        var world = CommitWorld()
        let link: ItemID = world.fresh()
        let create = world.create(try place("l"), .symlink(target: Array("old".utf8)))
        _ = world.commit(link, create)
        func edit(_ target: String) -> ItemOperation.Action {
            .edit(
                base: nil,
                content: .symlink(target: Array(target.utf8)),
                attributes: attributes(1),
                manifest: Manifest(),
                edited: seconds(200)
            )
        }
        let newer = try #require(world.commit(link, edit("new"), device: "bert", formerTarget: "old").item)
        // A creation whose answer was lost is repeated, and so is an edit.
        #expect(world.commit(link, create) == .superseded(newer))
        #expect(world.commit(link, edit("new"), device: "bert", formerTarget: "old") == .committed(newer))
        for attempt in 0..<3 {
            var world = world
            let outcome =
                switch attempt {
                case 0: world.commit(link, edit("third"), formerTarget: seen)
                case 1: world.edit(link, base: nil, "a file", edited: 300, formerTarget: seen)
                default: world.commit(link, .delete(base: nil), formerTarget: seen)
                }
            if seen == "new" {
                #expect(outcome.item?.position == newer.position + 1)
            } else {
                #expect(outcome == .superseded(newer))
                #expect(world.items[link] == newer)
            }
        }
    }

    /// What a link leads to may have come from another link, which its author has deleted along with that.
    @Test(arguments: ["old", "new", nil])
    func `a link that was deleted comes back with an edit, also with the target that others gave it before`(
        seen: String?
    ) throws {
        var world = CommitWorld()
        let link: ItemID = world.fresh()
        _ = world.commit(link, world.create(try place("l"), .symlink(target: Array("new".utf8))))
        let deleted = try #require(world.commit(link, .delete(base: nil), formerTarget: "new").item)
        let edit = ItemOperation.Action.edit(
            base: nil,
            content: .symlink(target: Array("new".utf8)),
            attributes: attributes(1),
            manifest: Manifest(),
            edited: seconds(200)
        )
        let outcome = world.commit(link, edit, device: "bert", formerTarget: seen)
        if seen == "old" {
            #expect(outcome.item?.isDeleted == false)
        } else {
            // It led there already: nothing was changed.
            #expect(outcome == .committed(deleted))
        }
    }

    @Test func `a revision has one content, and a repeated one is answered only with that`() throws {
        var world = CommitWorld()
        let (file, first) = try world.file("a", "one")
        let before = try #require(world.items[file])
        #expect(world.edit(file, base: first, "one", as: first, edited: 200).item == before)
        guard case .invalid = world.edit(file, base: first, "two", as: first, edited: 200) else {
            Issue.record("the device would take \"two\" for committed")
            return
        }
        #expect(world.items[file] == before)
    }

    @Test func `a new item takes over no other item's revision`() throws {
        var world = CommitWorld()
        let (file, first) = try world.file("a", "one")
        guard case .invalid = world.commit(world.fresh(), world.create(try place("b"), first, "one")) else {
            Issue.record("the revision of a became that of b")
            return
        }
        #expect(world.revisions[first]?.item == file)
        #expect(world.violation == nil)
    }

    @Test func `a manifest that lies about a chunk's length is refused`() throws {
        var world = CommitWorld()
        _ = try world.file("a", "one")
        let good = content(world.fresh(), "one")
        var manifest = good.manifest
        manifest.entries[0].length = 100
        let liar = FileContent(
            revision: good.file.revision,
            content: ContentID(bytes: [UInt8](repeating: 7, count: 32)),
            size: 100
        )
        let action = ItemOperation.Action.create(
            place: try place("b"),
            content: .file(liar),
            attributes: attributes(1),
            manifest: manifest,
            edited: seconds(1)
        )
        guard case .invalid = world.commit(world.fresh(), action) else {
            Issue.record("a file of 100 bytes that has three")
            return
        }
    }
}
