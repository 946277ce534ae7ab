import Driver
import TestSupport
import Testing

extension DriverTests {
    /// The mount does what the disk below it does: random histories on both, compared step by step, and in the end as trees.
    ///
    /// `UBIQUITY_TEST_SEED=7` plays one history, `UBIQUITY_TEST_HISTORIES=500` those of the seeds up to 500, which take a quarter of a second each.
    @Suite(.serialized, Requirements.fuse)
    struct DifferentialTests {
        private static let steps = 600

        static var seeds: [UInt64] {
            if let seed = TestSettings.givenSeed { return [seed] }
            return Array(1...UInt64(TestSettings.histories))
        }

        /// Where kernel passthrough is not possible, the best is the ordinary mode too.
        static let modes: [DriverMode] = Requirements.isRoot ? [.ordinary, .best] : [.ordinary]

        @Test(arguments: seeds, modes)
        func `a history gives the same on the mount as on the disk`(seed: UInt64, mode: DriverMode) throws {
            var generator = StepGenerator(seed: seed)
            let history = generator.history(Self.steps)
            guard let difference = try Duel.play(history, mode).difference else { return }
            let failed = Array(history.prefix((difference.step ?? history.count) + 1))
            let short = try Shrinking.shortest(failed, attempts: 200) { try Duel.play($0, mode).difference != nil }
            let (last, log) = try Duel.play(short, mode)
            Issue.record(
                """
                seed \(seed), \(mode), step \(difference.step ?? history.count): \(difference)
                The shortest history that was found to differ:
                \(log.joined(separator: "\n"))
                \(last.map { $0.step == nil ? $0.description : "" } ?? "It did not differ again.")
                """
            )
        }

        @Test
        func `what does not matter is left out of a history that fails`() {
            let short = Shrinking.shortest(Array(1...600), attempts: 200) { $0.contains(17) && $0.contains(400) }
            #expect(short == [17, 400])
        }
    }
}
