import Testing
import UbiquityModel

@testable import FileCoordination

@Suite struct TimeLimitTests {
    @Test func `a wait ends at its limit with the names of the holders`() throws {
        var world = ClaimWorld()
        let holder = world.ask(1, try write("f"))
        let waiting = world.ask(2, try read("f"), timeout: .seconds(5))
        #expect(world.table.nextDeadline == .seconds(5))
        #expect(world.pass(.seconds(4)).isEmpty)
        let holding = ClaimHolder(
            role: .holds(holder.claim),
            program: "coordinate",
            pid: 1,
            access: .write,
            target: try target("f")
        )
        #expect(world.pass(.seconds(1)) == [.refuse(waiting.claim, .timedOut([holding]))])
        #expect(world.table.nextDeadline == nil)
        #expect(world.release(holder.claim).isEmpty)
    }

    @Test func `who waited behind one that gave up goes on`() throws {
        var world = ClaimWorld()
        _ = world.ask(1, try read("f"))
        let writer = world.ask(2, try write("f"), timeout: .seconds(1))
        let reader = world.ask(3, try read("f"))
        let actions = world.pass(.seconds(1))
        #expect(actions.refused == [writer.claim])
        #expect(actions.granted == [reader.claim])
    }

    @Test func `a limit of nothing is an answer at once`() throws {
        var world = ClaimWorld()
        _ = world.ask(1, try write("f"))
        let refused = world.ask(2, try write("f"), timeout: .zero)
        #expect(refused.actions.refused == [refused.claim])
        let open = try world.open("f", timeout: .zero)
        #expect(open.actions.refused == [open.open])
        #expect(world.ask(3, try write("g"), timeout: .zero).actions.granted.count == 1)
    }

    @Test func `without a limit it waits for ever`() throws {
        var world = ClaimWorld()
        let holder = world.ask(1, try write("f"))
        let waiting = world.ask(2, try write("f"), timeout: nil)
        #expect(world.table.nextDeadline == nil)
        #expect(world.pass(.seconds(1_000_000)).isEmpty)
        #expect(world.release(holder.claim).granted == [waiting.claim])
    }

    @Test func `what can be granted at its limit is granted`() throws {
        var world = ClaimWorld()
        _ = try world.programWrites("f")
        let claim = world.ask(1, try write("f"), timeout: .seconds(5))
        world.writers = []
        #expect(world.pass(.seconds(5)).granted == [claim.claim])
    }
}

@Suite struct MoveAndDeletionTests {
    @Test func `a claim follows its item and passes its path of the moment`() throws {
        var world = ClaimWorld()
        let holder = world.ask(1, try write("d/f"))
        let waiting = world.ask(2, try read("d/f"))
        #expect(try world.move("d", to: "e").isEmpty)
        #expect(try !world.mayChange("e/f"))
        #expect(try world.mayChange("d/f"))
        #expect(world.release(holder.claim) == [.grant(waiting.claim, [try target("e/f")])])
    }

    @Test func `an item that was moved away no longer stands in the way`() throws {
        var world = ClaimWorld()
        _ = world.ask(1, try write("d", .forMoving))
        let waiting = world.ask(2, try read("d/f"))
        #expect(try world.move("d/f", to: "g") == [.grant(waiting.claim, [try target("g")])])
    }

    @Test func `a move in another container changes nothing`() throws {
        var world = ClaimWorld()
        let other = try #require(ContainerID("other"))
        _ = world.ask(1, try write("f"))
        _ = world.table.moved(try target("f", in: other), to: try ItemPath(parsing: "g"), in: world.situation)
        #expect(try !world.mayChange("f"))
    }

    @Test func `who waits to read what was deleted is told so`() throws {
        var world = ClaimWorld()
        let holder = world.ask(1, try write("d", .forDeleting))
        let reader = world.ask(2, try read("d/f"), try read("x"))
        let writer = world.ask(3, try write("d/f"))
        let open = try world.open("d/f")
        #expect(try world.delete("d") == [.refuse(reader.claim, .deleted(try target("d/f")))])
        #expect(world.release(holder.claim).granted == [writer.claim])
        #expect(world.release(writer.claim).granted == [open.open])
    }
}

@Suite struct EngineTests {
    private func area(_ path: String) throws -> ClaimArea { ClaimArea(try target(path)) }

    @Test func `the engine yields to explicit claims`() throws {
        var world = ClaimWorld()
        #expect(world.table.engineMay(.write, try area("f")))
        _ = world.ask(1, try read("f"))
        #expect(world.table.engineMay(.read, try area("f")))
        #expect(!world.table.engineMay(.write, try area("f")))
        _ = world.ask(2, try write("g"))
        #expect(!world.table.engineMay(.read, try area("g")))
    }

    @Test func `the engine writes nothing that is waited for`() throws {
        var world = ClaimWorld()
        _ = try world.programWrites("f")
        _ = world.ask(1, try read("f"))
        #expect(!world.table.engineMay(.write, try area("f")))
        #expect(world.table.engineMay(.read, try area("f")))
        #expect(world.table.beginExchange(try area("f")) == nil)
    }

    @Test func `claims and opens wait for an exchange, and only for that`() throws {
        var world = ClaimWorld()
        let exchange = try #require(world.table.beginExchange(try area("f")))
        let claim = world.ask(1, try read("f"))
        let open = try world.open("f")
        #expect(claim.actions.isEmpty)
        #expect(open.actions.isEmpty)
        #expect(try world.mayChange("f"), "the engine never causes EBUSY")
        #expect(world.table.endExchange(exchange, in: world.situation).granted == [claim.claim, open.open])
    }

    @Test func `exchanges of different items run side by side`() throws {
        var world = ClaimWorld()
        let first = try #require(world.table.beginExchange(try area("f")))
        let second = try #require(world.table.beginExchange(try area("g")))
        #expect(first != second)
        let claim = world.ask(1, try write("f"), try write("g"))
        #expect(world.table.endExchange(first, in: world.situation).isEmpty)
        #expect(world.table.endExchange(first, in: world.situation).isEmpty)
        #expect(world.table.endExchange(second, in: world.situation).granted == [claim.claim])
    }

    @Test func `the engine is woken once, when asking again is worth it`() throws {
        var world = ClaimWorld()
        let claim = world.ask(1, try read("f"))
        let (wait, actions) = world.table.engineWaits(.write, try area("f"))
        #expect(actions.isEmpty)
        #expect(world.release(claim.claim) == [.wakeEngine(wait)])
        #expect(world.end(1).isEmpty)
        let (again, atOnce) = world.table.engineWaits(.write, try area("f"))
        #expect(atOnce == [.wakeEngine(again)])
    }

    @Test func `a wait of the engine follows its item and can be given up`() throws {
        var world = ClaimWorld()
        let claim = world.ask(1, try write("f"))
        let (kept, _) = world.table.engineWaits(.read, try area("f"))
        let (given, _) = world.table.engineWaits(.read, try area("f"))
        world.table.engineGaveUp([given])
        #expect(try world.move("f", to: "g").isEmpty)
        #expect(world.release(claim.claim) == [.wakeEngine(kept)])
    }

    @Test func `a wait to write outlasts a wait to read the same`() throws {
        var world = ClaimWorld()
        let writer = world.ask(1, try write("f"))
        let (toRead, _) = world.table.engineWaits(.read, try area("f"))
        let (toWrite, _) = world.table.engineWaits(.write, try area("f"))
        let reader = world.ask(2, try read("f"))
        let actions = world.release(writer.claim)
        #expect(actions == [.grant(reader.claim, [try target("f")]), .wakeEngine(toRead)])
        #expect(world.release(reader.claim) == [.wakeEngine(toWrite)])
        #expect(world.table.engineInterests.isEmpty)
    }

    @Test func `an exchange's end, and a file that is closed, free nothing for the engine`() throws {
        var world = ClaimWorld()
        _ = try world.programWrites("f")
        let waiting = world.ask(1, try write("f"))
        let exchange = try #require(world.table.beginExchange(try area("g")))
        let (wait, _) = world.table.engineWaits(.write, try area("f"))
        #expect(world.table.endExchange(exchange, in: world.situation).isEmpty)
        #expect(try world.programCloses("f").granted == [waiting.claim])
        #expect(world.release(waiting.claim) == [.wakeEngine(wait)])
    }

    /// What looks at each for each takes minutes here, with the lock held.
    @Test(.timeLimit(.minutes(1)))
    func `the end of a claim wakes all that waited for it, in their order, and no others`() throws {
        var world = ClaimWorld()
        let claim = world.ask(1, try write("d", .forDeleting))
        _ = world.ask(2, try write("e"))
        let (other, _) = world.table.engineWaits(.read, try area("e"))
        var waits: [EngineWait] = []
        for number in 0..<20_000 { waits.append(world.table.engineWaits(.read, try area("d/\(number)")).wait) }
        let actions = world.release(claim.claim)
        #expect(actions == waits.map { ClaimAction.wakeEngine($0) })
        #expect(world.table.engineInterests.map(\.id) == [other])
    }
}
