import Glibc
import Logging
import Synchronization
import TestSupport
import Testing

@testable import DeviceService

/// Real processes before the gate.
@Suite struct MaterializationGateTests {
    private func gate(_ own: [String: MaterializationPolicy.Access] = [:]) -> MaterializationGate {
        MaterializationGate(
            MaterializationPolicy(own: own),
            logger: Logger(label: "gate") { _ in SwiftLogNoOpLogHandler() }
        )
    }

    private func judge(_ gate: MaterializationGate, _ thread: Int32) throws -> Bool {
        let answers = Mutex<[Bool]>([])
        gate.judge(thread) { answer in answers.withLock { $0.append(answer) } }
        try eventually("the gate answers") { answers.withLock { !$0.isEmpty } }
        // Once, and never again.
        return answers.withLock { $0 } == [true]
    }

    /// A program that sleeps, under another name.
    private func sleeper(_ name: String, in folder: String) throws -> String {
        try succeed("cp", "/bin/sleep", folder + "/" + name)
        return folder + "/" + name
    }

    @Test func `a program is known by its executable, and its children with it`() async throws {
        try await withScratchFolder { folder in
            let denied = try Command([try sleeper("updatedb", in: folder), "100"])
            let allowed = try Command([try sleeper("ordinary", in: folder), "100"])
            try succeed("cp", "/bin/dash", folder + "/baloo_file")
            let parent = try Command([folder + "/baloo_file", "-c", "sleep 100 & echo $!; wait"])
            defer { for command in [denied, allowed, parent] { command.kill() } }
            try eventually("the child runs") { parent.outputSoFar.hasSuffix("\n") }
            let child = try #require(Int32(parent.outputSoFar.dropLast()))
            let gate = gate()
            #expect(try !judge(gate, denied.pid))
            #expect(try judge(gate, allowed.pid))
            #expect(try !judge(gate, child))
            #expect(try judge(self.gate(["baloo_file": .allow]), child))
        }
    }

    @Test(arguments: ["python3 '%'", "bash '%'", "perl '%'", "'%'"])
    func `an interpreter is known by its script, and its children with it`(start: String) async throws {
        try await withScratchFolder { folder in
            let script = folder + "/my-backup-script-with-a-long-name"
            let body =
                start.hasPrefix("python3")
                ? "import subprocess\nprint(p := subprocess.Popen(['sleep', '100']).pid, flush=True)\nimport time; time.sleep(100)"
                : start.hasPrefix("perl")
                    ? "$| = 1; my $p = fork; if (!$p) { exec 'sleep', '100' } print \"$p\\n\"; wait;"
                    : "#!/bin/sh\nsleep 100 & echo $!; wait"
            try Files.write(body, to: script)
            chmod(script, 0o755)
            let parent = try Command(["bash", "-c", "exec " + start.replacing("%", with: script)])
            defer { parent.kill() }
            try eventually("the child runs", within: .seconds(10)) { parent.outputSoFar.hasSuffix("\n") }
            let child = try #require(Int32(parent.outputSoFar.dropLast()))
            for rule in [script, "my-backup-script-with-a-long-name"] {
                let gate = gate([rule: .deny])
                #expect(try !judge(gate, parent.pid))
                #expect(try !judge(gate, child))
            }
            #expect(try judge(gate(), parent.pid))
            #expect(try judge(gate(), child))
        }
    }

    @Test func `a process that executes another program is that one`() async throws {
        try await withScratchFolder { folder in
            let program = try sleeper("restic", in: folder)
            let fifo = folder + "/go"
            try #require(mkfifo(fifo, 0o600) == 0)
            let command = try Command(["bash", "-c", "read line < '\(fifo)'; exec '\(program)' 100"])
            defer { command.kill() }
            let gate = gate()
            #expect(try judge(gate, command.pid))
            try Files.append("go\n", to: fifo)
            try eventually("it has executed the other one") {
                ProcessTable.program(of: command.pid) == "restic"
            }
            #expect(try !judge(gate, command.pid))
        }
    }

    @Test func `a change counts from then on`() async throws {
        try await withScratchFolder { folder in
            let command = try Command([try sleeper("restic", in: folder), "100"])
            defer { command.kill() }
            let gate = gate()
            #expect(try !judge(gate, command.pid))
            _ = try gate.update { MaterializationPolicy(own: ["restic": .allow]) }
            #expect(try judge(gate, command.pid))
            _ = try gate.update { MaterializationPolicy(own: [command.words[0]: .deny]) }
            #expect(try !judge(gate, command.pid))
        }
    }

    @Test func `nobody in particular, and who is gone, may`() throws {
        #expect(try judge(gate(), 0))
        #expect(try judge(gate(), Int32.max))
    }

    @Test func `many ask at once, and all are answered rightly`() async throws {
        try await withScratchFolder { folder in
            let script = folder + "/scan"
            try Files.write("sleep 100", to: script)
            let denied = try (0..<20).map { _ in try Command(["bash", script]) }
            let allowed = try (0..<20).map { _ in try Command(["bash", "-c", "sleep 100; true"]) }
            defer { for command in denied + allowed { command.kill() } }
            // Until then they are forks of this process.
            try eventually("all have been executed", within: .seconds(10)) {
                (denied + allowed).allSatisfy { ProcessTable.program(of: $0.pid) == "bash" }
            }
            let gate = gate(["scan": .deny])
            let answers = Mutex<[Int32: [Bool]]>([:])
            for command in denied + allowed {
                startThread {
                    gate.judge(command.pid) { answer in answers.withLock { $0[command.pid, default: []].append(answer) }
                    }
                }
            }
            try eventually("all are answered", within: .seconds(10)) { answers.withLock { $0.count } == 40 }
            let given = answers.withLock { $0 }
            #expect(denied.allSatisfy { given[$0.pid] == [false] })
            #expect(allowed.allSatisfy { given[$0.pid] == [true] })
        }
    }
}
