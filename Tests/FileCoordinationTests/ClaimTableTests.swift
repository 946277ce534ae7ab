import Testing
import UbiquityModel

@testable import FileCoordination

@Suite struct ClaimTableTests {
    @Test(arguments: [
        (ClaimAccess.read, ClaimAccess.read, true), (.read, .write, false), (.write, .read, false),
        (.write, .write, false),
    ])
    func `only readers go together`(held: ClaimAccess, asked: ClaimAccess, isGranted: Bool) throws {
        var world = ClaimWorld()
        let first = world.ask(1, ClaimItem(held, try target("f")))
        #expect(first.actions == [.grant(first.claim, [try target("f")])])
        let second = world.ask(2, ClaimItem(asked, try target("f")))
        #expect(second.actions.granted == (isGranted ? [second.claim] : []))
        #expect(world.release(first.claim).granted == (isGranted ? [] : [second.claim]))
    }

    @Test func `claims on different items, or in different containers, do not concern one another`() throws {
        var world = ClaimWorld()
        let other = try #require(ContainerID("other"))
        #expect(world.ask(1, try write("f")).actions.granted.count == 1)
        #expect(world.ask(2, try write("g")).actions.granted.count == 1)
        #expect(world.ask(3, ClaimItem(.write, try target("f", in: other))).actions.granted.count == 1)
    }

    @Test func `claims of the same purpose never block one another`() throws {
        var world = ClaimWorld()
        _ = world.ask(1, try write("f"), purpose: "org.example.editor")
        #expect(world.ask(2, try write("f"), purpose: "org.example.editor").actions.granted.count == 1)
        #expect(world.ask(3, try write("f"), purpose: "org.example.viewer").actions.isEmpty)
        #expect(world.ask(4, try write("f")).actions.isEmpty)
    }

    @Test func `a party does not wait for itself, nor behind those that wait for it`() throws {
        var world = ClaimWorld()
        let own = world.ask(1, try read("f"))
        let waiting = world.ask(2, try write("f"))
        #expect(waiting.actions.isEmpty)
        let again = world.ask(1, try write("f"))
        #expect(again.actions.granted == [again.claim])
        #expect(world.release(own.claim).isEmpty)
        #expect(world.release(again.claim).granted == [waiting.claim])
    }

    @Test func `a waiting writer is not starved by later readers`() throws {
        var world = ClaimWorld()
        let reader = world.ask(1, try read("f"))
        let writer = world.ask(2, try write("f"))
        let laterReader = world.ask(3, try read("f"))
        #expect(laterReader.actions.isEmpty)
        #expect(world.release(reader.claim).granted == [writer.claim])
        #expect(world.release(writer.claim).granted == [laterReader.claim])
    }

    @Test func `readers that waited for a writer are granted together`() throws {
        var world = ClaimWorld()
        let writer = world.ask(1, try write("f"))
        let readers = try (2...4).map { world.ask($0, try read("f")).claim }
        #expect(world.release(writer.claim).granted == readers)
    }

    @Test func `several items are granted all or none, in the order asked for`() throws {
        var world = ClaimWorld()
        let holder = world.ask(1, try write("b"))
        let both = world.ask(2, try write("b"), try read("a"))
        #expect(both.actions.isEmpty)
        // Nothing of the waiting request is held, but what came later waits behind it.
        #expect(world.ask(3, try read("a")).actions.granted.count == 1)
        let later = world.ask(4, try write("a"))
        #expect(later.actions.isEmpty)
        #expect(world.release(holder.claim) == [.grant(both.claim, [try target("b"), try target("a")])])
        #expect(later.actions.isEmpty)
    }

    @Test func `a request may name an item twice`() throws {
        var world = ClaimWorld()
        let claim = world.ask(1, try read("f"), try write("f"))
        #expect(claim.actions.granted == [claim.claim])
        #expect(world.ask(2, try read("f")).actions.isEmpty)
    }

    @Test func `a claim ends with its connection, held or waiting`() throws {
        var world = ClaimWorld()
        _ = world.ask(1, try write("f"))
        _ = world.ask(2, try write("f"))
        let last = world.ask(3, try read("f"))
        #expect(world.end(2).isEmpty)
        #expect(world.end(1).granted == [last.claim])
        #expect(world.end(3).isEmpty)
        #expect(!world.table.hasClaims)
    }

    @Test func `releasing what is not there does nothing`() throws {
        var world = ClaimWorld()
        let claim = world.ask(1, try write("f"))
        #expect(world.release(ClaimID(number: 99)).isEmpty)
        #expect(world.release(claim.claim).isEmpty)
        #expect(world.release(claim.claim).isEmpty)
    }

    @Test func `the queue has a bound`() throws {
        var world = ClaimWorld()
        _ = world.ask(1, try write("f"))
        world.table.waiting = Array(
            repeating: ClaimTable.Entry(
                id: ClaimID(number: 2),
                origin: .open(within: []),
                program: "cat",
                pid: 5,
                parts: [],
                family: world.table.family(party: nil, purpose: nil, within: []),
                deadline: nil
            ),
            count: ClaimTable.mostWaiting
        )
        let refused = world.ask(3, try write("f"))
        #expect(refused.actions == [.refuse(refused.claim, .tooManyWaiting)])
    }

    /// Each keeps a connection to the service, whose own bound is not much higher.
    @Test func `claims have a bound, for which what programs open does not count`() throws {
        var world = ClaimWorld()
        for party in 1..<UInt64(ClaimTable.mostClaims) {
            #expect(world.ask(party, try write("d/\(party)")).actions.granted.count == 1)
        }
        for _ in 0..<2 { #expect(try world.open("d/1").actions.isEmpty) }
        let waiting = world.ask(500, try write("d/1"), timeout: nil)
        #expect(waiting.actions.isEmpty)
        let refused = world.ask(501, try write("f"), timeout: nil)
        #expect(refused.actions == [.refuse(refused.claim, .tooManyWaiting)])
        #expect(try world.open("f").actions.granted.count == 1)
        #expect(world.end(2).isEmpty)
        #expect(world.ask(501, try write("f")).actions.granted.count == 1)
    }

    @Test func `the list shows who holds and who waits for whom`() throws {
        var world = ClaimWorld()
        let holder = world.ask(1, try write("f"))
        let waiting = world.ask(2, try read("f"), purpose: "p")
        let list = world.table.listing(in: world.situation)
        #expect(list.map(\.id) == [holder.claim, waiting.claim])
        #expect(list.first?.state == .held)
        let holding = ClaimHolder(
            role: .holds(holder.claim),
            program: "coordinate",
            pid: 1,
            access: .write,
            target: try target("f")
        )
        #expect(list.last?.state == .waiting(for: [holding]))
        #expect(holding.description == "coordinate (pid 1) holds a write claim on f")
        #expect(list.last?.items.map(\.access) == [.read])
        #expect(list.last?.isOpen == false)
    }

    @Test func `a claim's number can be carried in the environment`() {
        #expect(ClaimID("\(ClaimID(number: 42))") == ClaimID(number: 42))
        #expect(ClaimID("x") == nil)
    }
}
