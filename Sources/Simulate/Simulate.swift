import ArgumentParser
import Foundation
import Simulation

@main struct Simulate: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "simulate",
        abstract: "Runs the engine through simulated devices, programs, networks and deaths.",
        discussion: "Ends with 1 if a schedule loses a byte, or does not come to rest with all devices equal."
    )

    @Option(help: "The first seed.")
    var seed: UInt64 = 1

    @Option(help: "How many seeds, one after the other.")
    var count: UInt64 = 1

    @Flag(help: "Tell what happens.")
    var story = false

    @Flag(help: "Tell the shortest story that is wrong as well, of each seed that is.")
    var shrink = false

    func validate() throws {
        if seed.addingReportingOverflow(count).overflow { throw ValidationError("there are not so many seeds") }
    }

    func run() throws {
        let began = ContinuousClock.now
        var totals: [SimCounter: Int] = [:]
        var failures = 0
        var played = 0
        var slowest = Duration.zero
        for seed in seed..<(seed + count) {
            let outcome = Simulation.run(seed: seed, keepsStory: story)
            for line in outcome.story { print(line) }
            if story || count == 1 { print("seed \(seed): trace \(String(outcome.trace, radix: 16))") }
            played += 1
            totals.merge(outcome.counts) { $0 + $1 }
            slowest = max(slowest, outcome.settling)
            guard let failure = outcome.failure else { continue }
            failures += 1
            // Seen at once, also in a file.
            FileHandle.standardError.write(Data("seed \(seed): \(failure)\n".utf8))
            if shrink { tell(seed) }
            if failures >= 20 { break }
        }
        let taken = ContinuousClock.now - began
        let seconds = Double(taken.components.seconds) + Double(taken.components.attoseconds) / 1e18
        let rate = Int(Double(played) / max(seconds, 0.001))
        print("\(played) schedules in \(Int(seconds)) s (\(rate)/s), \(failures) failed, slowest to settle: \(slowest)")
        for counter in SimCounter.allCases { print("  \(counter.rawValue): \(totals[counter] ?? 0)") }
        if failures > 0 { throw ExitCode(1) }
    }

    private func tell(_ seed: UInt64) {
        let steps = Simulation.shrink(seed: seed)
        let outcome = Simulation.run(seed: seed, only: steps, keepsStory: true)
        print("seed \(seed), steps \(steps.map(String.init).joined(separator: ",")): \(outcome.failure ?? "right")")
        for line in outcome.story { print("  " + line) }
    }
}
