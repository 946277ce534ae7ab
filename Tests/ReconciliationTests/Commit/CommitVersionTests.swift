import Reconciliation
import Testing
import UbiquityModel

@Suite struct CommitVersionTests {
    /// A file with the content "winner" and two losers.
    struct Conflict {
        var world = CommitWorld()
        var file = ItemID.root
        var winner = RevisionID(high: 0, low: 0)
        var losers: [RevisionID] = []

        init() throws {
            let (file, base) = try world.file("a.txt", "one")
            self.file = file
            winner = world.fresh()
            _ = world.edit(file, base: base, "winner", as: winner, edited: 500)
            for (text, edited) in [("first loser", Int64(300)), ("second loser", 400)] {
                let loser: RevisionID = world.fresh()
                losers.append(loser)
                _ = world.edit(file, base: base, text, as: loser, edited: edited, device: "bert")
            }
        }
    }

    @Test func `an item gets no more conflict versions than can be told with every change`() throws {
        var world = CommitWorld()
        let (file, base) = try world.file("a", edited: 5_000)
        _ = world.edit(file, base: base, "winner", edited: 6_000)
        for number in 0..<CommitLimits.conflicts {
            let outcome = world.edit(file, base: base, "loser \(number)", edited: Int64(number))
            guard outcome.item != nil else { throw WorldError(what: "\(number): \(outcome)") }
        }
        let former = world.items
        guard case .invalid = world.edit(file, base: base, "one more", edited: 7_000) else {
            throw WorldError(what: "it was taken")
        }
        #expect(world.items == former)
        let loser = try #require(world.conflicts(file).first)
        _ = world.commit(file, .resolve(versions: [loser], winner: nil, base: nil))
        #expect(world.edit(file, base: base, "one more", edited: 7_000).item != nil)
        #expect(world.conflicts(file).count == CommitLimits.conflicts)
    }

    @Test func `a conflict version that its author did not know is not deleted along with a file`() throws {
        var conflict = try Conflict()
        let (file, losers) = (conflict.file, conflict.losers)
        for known in [[], [losers[0]]] {
            let outcome = conflict.world.commit(file, .delete(base: conflict.winner, conflicts: known))
            guard case .superseded(let item) = outcome, !item.isDeleted else { throw WorldError(what: "\(outcome)") }
        }
        let outcome = conflict.world.commit(file, .delete(base: conflict.winner, conflicts: losers))
        #expect(outcome.item?.isDeleted == true)
    }

    @Test func `conflict versions are listed oldest first`() throws {
        let conflict = try Conflict()
        #expect(conflict.world.conflicts(conflict.file) == conflict.losers)
    }

    @Test func `resolving keeps the current content and leaves what was not named`() throws {
        var conflict = try Conflict()
        let item = try #require(
            conflict.world.commit(conflict.file, .resolve(versions: [conflict.losers[0]], winner: nil, base: nil)).item
        )
        #expect(item.conflicts.map(\.revision) == [conflict.losers[1]])
        #expect(conflict.world.current(conflict.file) == conflict.winner)
        #expect(conflict.world.revisions[conflict.losers[0]]?.version.kind == .saved)
        #expect(conflict.world.violation == nil)
    }

    /// Else it would be thinned among what it lost against, when it is replaced.
    @Test func `what was chosen counts as of its choice`() throws {
        var conflict = try Conflict()
        let chosen = conflict.losers[0]
        let before = try #require(conflict.world.revisions[chosen]?.version.edited)
        _ = conflict.world.commit(
            conflict.file,
            .resolve(versions: conflict.losers, winner: chosen, base: conflict.winner)
        )
        #expect(conflict.world.current(conflict.file) == chosen)
        let edited = try #require(conflict.world.revisions[chosen]?.version.edited)
        #expect(edited == seconds(conflict.world.now) && edited > before)
    }

    @Test func `saved versions that are removed are not wanted any more, and conflicts stay`() throws {
        var conflict = try Conflict()
        let (first, second) = (conflict.losers[0], conflict.losers[1])
        _ = conflict.world.commit(conflict.file, .resolve(versions: [first], winner: nil, base: nil))
        let before = try #require(conflict.world.items[conflict.file])
        let discard = ItemOperation.Action.discard(versions: [first, second, conflict.winner])
        let item = try #require(conflict.world.commit(conflict.file, discard).item)
        #expect(item.position > before.position && item.conflicts.map(\.revision) == [second])
        #expect(conflict.world.current(conflict.file) == conflict.winner)
        let unwanted = conflict.world.revisions.values.filter(\.isUnwanted).map(\.version.revision)
        #expect(unwanted == [first])
        // Again: nothing changes. Who brings it back wants it.
        #expect(conflict.world.commit(conflict.file, discard) == .committed(item))
        let restore = ItemOperation.Action.restore(
            version: first,
            as: RevisionID(high: 9, low: 9),
            base: conflict.winner,
            edited: Timestamp(seconds: 500, nanoseconds: 0)
        )
        #expect(conflict.world.commit(conflict.file, restore).item != nil)
        let restored = conflict.world.revisions[RevisionID(high: 9, low: 9)]
        #expect(restored?.version.kind == .current && restored?.isUnwanted == false)
    }

    @Test func `a version that is chosen becomes the file, and what was in it a saved version`() throws {
        var conflict = try Conflict()
        let action = ItemOperation.Action.resolve(versions: conflict.losers, winner: conflict.losers[0], base: nil)
        let item = try #require(conflict.world.commit(conflict.file, action).item)
        #expect(item.conflicts.isEmpty)
        #expect(conflict.world.current(conflict.file) == conflict.losers[0])
        #expect(conflict.world.revisions[conflict.winner]?.version.kind == .saved)
        #expect(conflict.world.violation == nil)
        // Again: nothing changes.
        #expect(conflict.world.commit(conflict.file, action).item == item)
    }

    @Test func `a conflict resolved differently elsewhere is a conflict again`() throws {
        var conflict = try Conflict()
        _ = conflict.world.commit(
            conflict.file,
            .resolve(versions: conflict.losers, winner: conflict.winner, base: nil)
        )
        let other = ItemOperation.Action.resolve(versions: conflict.losers, winner: conflict.losers[1], base: nil)
        let item = try #require(conflict.world.commit(conflict.file, other, device: "bert").item)
        #expect(conflict.world.current(conflict.file) == conflict.losers[1])
        #expect(item.conflicts.map(\.revision) == [conflict.winner])
        #expect(conflict.world.violation == nil)
    }

    @Test func `versions of other items resolve nothing`() throws {
        var conflict = try Conflict()
        let (_, foreign) = try conflict.world.file("b", "other")
        let before = try #require(conflict.world.items[conflict.file])
        #expect(
            conflict.world.commit(conflict.file, .resolve(versions: [foreign], winner: nil, base: nil)).item == before
        )
        guard case .invalid = conflict.world.commit(conflict.file, .resolve(versions: [], winner: foreign, base: nil))
        else {
            Issue.record("a foreign version became the file")
            return
        }
    }

    @Test func `restoring brings a version back as a new revision, once`() throws {
        var world = CommitWorld()
        let (file, first) = try world.file("a", "one", edited: 100)
        _ = world.edit(file, base: first, "two", edited: 200)
        let second = world.current(file)
        let new: RevisionID = world.fresh()
        let action = ItemOperation.Action.restore(version: first, as: new, base: nil, edited: seconds(300))
        let item = try #require(world.commit(file, action, device: "bert").item)
        #expect(world.current(file) == new)
        #expect(item.content.size == 3)
        #expect(item.author == "bert")
        #expect(second.flatMap { world.revisions[$0]?.version.kind } == .saved)
        #expect(world.commit(file, action).item == item)
        #expect(world.violation == nil)
    }

    @Test func `restoring does not resolve`() throws {
        var conflict = try Conflict()
        let action = ItemOperation.Action.restore(
            version: conflict.losers[0],
            as: conflict.world.fresh(),
            base: nil,
            edited: seconds(600)
        )
        let item = try #require(conflict.world.commit(conflict.file, action).item)
        #expect(item.conflicts.map(\.revision) == conflict.losers)
        #expect(conflict.world.violation == nil)
    }

    /// Restoring does not resolve: the file has the content of one of its losers then.
    @Test(arguments: [true, false])
    func `a restored loser that loses again is one loser, not two`(toLink: Bool) throws {
        var conflict = try Conflict()
        let base = conflict.winner
        let restore = ItemOperation.Action.restore(
            version: conflict.losers[0],
            as: conflict.world.fresh(),
            base: base,
            edited: seconds(600)
        )
        _ = conflict.world.commit(conflict.file, restore)
        let link = ItemOperation.Action.edit(
            base: base,
            content: .symlink(target: [UInt8(ascii: "x")]),
            attributes: attributes(700),
            manifest: Manifest(),
            edited: seconds(700)
        )
        let outcome =
            toLink
            ? conflict.world.commit(conflict.file, link, device: "bert")
            : conflict.world.edit(conflict.file, base: base, "later", edited: 700, device: "bert")
        let item = try #require(outcome.item)
        #expect(item.conflicts.map(\.revision) == conflict.losers)
        #expect(conflict.world.violation == nil)
    }

    @Test(arguments: [true, false])
    func `what a resolver never saw becomes a conflict version, not a saved one`(isRestoring: Bool) throws {
        var conflict = try Conflict()
        let seen = conflict.winner
        let unseen: RevisionID = conflict.world.fresh()
        _ = conflict.world.edit(conflict.file, base: seen, "meanwhile", as: unseen, edited: 600)
        let loser = conflict.losers[0]
        let action: ItemOperation.Action =
            isRestoring
            ? .restore(version: loser, as: conflict.world.fresh(), base: seen, edited: seconds(700))
            : .resolve(versions: conflict.losers, winner: loser, base: seen)
        let item = try #require(conflict.world.commit(conflict.file, action, device: "bert").item)
        #expect(conflict.world.current(conflict.file) != unseen)
        #expect(item.conflicts.map(\.revision) == (isRestoring ? conflict.losers : []) + [unseen])
        #expect(conflict.world.violation == nil)
    }

    @Test func `what a resolver saw becomes a saved version`() throws {
        var conflict = try Conflict()
        let action = ItemOperation.Action.resolve(
            versions: conflict.losers,
            winner: conflict.losers[0],
            base: conflict.winner
        )
        #expect(try #require(conflict.world.commit(conflict.file, action).item).conflicts.isEmpty)
        #expect(conflict.world.revisions[conflict.winner]?.version.kind == .saved)
    }

    @Test func `conflicts come back with a deleted file`() throws {
        var conflict = try Conflict()
        _ = conflict.world.commit(conflict.file, .delete(base: conflict.winner, conflicts: conflict.losers))
        let item = try #require(conflict.world.commit(conflict.file, .undelete).item)
        #expect(item.conflicts.map(\.revision) == conflict.losers)
        #expect(conflict.world.violation == nil)
    }
}
