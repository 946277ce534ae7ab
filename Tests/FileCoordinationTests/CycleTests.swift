import Testing
import UbiquityModel

@testable import FileCoordination

@Suite struct CycleTests {
    @Test func `a cycle of two is refused to the latest, with the cycle`() throws {
        var world = ClaimWorld()
        let first = world.ask(1, try write("a"))
        let second = world.ask(2, try write("b"))
        let waiting = world.ask(1, try write("b"))
        #expect(waiting.actions.isEmpty)
        let closing = world.ask(2, try write("a"))
        #expect(closing.actions.refused == [closing.claim])
        #expect(closing.actions.cycle?.map(\.role) == [.holds(first.claim), .holds(second.claim)])
        // The others are not concerned.
        #expect(world.release(second.claim).granted == [waiting.claim])
    }

    @Test(arguments: [3, 4, 10])
    func `a longer cycle is found as well`(length: UInt64) throws {
        var world = ClaimWorld()
        for party in 1...length { _ = world.ask(party, try write("f\(party)")) }
        for party in 1..<length { #expect(world.ask(party, try write("f\(party + 1)")).actions.isEmpty) }
        let closing = world.ask(length, try write("f1"))
        #expect(closing.actions.cycle?.count == Int(length))
    }

    @Test func `waiting behind one that waits can close a cycle too`() throws {
        var world = ClaimWorld()
        _ = world.ask(1, try read("a"))
        _ = world.ask(2, try read("b"))
        // 3 waits for 1; 2 waits behind 3.
        #expect(world.ask(3, try write("a")).actions.isEmpty)
        #expect(world.ask(2, try read("a")).actions.isEmpty)
        // 1 would wait for 2, which waits behind 3, which waits for 1.
        let closing = world.ask(1, try write("b"))
        #expect(closing.actions.cycle?.count == 3)
    }

    @Test func `two readers that both want to write are a cycle`() throws {
        var world = ClaimWorld()
        _ = world.ask(1, try read("f"))
        _ = world.ask(2, try read("f"))
        #expect(world.ask(1, try write("f")).actions.isEmpty)
        #expect(world.ask(2, try write("f")).actions.cycle != nil)
    }

    @Test func `a long chain without a cycle just waits`() throws {
        var world = ClaimWorld()
        for party in 1...UInt64(50) { _ = world.ask(party, try write("f\(party)")) }
        for party in 1..<UInt64(50) { #expect(world.ask(party, try write("f\(party + 1)")).actions.isEmpty) }
        #expect(world.table.waiting.count == 49)
    }

    @Test func `a nested claim does not hide a cycle`() throws {
        var world = ClaimWorld()
        let outer = world.ask(1, try write("a"))
        _ = world.ask(2, try write("b"))
        #expect(world.ask(2, try write("a")).actions.isEmpty)
        // The command that runs within the outer claim asks for b, whose holder waits for the outer claim.
        let nested = world.ask(3, try write("b"), within: outer.claim)
        #expect(nested.actions.cycle?.map(\.pid) == [2, 1, 3])
    }

    @Test func `a program's open closes a cycle through the file that it has open`() throws {
        var world = ClaimWorld()
        _ = world.ask(1, try write("g"))
        _ = try world.programWrites("f", pid: 7)
        #expect(world.ask(1, try write("f")).actions.isEmpty)
        let open = try world.open("g", pid: 7)
        #expect(open.actions.cycle?.count == 2)
        let other = try world.open("g", pid: 8)
        #expect(other.actions.isEmpty)
    }

    @Test func `a coordinator with a file open for writing closes a cycle with one that waits for that file`() throws {
        var world = ClaimWorld()
        _ = try world.programWrites("f", pid: 7)
        _ = world.ask(1, try write("g"))
        #expect(world.ask(1, try write("f")).actions.isEmpty)
        #expect(world.ask(7, try write("g")).actions.cycle != nil)
    }

    @Test func `a refused request leaves nothing behind`() throws {
        var world = ClaimWorld()
        let first = world.ask(1, try write("a"))
        let second = world.ask(2, try write("b"))
        _ = world.ask(1, try write("b"))
        _ = world.ask(2, try write("a"))
        _ = world.release(first.claim)
        #expect(world.ask(3, try write("a")).actions.granted.count == 1)
        #expect(world.table.held.contains { $0.id == second.claim })
    }
}
