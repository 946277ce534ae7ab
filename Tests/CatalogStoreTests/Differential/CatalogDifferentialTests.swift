import CatalogModel
import MemoryCatalog
import Reconciliation
import TestSupport
import Testing
import UbiquityModel

/// All catalogues give the same answers: random histories on the one in SQLite and the one in memory, compared after each step.
///
/// `UBIQUITY_TEST_SEED=7` plays one history, `UBIQUITY_TEST_HISTORIES=5000` those of the seeds up to 5000.
@Suite struct CatalogDifferentialTests {
    private static let steps = 12
    /// Histories that share a catalogue, one after the other.
    private static let series: UInt64 = 25

    static var beginnings: [UInt64] {
        if let seed = TestSettings.givenSeed { return [seed] }
        return Array(stride(from: 1, through: max(UInt64(TestSettings.histories), 200), by: Int(series)))
    }

    @Test(arguments: beginnings)
    func `a history gives the same in SQLite as in memory`(first: UInt64) async throws {
        let last = TestSettings.givenSeed ?? first + Self.series - 1
        let duel = try CatalogDuel()
        for seed in first...last {
            var generator = CatalogStepGenerator(seed: seed)
            let history = generator.history(Self.steps)
            let quota: Int64? = seed.isMultiple(of: 4) ? 6 : nil
            let difference = try await duel.play(
                history,
                account: "seed \(seed)",
                quota: quota,
                isCaseInsensitive: seed % 5 == 1
            )
            if let difference {
                Issue.record("seed \(seed):\n\(difference)")
            }
        }
        try duel.close()
    }

    /// In memory alone, where longer histories take less time.
    @Test func `nothing is lost, and every state is a tree, whatever devices send`() async throws {
        let seeds = TestSettings.givenSeed.map { $0...$0 } ?? 1...max(UInt64(TestSettings.histories), 100)
        for seed in seeds {
            // Other tests have deadlines.
            await Task.yield()
            var generator = CatalogStepGenerator(seed: seed)
            let history = generator.history(3 * Self.steps)
            var state = try CatalogState(devices: CatalogStepGenerator.devices)
            let scope = Scope(token: TokenHash(token: [1]), container: .documents)
            var promises = CommitPromises(scope: scope)
            for (index, step) in history.enumerated() {
                guard case .commit(var request, let device) = step else { continue }
                // Of what nobody wants nothing is promised.
                request.discardsFormer = false
                request.entries.removeAll {
                    if case .operation(let operation) = $0, case .discard = operation.action { true } else { false }
                }
                guard
                    let answer = try? state.commit(
                        request,
                        Scope(token: TokenHash(token: [device]), container: .documents)
                    )
                else { continue }
                guard let violation = promises.violation(answer, to: request, state) else { continue }
                let steps = history.prefix(index + 1).map(\.description).joined(separator: "\n")
                Issue.record("seed \(seed): \(violation)\n\(steps)")
                return
            }
        }
    }
}
