import ArgumentParser
import Foundation
import Simulation
import Synchronization

@main struct Simulate: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "simulate",
        abstract: "Runs the engine through simulated devices, programs, networks and deaths.",
        discussion: """
            A seed decides what happens and what goes wrong, and in one world of ten each that there are packages, that names do not differ \
            in case, and that the server is restored; in three of ten that programs act while a pass looks, in two that links get other \
            targets. Ends with 1 if a schedule loses a byte, if one does not come to rest with all devices \
            equal, or if a fault that was chosen has never happened.
            """
    )

    @Option(help: "The seeds, as FROM..TO, both included.")
    var seeds: SeedRange?

    @Option(help: "One seed.")
    var seed: UInt64 = 1

    @Option(help: "Devices in each world, 2 to 5; otherwise its seed says how many.")
    var devices: Int?

    @Option(help: "How often programs act in each world; otherwise its seed says how often.")
    var steps: Int?

    @Option(help: "What goes wrong in every world, and nothing else: a list, with commas, of \(FaultList.names).")
    var faults: FaultList?

    @Option(help: "What goes wrong in every world, besides what else does: such a list.")
    var also: FaultList?

    @Option(help: "How many worlds at the same time; otherwise one for each processor.")
    var jobs: Int?

    @Option(help: "Of the schedule's steps these alone, by number, with commas, as --shrink tells them.")
    var only: StepList?

    @Flag(help: "Tell what happens.")
    var story = false

    @Flag(help: "Tell the shortest story that is wrong as well, of each seed that is.")
    var shrink = false

    @Flag(help: "Wrong is also what outlives only as a saved version: see onlySaved.")
    var strict = false

    /// Whoever has seen so many failures has enough to do.
    private static let mostFailures = 20

    func validate() throws {
        if let devices, !(2...5).contains(devices) { throw ValidationError("2 to 5 devices") }
        if let steps, !(1...100_000).contains(steps) { throw ValidationError("1 to 100000 steps") }
        if let jobs, !(1...1024).contains(jobs) { throw ValidationError("1 to 1024 jobs") }
    }

    func run() throws {
        let range = seeds?.range ?? seed...seed
        let settings = SimSettings(
            devices: devices,
            steps: steps,
            faults: faults?.faults,
            moreFaults: also?.faults ?? [],
            isStrict: strict
        )
        let began = ContinuousClock.now
        let progress = Mutex(Progress(next: range.lowerBound))
        DispatchQueue.concurrentPerform(iterations: story ? 1 : jobs ?? ProcessInfo.processInfo.activeProcessorCount) {
            _ in
            while let seed = progress.withLock({ $0.take(in: range) }) {
                let drawn = settings.drawing(by: seed)
                let outcome = Simulation.run(seed: seed, settings: drawn, only: only?.steps, keepsStory: story)
                progress.withLock { progress in
                    progress.add(outcome)
                    if story || range.lowerBound == range.upperBound { tell(outcome) }
                    if let failure = outcome.failure {
                        // Seen at once, also in a file.
                        let also = drawn.moreFaults.map(\.rawValue).sorted().joined(separator: ",")
                        let faults = also.isEmpty ? "" : " (--also \(also))"
                        FileHandle.standardError.write(Data("seed \(seed)\(faults): \(failure)\n".utf8))
                    }
                }
                if shrink, outcome.failure != nil { tellShortest(seed, drawn) }
            }
        }
        try conclude(progress.withLock { $0 }, after: ContinuousClock.now - began)
    }

    private func conclude(_ progress: Progress, after taken: Duration) throws {
        let seconds = Double(taken.components.seconds) + Double(taken.components.attoseconds) / 1e18
        let rate = Int(Double(progress.played) / max(seconds, 0.001))
        print(
            "\(progress.played) schedules in \(Int(seconds)) s (\(rate)/s), \(progress.failures) failed,",
            "slowest to settle: \(progress.slowest)"
        )
        for counter in SimCounter.allCases { print("  \(counter.rawValue): \(progress.totals[counter] ?? 0)") }
        let absent = (faults?.faults ?? []).union(also?.faults ?? []).filter {
            progress.totals[$0.counter, default: 0] == 0
        }
        for fault in absent.map(\.rawValue).sorted() {
            FileHandle.standardError.write(Data("\(fault): never happened\n".utf8))
        }
        if progress.failures > 0 || !absent.isEmpty { throw ExitCode(1) }
    }

    private func tell(_ outcome: Simulation.Outcome) {
        for line in outcome.story { print(line) }
        print("seed \(outcome.seed): trace \(String(outcome.trace, radix: 16))")
    }

    private func tellShortest(_ seed: UInt64, _ settings: SimSettings) {
        let steps = Simulation.shrink(seed: seed, settings: settings)
        let outcome = Simulation.run(seed: seed, settings: settings, only: steps, keepsStory: true)
        let title =
            "seed \(seed), steps \(steps.map(String.init).joined(separator: ",")): \(outcome.failure ?? "right")"
        print(([title] + outcome.story.map { "  " + $0 }).joined(separator: "\n"))
    }

    private struct Progress {
        var next: UInt64?
        var totals: [SimCounter: Int] = [:]
        var failures = 0
        var played = 0
        var slowest = Duration.zero

        init(next: UInt64) { self.next = next }

        mutating func take(in range: ClosedRange<UInt64>) -> UInt64? {
            guard let seed = next, failures < Simulate.mostFailures else { return nil }
            next = seed < range.upperBound ? seed + 1 : nil
            return seed
        }

        mutating func add(_ outcome: Simulation.Outcome) {
            played += 1
            totals.merge(outcome.counts) { $0 + $1 }
            slowest = max(slowest, outcome.settling)
            if outcome.failure != nil { failures += 1 }
        }
    }
}

/// `N,N,…`.
struct StepList: ExpressibleByArgument {
    var steps: [Int]

    init?(argument: String) {
        let parts = argument.split(separator: ",", omittingEmptySubsequences: false)
        steps = parts.compactMap { Int($0) }
        guard steps.count == parts.count, steps.allSatisfy({ $0 >= 0 }) else { return nil }
    }
}

/// `FROM..TO`.
struct SeedRange: ExpressibleByArgument {
    var range: ClosedRange<UInt64>

    init?(argument: String) {
        let ends = argument.split(separator: "..", omittingEmptySubsequences: false).map { UInt64($0) }
        guard ends.count == 2, let first = ends[0], let last = ends[1], first <= last else { return nil }
        range = first...last
    }
}

/// Names of faults, with commas between.
struct FaultList: ExpressibleByArgument {
    static let names = SimFault.allCases.map(\.rawValue).joined(separator: ", ")

    var faults: Set<SimFault>

    init?(argument: String) {
        let faults = argument.split(separator: ",").map { SimFault(rawValue: String($0)) }
        guard !faults.isEmpty, !faults.contains(nil) else { return nil }
        self.faults = Set(faults.compactMap { $0 })
    }
}
