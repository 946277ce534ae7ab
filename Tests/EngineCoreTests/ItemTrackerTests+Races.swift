import EngineCore
import Reconciliation
import Testing
import UbiquityModel

/// `mv f t; mv g f; mv t g` while a pass looks: of files whose content is not here one was taken for deleted, or for what the other one had
/// been, and its content was gone.
extension ItemTrackerTests {
    private struct Swap {
        let f: LocalPlace, g: LocalPlace, t: LocalPlace
        /// The items that `f` and `g` were, and their placeholders.
        let first: SyncedItem, second: SyncedItem
        let own: LocalState, other: LocalState
    }

    private func swap() throws -> Swap {
        let (own, other) = (try dataless(2, size: 4), try dataless(3, size: 4))
        let items = [try file(1, "f", revision: 2, size: 4), try file(2, "g", revision: 3, size: 4)]
        let rows = [
            SyncedItem(items[0], local: LocalEvidence(own)), SyncedItem(items[1], local: LocalEvidence(other)),
        ]
        for (item, row) in zip(items, rows) {
            device.cloud[item.id] = item
            device.rows[item.id] = row
        }
        return Swap(
            f: try place("f"),
            g: try place("g"),
            t: try place("t"),
            first: rows[0],
            second: rows[1],
            own: own,
            other: other
        )
    }

    @Test func `what was moved on between two looks is not deleted`() throws {
        let swap = try swap()
        let tracker = ItemTracker(view: device)
        tracker.vanished = [swap.f]
        tracker.moves[swap.own.key] = swap.t
        device.put(swap.own, at: swap.t)
        device.put(swap.other, at: swap.g)
        device.beforeLook = { [device] place in
            guard place == swap.t else { return }
            device.tree = [swap.f: swap.other, swap.g: swap.own]
        }
        let pass = Pass(seenUpTo: 1)
        try tracker.collect(.place(swap.f), into: pass)
        let candidate = try #require(pass.candidates[swap.first.id])
        #expect(candidate.found == nil)
        #expect(!candidate.deletionIsProven)
        _ = tracker.decide(pass)
        guard case .later? = candidate.verdict else {
            Issue.record("\(String(describing: candidate.verdict))")
            return
        }
    }

    /// The content of `f` has come, at its new name, before the engine heard how that came about.
    @Test(arguments: [true, false], [true, false])
    func `what a file has become is not believed while somebody is moving it`(isTold: Bool, isAboutNames: Bool) throws {
        let swap = try swap()
        var whole = swap.own
        whole.placeholder = nil
        device.put(swap.other, at: swap.f)
        device.put(whole, at: swap.g)
        let tracker = ItemTracker(view: device)
        let pass = Pass(seenUpTo: 1)
        try tracker.collect(.place(swap.g), into: pass)
        let candidate = try #require(pass.candidates[swap.second.id])
        #expect(candidate.found?.state.key == whole.key)
        if isTold {
            tracker.changeCount = 2
            tracker.changedAt[swap.g] = 2
            tracker.aspects[swap.g] = isAboutNames ? .entry : .content
        }
        tracker.distrust(pass, isComplete: isTold)
        #expect(candidate.verdict == (!isTold ? .later(.milliseconds(1)) : isAboutNames ? .again : nil))
    }

    /// The item that it was goes on with something else by now, and no row knows the revision.
    @Test(arguments: [true, false])
    func `a placeholder that a program moved over an item is that item's content`(isMoved: Bool) throws {
        let swap = try swap()
        device.rows[swap.second.id] = nil
        device.put(swap.other, at: swap.f)
        let tracker = ItemTracker(view: device)
        if isMoved { tracker.moves[swap.other.key] = swap.f }
        let pass = Pass(seenUpTo: 1)
        try tracker.collect(.place(swap.f), into: pass)
        _ = tracker.decide(pass)
        #expect(device.fetched == (isMoved ? [swap.f] : []))
        // Left by an apply: it is replaced.
        #expect(pass.candidates[swap.first.id]?.applies.isEmpty == isMoved)
    }
}
