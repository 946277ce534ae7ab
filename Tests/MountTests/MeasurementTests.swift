import Glibc
import TestSupport
import Testing

extension MountTests {
    /// The figures that README and closing notes give; `Tools/measure` asks for them.
    @Suite(.enabled(if: TestSettings.isMeasuring, "only for Tools/measure"))
    struct MeasurementTests {
        @Test(.timeLimit(.minutes(30))) func `the big copy and what the services need for it`() async throws {
            try await withSite(limit: .seconds(1700)) { site in
                let (a, b) = try site.pair()
                let source = try SampleTree.make(in: site.outside)
                let original = try Tree(source)
                let files = original.entries.values.filter { if case .folder = $0 { false } else { true } }.count
                let start = ContinuousClock.now
                try a.shell("cp -a '\(source)/.' .", limit: .seconds(600))
                let copied = ContinuousClock.now - start
                try a.sync(limit: .seconds(600))
                let sent = ContinuousClock.now - start
                try b.sync(limit: .seconds(600))
                let there = ContinuousClock.now - start
                try expectTree(b.mountPoint, is: original)
                let read = ContinuousClock.now - start - there
                report("files copied (with links)", "\(files), \(try Files.size(source) >> 20) MiB")
                report("cp -a onto A", copied)
                report("until A's sync returned", sent)
                report("until B's sync returned", there)
                report("reading all of it through B's mount", read)
                for (device, role) in [(a, "A"), (b, "B")] {
                    for pid in device.servicePIDs { try report("resident, service of \(role)", pid) }
                    for pid in device.serverPIDs { try report("resident, server of \(role)", pid) }
                }
                try propagation(a, b)
            }
        }

        /// From the closing of a small file on A to its content on B.
        private func propagation(_ a: Device, _ b: Device) throws {
            var durations: [Duration] = []
            try Files.makeFolder(a.path("propagation"))
            try b.sync()
            for i in 0..<50 {
                let text = "content number \(i)"
                let start = ContinuousClock.now
                try a.write(text, to: "propagation/f\(i)")
                let path = b.path("propagation/f\(i)")
                while !Files.exists(path) {
                    guard ContinuousClock.now - start < .seconds(20) else {
                        throw TestFailure("file \(i) does not arrive")
                    }
                    poll(nil, 0, 1)
                }
                #expect(try Files.text(path) == text)
                durations.append(ContinuousClock.now - start)
            }
            durations.sort()
            report("propagation of a small file, median of 50", durations[25])
            report("propagation of a small file, slowest", durations[49])
        }

        private func report(_ what: String, _ duration: Duration) {
            report(what, "\((duration.seconds * 1000).rounded() / 1000) s")
        }

        private func report(_ what: String, _ pid: Int32) throws {
            report(what, "\(try Processes.residentBytes(of: pid) >> 20) MiB")
        }

        private func report(_ what: String, _ value: String) {
            print("figure: \(what): \(value)")
        }
    }
}
