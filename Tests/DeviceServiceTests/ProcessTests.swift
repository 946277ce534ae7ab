import Glibc
import TestSupport
import Testing
import UbiquityControl

@testable import DeviceService

@Suite struct ProcessTests {
    @Test(arguments: ["sh", "a) b (c", ") R 1 1", ""])
    func `a process's line is read, whatever its name`(name: String) throws {
        let line = "42 (\(name)) S 7 42 42 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 12345 100 2"
        let fields = try #require(ProcessTable.parse(Array(line.utf8)))
        #expect(fields.parent == 7)
        #expect(fields.started == 12345)
        #expect(fields.state == UInt8(ascii: "S"))
    }

    @Test(arguments: [("R", false), ("S", false), ("D", false), ("T", false), ("Z", true), ("X", true)])
    func `a process whose end was taken note of, or is being, has ended`(state: String, hasEnded: Bool) throws {
        let line = "42 (sleep) \(state) 7 42 42 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 12345 100 2"
        #expect(try #require(ProcessTable.parse(Array(line.utf8))).hasEnded == hasEnded)
    }

    @Test(arguments: ["", "42", "42 (x", "42 (x) S 7"])
    func `what is no such line is none`(line: String) {
        #expect(ProcessTable.parse(Array(line.utf8)) == nil)
    }

    @Test func `a process is told from another one that got its number`() throws {
        var own = try #require(ProcessIdentity.own())
        #expect(own.isAlive)
        own.started += 1
        #expect(!own.isAlive)
        // Its number is ours: it must not be killed.
        #expect(own.end(with: SIGKILL, within: .seconds(1)))
    }

    @Test func `a process is known again, unless it runs something else or is another one`() throws {
        var own = try #require(ProcessIdentity.own())
        let executable = try #require(ProcessTable.executable(of: own.pid))
        #expect(ProcessTable.isStill(own, running: executable))
        #expect(!ProcessTable.isStill(own, running: executable + "x"))
        #expect(!ProcessTable.isStill(own, running: String(executable.dropLast())))
        #expect(!ProcessTable.isStill(own, running: nil))
        own.started += 1
        #expect(!ProcessTable.isStill(own, running: executable))
    }

    @Test func `a process is ended, and its end is waited for`() throws {
        let command = try Command(["sleep", "100"])
        let process = try #require(ProcessIdentity(pid: command.pid))
        #expect(!process.waitForEnd(within: .zero))
        #expect(process.end(with: SIGTERM, within: .seconds(10)))
        #expect(!process.isAlive)
    }

    @Test func `a process has ended with its last thread, not with its first`() throws {
        let program = """
            import ctypes, threading, time
            threading.Thread(target=time.sleep, args=(100,)).start()
            ctypes.CDLL(None).pthread_exit(None)
            """
        let command = try Command(["python3", "-c", program])
        let process = try #require(ProcessIdentity(pid: command.pid))
        try eventually("its first thread has ended") { !process.isAlive }
        #expect(!process.waitForEnd(within: .zero))
        command.kill()
        #expect(process.waitForEnd(within: .seconds(10)))
    }

    @Test func `the ancestry begins with the process itself`() {
        let ancestry = PartyLookup().ancestry(of: getpid())
        #expect(ancestry.prefix(2) == [getpid(), getppid()])
    }

    @Test func `the claim of a process is in its environment`() throws {
        var environment = Command.plainEnvironment
        environment["UBIQUITY_CLAIM"] = "4711"
        let lookup = PartyLookup()
        let inside = try Command(["sleep", "100"], environment: environment)
        let outside = try Command(["sleep", "100"])
        defer {
            inside.kill()
            outside.kill()
        }
        #expect(lookup.claim(inEnvironmentOf: inside.pid) == "4711")
        #expect(lookup.claim(inEnvironmentOf: outside.pid) == nil)
    }

    @Test func `a lock is held by one, and says by whom`() async throws {
        try await withScratchFolder { folder in
            let first = try FileLock(owning: folder + "/lock", patience: .zero)
            let error = #expect(throws: ControlError.self) {
                try FileLock(owning: folder + "/lock", patience: .zero)
            }
            #expect(error?.status == .tryAgain)
            #expect(error?.why.contains("\(getpid())") == true)
            withExtendedLifetime(first) {}
        }
        try await withScratchFolder { folder in
            // Gone with its holder, it can be taken again.
            _ = try FileLock(owning: folder + "/lock", patience: .zero)
            _ = try FileLock(owning: folder + "/lock", patience: .zero)
        }
    }
}
