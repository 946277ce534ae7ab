import Glibc
import TestSupport
import Testing

extension MountTests {
    /// Mounts of an ordinary user, with the passthrough helper and without. Root starts the helper, so root has to run these.
    @Suite(.enabled(if: geteuid() == 0, "only root can start the passthrough helper"))
    struct HelperTests {
        private static let size = 8 << 20

        @Test func `an ordinary user's mount passes through with the helper, and goes on without it`() async throws {
            try await withSite(limit: .seconds(60)) { site in
                var helper = try Helper(site)
                let a = try site.device(
                    "a",
                    of: OrdinaryUser(in: site),
                    variables: ["UBIQUITY_PASSTHROUGH_HELPER": helper.path]
                )
                try a.up()
                try a.succeed("sync")
                // What the service reads to send it is none of what is counted here.
                try a.setOffline(true)
                try #expect(driver(a).hasSuffix(" kernel passthrough, by the passthrough helper"))
                try #expect(isPassed(a, "first"))

                // It is killed while an open waits for its answer, and another handle is bound.
                try a.shell("mkfifo ../go")
                let writer = try a.startShell("exec 3>>first; touch ../ready; read -r < ../go; echo more >&3")
                try eventually("a program writes") { Files.exists(a.home + "/../ready") }
                helper.command.send(SIGSTOP)
                let opener = try a.startShell("echo new > opened")
                try steadily("an open waits for the helper", for: .milliseconds(200)) { opener.isRunning }
                try helper.kill()
                try #expect(opener.wait(TestSettings.atOnce).isSuccess)
                try #expect(!isPassed(a, "second"))
                try #expect(driver(a).contains("the passthrough helper is away"))
                try a.shell("echo more >> ../first.same; echo > ../go")
                try #expect(writer.wait(TestSettings.atOnce).isSuccess)
                try a.shell("cmp first ../first.same; cmp opened <(echo new)")

                // It comes back, also for files that took the ordinary way.
                helper = try Helper(site)
                try eventually("the helper is used again", within: .seconds(10)) { try isPassed(a, "third") }
                try a.shell("for f in second ../second.same; do echo changed | dd conv=notrunc status=none of=$f; done")
                try #expect(bytesRead(by: a) { try a.shell("cmp second ../second.same") } < Self.size / 2)

                // It does not answer: one open waits for it, and nothing else does.
                helper.command.send(SIGSTOP)
                let waiting = try a.startShell("echo new > waiting; cat waiting").wait(TestSettings.atOnce)
                #expect(waiting.output == "new\n", "\(waiting)")
                try a.shell("for f in second ../second.same; do echo again | dd conv=notrunc status=none of=$f; done")
                try a.shell("cmp second ../second.same; rm second first third; ls", limit: .seconds(3))
                helper.command.send(SIGCONT)
                try a.down()
            }
        }

        @Test func `without a helper an ordinary user's mount takes the ordinary way, and says what helps`()
            async throws
        {
            try await withSite(limit: .seconds(60)) { site in
                let a = try site.device(
                    "a",
                    of: OrdinaryUser(in: site),
                    variables: ["UBIQUITY_PASSTHROUGH_HELPER": site.folder + "/none"]
                )
                try a.up()
                // Until the first listing is complete, nobody can say offline what there is not.
                try a.succeed("sync")
                try a.setOffline(true)
                let driver = try driver(a)
                #expect(
                    driver.contains("ordinary FUSE") && driver.contains("Tools/install-passthrough-helper"),
                    "\(driver)"
                )
                try #expect(!isPassed(a, "file"))
                try a.down()
            }
        }

        // MARK: -

        /// What `ubiquity status` says of the way that content takes.
        private func driver(_ device: Device) throws -> Substring {
            let lines = try device.succeed("status").output.split(separator: "\n")
            guard let line = lines.first(where: { $0.hasPrefix("driver ") }) else {
                throw TestFailure("no line tells of the driver: \(lines)")
            }
            return line
        }

        /// Whether a new file is written and read without the service's doing.
        private func isPassed(_ device: Device, _ name: String) throws -> Bool {
            try bytesRead(by: device) {
                try device.shell(
                    """
                    head -c \(Self.size) /dev/urandom > ../\(name).same
                    cp ../\(name).same \(name)
                    cmp \(name) ../\(name).same
                    """,
                    limit: .seconds(10)
                )
            } < Self.size / 2
        }

        private func bytesRead(by device: Device, while body: () throws -> Void) throws -> Int64 {
            let service = try device.servicePID()
            let before = try Processes.bytesRead(by: service)
            try body()
            return try Processes.bytesRead(by: service) - before
        }
    }
}
