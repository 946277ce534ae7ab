import Glibc
import Logging
import SyncEngine
import Synchronization
import TestSupport
import Testing
import UbiquityControl

@testable import DeviceService

@Suite struct ControlSocketTests {
    private func withListener(
        _ handle: @escaping @Sendable ([UInt8], ControlConnection) async -> Void,
        _ body: (HomeDirectories) async throws -> Void
    ) async throws {
        try await withScratchFolder { folder in
            // Deeper than a socket's address has room for.
            let home = try HomeDirectories(home: folder + "/" + String(repeating: "deep", count: 40))
            try home.create()
            let listener = try ControlListener(home, logger: Logger(label: "test"))
            listener.start(handle)
            do { try await body(home) } catch {
                await listener.stop()
                throw error
            }
            await listener.stop()
            #expect(try !Files.names(in: home.runtime).contains(HomeDirectories.socketName))
        }
    }

    @Test func `requests of a connection are answered in order, with progress before`() async throws {
        try await withListener { line, connection in
            connection.progress(ControlProgress("working", done: 1, total: 2, unit: .files))
            connection.answer([String(decoding: line, as: UTF8.self).contains("true") ? "on" : "off"])
        } _: { home in
            let answers = try await BlockingThread.run("client") {
                Result {
                    var client = try ControlClient(home)
                    #expect(client.servicePID == getpid())
                    var activities = [String]()
                    for isOn in [true, false] {
                        _ = try client.send(Probe(isOn: isOn)) { activities.append($0.activity) }
                    }
                    return activities
                }
            }.get()
            #expect(answers == ["working", "working"])
        }
    }

    @Test func `an error comes as it was thrown, and a large answer whole`() async throws {
        let error = ControlError(.tryAgain, "this", "is busy", remedy: "wait")
        try await withListener { line, connection in
            if line.count > 1000 { connection.answer(["\(line.count)"]) } else { connection.fail(error) }
        } _: { home in
            try await BlockingThread.run("client") {
                Result {
                    var client = try ControlClient(home)
                    var thrown: ControlError?
                    do throws(ControlError) { _ = try client.send(Probe(isOn: true)) } catch { thrown = error }
                    #expect(thrown == error)
                    let answer = try client.send(Probe(isOn: true, text: String(repeating: "x", count: 3_000_000)))
                    #expect(answer.first.flatMap { Int($0) } ?? 0 > 3_000_000)
                }
            }.get()
        }
    }

    @Test func `a descriptor comes with its answer`() async throws {
        try await withListener { _, connection in
            connection.answer(["here"], descriptor: open("/proc/self/comm", O_RDONLY | O_CLOEXEC))
        } _: { home in
            try await BlockingThread.run("client") {
                Result {
                    var client = try ControlClient(home)
                    _ = try client.send(Probe(isOn: true))
                    let first = client.takeDescriptor()
                    let second = client.takeDescriptor()
                    let descriptor = try #require(first)
                    defer { close(descriptor) }
                    var byte: UInt8 = 0
                    #expect(read(descriptor, &byte, 1) == 1)
                    #expect(second == nil)
                }
            }.get()
        }
    }

    /// There is room for one, and with the alignment for another: neither is for the service.
    @Test func `descriptors that a program sends are closed`() async throws {
        try await withListener { _, connection in
            connection.answer([(try? Files.names(in: "/proc/self/fd").count).map(String.init) ?? ""])
        } _: { home in
            let line = #"{"v":1,"verb":"probe","arguments":{"isOn":true}}"#
            let script = """
                import array,os,socket
                os.chdir('\(home.runtime)')
                s=socket.socket(socket.AF_UNIX)
                s.connect('socket')
                two=array.array('i',[0,0])
                for number in range(100):
                    s.sendmsg([b'\(line)\\n'],[(socket.SOL_SOCKET,socket.SCM_RIGHTS,two)])
                    print(s.recv(4096).decode())
                """
            let output = try await BlockingThread.run("client") {
                Result { try Command(["python3", "-c", script]).wait() }
            }
            .get().output
            let counts = output.split(separator: "\n").compactMap { answer in
                answer.split(separator: "\"").compactMap { Int($0) }.first
            }
            #expect(counts.count == 100)
            // Other tests open and close files meanwhile, but not so many.
            let first = try #require(counts.first)
            let last = try #require(counts.last)
            #expect(last < first + 80)
        }
    }

    @Test func `who goes away ends what he asked for`() async throws {
        let (ended, signal) = AsyncStream<String>.makeStream()
        try await withListener { _, connection in
            connection.whenClosed("test") { signal.yield("closed") }
            signal.yield("begun")
            try? await Task.sleep(for: .seconds(60))
            signal.yield(Task.isCancelled ? "cancelled" : "late")
        } _: { home in
            // Killed while it waits, as any program may be.
            let line = #"{"v":1,"verb":"probe","arguments":{"isOn":true}}"#
            let script =
                "import os,socket,sys,time\ns=socket.socket(socket.AF_UNIX)\nos.chdir('\(home.runtime)')\ns.connect('socket')\ns.send(b'''\(line)\\n''')\ntime.sleep(60)"
            let client = try Command(["python3", "-c", script])
            var events = Set<String>()
            for await event in ended {
                events.insert(event)
                // Not before its request is being served: whoever is gone by then is owed nothing.
                if event == "begun" { client.kill() }
                if events.count == 3 { break }
            }
            #expect(events == ["begun", "closed", "cancelled"])
        }
    }
}

/// A request of these tests alone.
private struct Probe: ControlRequest {
    typealias Answer = [String]
    static var verb: String { "probe" }

    var isOn: Bool
    var text = ""
}
