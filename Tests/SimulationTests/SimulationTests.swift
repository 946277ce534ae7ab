import Simulation
import TestSupport
import Testing

/// The engine's real code in simulated worlds: no byte is lost, and all devices come to rest with the same tree.
///
/// `UBIQUITY_TEST_SEED=7` plays one schedule, `UBIQUITY_TEST_HISTORIES=5000` those of the seeds up to 5000. `Tools/simulate` plays many more,
/// and tells the story of one.
@Suite struct SimulationTests {
    private static let series: UInt64 = 25

    static var beginnings: [UInt64] {
        if let seed = TestSettings.givenSeed { return [seed] }
        return Array(stride(from: 1, through: max(UInt64(TestSettings.histories), 150), by: Int(series)))
    }

    @Test(arguments: beginnings)
    func `whatever happens, all is equal in the end and nothing is lost`(first: UInt64) {
        let last = TestSettings.givenSeed ?? first + Self.series - 1
        for seed in first...last {
            guard let failure = Simulation.run(seed: seed).failure else { continue }
            Issue.record("seed \(seed): \(failure)")
        }
    }

    @Test func `names that differ in case only never meet in a case-insensitive container`() {
        for seed: UInt64 in 1...200 {
            guard let failure = Simulation.run(seed: seed, settings: SimSettings(moreFaults: [.cases])).failure else {
                continue
            }
            Issue.record("seed \(seed): \(failure)")
        }
    }

    @Test func `a seed decides everything`() {
        for seed: UInt64 in 1...20 {
            #expect(Simulation.run(seed: seed).trace == Simulation.run(seed: seed, keepsStory: true).trace)
        }
        #expect(Simulation.run(seed: 1).trace != Simulation.run(seed: 2).trace)
    }

    /// A run in which nothing goes wrong would prove nothing.
    @Test func `everything that can happen does`() {
        var counts: [SimCounter: Int] = [:]
        for seed: UInt64 in 1...60 { counts.merge(Simulation.run(seed: seed).counts) { $0 + $1 } }
        for rare: SimFault in [
            .serverBackups, .failingDisks, .packages, .cases, .races, .links, .lateWords, .noSync, .hardLinks,
            .databases, .claims, .population, .alone,
        ] {
            let settings = SimSettings(faults: [rare])
            for seed: UInt64 in 1...20 {
                counts.merge(Simulation.run(seed: seed, settings: settings).counts) { $0 + $1 }
            }
        }
        // In one world of twenty: which ones, changes with everything that is drawn.
        var seed: UInt64 = 61
        while counts[.chunksCollected, default: 0] == 0, seed < 500 {
            counts.merge(Simulation.run(seed: seed).counts) { $0 + $1 }
            seed += 1
        }
        for counter in SimCounter.allCases where counter != .onlySaved {
            #expect(counts[counter, default: 0] > 0, "\(counter)")
        }
    }

    /// Each failed before what the comment at it says was mended.
    @Test(arguments: Story.all + Story.alone + Story.waiting)
    func `a story that once went wrong goes right`(_ story: Story) {
        let settings = SimSettings(faults: story.faults, moreFaults: story.moreFaults, isStrict: true)
        #expect(Simulation.run(seed: story.seed, settings: settings, only: story.steps).failure == nil)
    }
}
