import Testing
import UbiquityModel

@testable import FileCoordination

@Suite struct ProgramTests {
    @Test(arguments: [
        (ClaimAccess.read, false, true), (.read, true, false), (.write, false, false), (.write, true, false),
    ])
    func `a plain open waits for a conflicting claim`(held: ClaimAccess, forWriting: Bool, goesOn: Bool) throws {
        var world = ClaimWorld()
        let claim = world.ask(1, ClaimItem(held, try target("f")))
        let open = try world.open("f", forWriting: forWriting)
        #expect(open.actions == (goesOn ? [.admit(open.open)] : []))
        #expect(world.release(claim.claim) == (goesOn ? [] : [.admit(open.open)]))
    }

    @Test func `an open that is not to wait is refused, unless it is within the claim`() throws {
        var world = ClaimWorld()
        let claim = world.ask(1, try write("f")).claim
        let open = try world.open("f", mayWait: false)
        #expect(open.actions.refused == [open.open])
        #expect(try world.open("f", within: [claim], mayWait: false).actions.granted.count == 1)
        #expect(try world.open("g", mayWait: false).actions.granted.count == 1)
        #expect(world.release(claim).isEmpty)
    }

    @Test func `the engine's exchange is waited for by everybody`() throws {
        var world = ClaimWorld()
        let exchange = try #require(world.table.beginExchange(ClaimArea(try target("f"))))
        let open = try world.open("f", mayWait: false)
        #expect(open.actions.isEmpty)
        #expect(world.table.endExchange(exchange, in: world.situation) == [.admit(open.open)])
    }

    @Test func `a plain reader holds nothing afterwards`() throws {
        var world = ClaimWorld()
        #expect(try world.open("f").actions.granted.count == 1)
        #expect(world.ask(1, try write("f")).actions.granted.count == 1)
    }

    @Test func `plain opens never wait for each other`() throws {
        var world = ClaimWorld()
        _ = try world.programWrites("f", pid: 1)
        #expect(try world.open("f", forWriting: true, pid: 2).actions.granted.count == 1)
        #expect(try world.open("f", pid: 3).actions.granted.count == 1)
    }

    @Test(arguments: ClaimAccess.allCases)
    func `a claim waits until a program closes what it writes`(access: ClaimAccess) throws {
        var world = ClaimWorld()
        _ = try world.programWrites("d/f", pid: 7)
        _ = try world.programWrites("d/f", pid: 8)
        let claim = world.ask(1, ClaimItem(access, try target("d/f")))
        #expect(claim.actions.isEmpty)
        world.writers.removeFirst()
        #expect(world.table.writersChanged(in: world.situation).isEmpty)
        #expect(try world.programCloses("d/f").granted == [claim.claim])
    }

    @Test func `a claim on a subtree waits for a writer in it`() throws {
        var world = ClaimWorld()
        _ = try world.programWrites("d/e/f")
        #expect(world.ask(1, try write("d", .forMoving)).actions.isEmpty)
        #expect(world.ask(2, try write("x", .forMoving)).actions.granted.count == 1)
    }

    @Test func `a program is not queued behind a claim that waits for it`() throws {
        var world = ClaimWorld()
        _ = try world.programWrites("f", pid: 7)
        let claim = world.ask(1, try write("f"))
        #expect(claim.actions.isEmpty)
        #expect(try world.open("f", pid: 7).actions.granted.count == 1)
        #expect(try world.open("f", forWriting: true, pid: 7).actions.granted.count == 1)
    }

    @Test func `opens and claims that wait are served in order of arrival`() throws {
        var world = ClaimWorld()
        let holder = world.ask(1, try write("f"))
        let claim = world.ask(2, try read("f"))
        let open = try world.open("f", forWriting: true)
        let reader = try world.open("f")
        // The readers together; the writer, which came between them, after the claim.
        #expect(world.release(holder.claim).granted == [claim.claim, reader.open])
        #expect(world.release(claim.claim).granted == [open.open])
    }

    @Test func `an open that was admitted counts as a writer until the driver has counted it`() throws {
        var world = ClaimWorld()
        let holder = world.ask(1, try write("f"))
        let open = try world.open("f", forWriting: true)
        #expect(world.release(holder.claim).granted == [open.open])
        let claim = world.ask(2, try write("f"))
        #expect(claim.actions.isEmpty)
        #expect(world.table.nextDeadline == ClaimTable.admissionTime)
        // The open failed after all: nothing is left of it.
        #expect(world.pass(ClaimTable.admissionTime).granted == [claim.claim])
    }

    @Test func `an admitted open that the driver counts goes on blocking`() throws {
        var world = ClaimWorld()
        _ = world.ask(9, try write("elsewhere"))
        _ = try world.open("f", forWriting: true)
        _ = try world.programWrites("f")
        let claim = world.ask(2, try write("f"))
        #expect(world.pass(.seconds(2)).isEmpty)
        #expect(try world.programCloses("f").granted == [claim.claim])
    }

    @Test(arguments: ClaimAccess.allCases, [false, true])
    func `whether an open goes on at once is decided as the open itself is`(
        held: ClaimAccess,
        forWriting: Bool
    ) throws {
        for path in ["claimed", "exchanged", "free"] {
            var world = ClaimWorld()
            _ = world.ask(1, ClaimItem(held, try target("claimed")))
            _ = try #require(world.table.beginExchange(ClaimArea(try target("exchanged"))))
            var table = world.table
            let goesOn = table.admits(
                ClaimArea(try target(path)),
                forWriting: forWriting,
                by: ClaimProgram(pid: 1000, name: "cat"),
                now: world.now
            )
            let open = try world.open(path, forWriting: forWriting)
            #expect(goesOn == (open.actions == [.admit(open.open)]), "\(path)")
            #expect(table.admitted.map(\.writer) == world.table.admitted.map(\.writer), "\(path)")
        }
    }

    @Test func `opens that were admitted are forgotten after their time, also while nobody waits`() throws {
        var world = ClaimWorld()
        _ = world.ask(1, try write("elsewhere"))
        let (area, last) = (ClaimArea(try target("f")), ClaimArea(try target("last")))
        let program = ClaimProgram(pid: 1000, name: "cat")
        var most = 0
        for number in 1...100_000 {
            world.now += .milliseconds(1)
            let opened = number < 100_000 ? area : last
            let goesOn = world.table.admits(opened, forWriting: true, by: program, now: world.now)
            try #require(goesOn)
            most = max(most, world.table.admitted.count)
        }
        #expect(most <= 2000)
        world.now += ClaimTable.admissionTime - .milliseconds(1)
        let claim = world.ask(2, try write("last"))
        #expect(claim.actions.isEmpty)
        #expect(world.pass(.milliseconds(1)).granted == [claim.claim])
    }

    @Test func `an interrupted open leaves the queue`() throws {
        var world = ClaimWorld()
        let holder = world.ask(1, try read("f"))
        let open = try world.open("f", forWriting: true)
        let reader = world.ask(2, try read("f"))
        #expect(reader.actions.isEmpty)
        #expect(world.release(open.open).granted == [reader.claim])
        #expect(world.release(holder.claim).isEmpty)
    }

    @Test func `changes that cannot wait are refused only for explicit claims that are held`() throws {
        var world = ClaimWorld()
        let claim = world.ask(1, try read("d/f"))
        _ = world.ask(2, try write("d/g"))
        #expect(try !world.mayChange("d/f"))
        #expect(try world.mayChange("d/h"))
        #expect(try !world.mayChange("d/h", "d/g"))
        _ = world.table.release(claim.claim, in: world.situation)
        #expect(try world.mayChange("d/f"))
        _ = try world.programWrites("d/f", pid: 7)
        #expect(world.ask(3, try write("d/f")).actions.isEmpty)
        #expect(try world.mayChange("d/f"), "a claim that waits is no reason for EBUSY")
    }

    @Test func `moving a folder away from under a claim is refused`() throws {
        var world = ClaimWorld()
        _ = world.ask(1, try read("d/f"))
        let area = ClaimArea(try target("d"), coversSubtree: true)
        let holders = world.table.holders(blockingChangeOf: [area], by: ClaimProgram(pid: 5, name: "mv"))
        #expect(holders.map(\.target) == [try target("d/f")])
    }
}
