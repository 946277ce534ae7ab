import Testing
import UbiquityModel

@testable import FileCoordination

@Suite struct FamilyTests {
    @Test func `a nested claim does not wait for the one it is within`() throws {
        var world = ClaimWorld()
        let outer = world.ask(1, try write("f"))
        let nested = world.ask(2, try write("f"), within: outer.claim)
        #expect(nested.actions.granted == [nested.claim])
        let innermost = world.ask(3, try write("f"), within: nested.claim)
        #expect(innermost.actions.granted == [innermost.claim])
    }

    @Test func `within a batch claims are granted at once, ahead of those that wait for the batch`() throws {
        var world = ClaimWorld()
        let batch = world.ask(1, try write("a"), try write("b"))
        #expect(world.ask(2, try write("a")).actions.isEmpty)
        #expect(world.ask(3, try read("a"), try read("c")).actions.isEmpty)
        let inner = world.ask(4, try write("a"), within: batch.claim)
        #expect(inner.actions.granted == [inner.claim])
        let beside = world.ask(5, try write("c"), within: batch.claim)
        #expect(beside.actions.granted == [beside.claim])
    }

    @Test func `two claims within the same one conflict as any others`() throws {
        var world = ClaimWorld()
        let outer = world.ask(1, try write("f"))
        _ = world.ask(2, try write("f"), within: outer.claim)
        #expect(world.ask(3, try write("f"), within: outer.claim).actions.isEmpty)
    }

    @Test func `an outer claim waits for one within it`() throws {
        var world = ClaimWorld()
        let outer = world.ask(1, try write("f"))
        let nested = world.ask(2, try write("f"), within: outer.claim)
        let again = world.ask(1, try write("f"))
        #expect(again.actions.isEmpty)
        #expect(world.release(nested.claim).granted == [again.claim])
    }

    @Test func `the programs that a claim runs open and change its files`() throws {
        var world = ClaimWorld()
        let claim = world.ask(1, try write("f"))
        #expect(try world.open("f", forWriting: true, within: [claim.claim]).actions.granted.count == 1)
        #expect(try world.mayChange("f", within: [claim.claim]))
        #expect(try !world.mayChange("f"))
        let nested = world.ask(2, try read("g"), within: claim.claim)
        #expect(try world.open("f", within: [nested.claim]).actions.granted.count == 1)
    }

    @Test func `a claim does not wait for a writer within its family, nor for its own process`() throws {
        var world = ClaimWorld()
        let claim = world.ask(1, try read("g"))
        _ = try world.programWrites("f", pid: 50, within: [claim.claim])
        #expect(world.ask(1, try write("f")).actions.granted.count == 1)
        _ = world.end(1)
        #expect(world.ask(50, try write("f")).actions.granted.count == 1)
        _ = world.end(50)
        #expect(world.ask(2, try write("f")).actions.isEmpty)
    }
}
