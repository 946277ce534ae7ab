import Reconciliation
import Testing
import UbiquityModel

@Suite struct RetentionRulesTests {
    private static let now = Timestamp(seconds: 1_700_000_000, nanoseconds: 0)

    private func version(
        _ number: UInt64,
        edited: Duration,
        since: Duration,
        isResolved: Bool = false,
        isUnwanted: Bool = false
    ) -> RetainedVersion {
        RetainedVersion(
            revision: RevisionID(high: 0, low: number),
            edited: Self.now.before(edited),
            since: Self.now.before(since),
            isResolved: isResolved,
            isUnwanted: isUnwanted
        )
    }

    private func discarded(_ versions: [RetainedVersion]) -> [UInt64] {
        RetentionRules.standard.discarded(among: versions, now: Self.now).map(\.low)
    }

    @Test func `all are kept for a day`() {
        #expect(discarded((0..<500).map { version($0, edited: .seconds($0), since: .seconds($0)) }) == [])
    }

    /// Now is 22:13:20.
    @Test func `of each hour the newest is kept for a week`() {
        let versions = (0..<40).map { version($0, edited: .days(2) + .seconds($0 * 300), since: .days(2)) }
        let kept = Set(versions.map(\.revision.low)).subtracting(discarded(versions))
        // 22:13:20, 21:58:20, 20:58:20 and 19:58:20.
        #expect(kept == [0, 3, 15, 27, 39])
    }

    @Test func `of each day, then of each week, the newest is kept; nothing after a year`() {
        let daily = (0..<10).map { version($0, edited: .days(10) + .hours(Int64($0) * 8), since: .days(10)) }
        #expect(daily.count - discarded(daily).count == 4)
        let weekly = (0..<30).map { version($0, edited: .days(100) + .days(Int64($0)), since: .days(100)) }
        #expect((4...6).contains(weekly.count - discarded(weekly).count))
        #expect(discarded([version(1, edited: .days(400), since: .days(366))]) == [1])
    }

    @Test func `what was overwritten just now is kept, however old it is`() {
        #expect(discarded([version(1, edited: .days(4_000), since: .seconds(1))]) == [])
    }

    @Test func `the state from before a day of edits stays beside those of that day`() {
        let old = version(99, edited: .days(40), since: .days(2) + .hours(5))
        let edits = (0..<20).map { version($0, edited: .days(2) + .seconds($0 * 60), since: .days(2)) }
        let gone = discarded([old] + edits)
        #expect(!gone.contains(99))
        #expect(gone.count >= 18)
    }

    @Test(arguments: [(59, false), (61, true)] as [(Int64, Bool)])
    func `what nobody wants is kept for an hour`(minutes: Int64, isGone: Bool) {
        let former = version(1, edited: .days(3), since: .seconds(minutes * 60), isUnwanted: true)
        #expect(discarded([former]) == (isGone ? [1] : []))
    }

    @Test(arguments: [(6, false), (8, true)] as [(Int64, Bool)])
    func `the loser of a resolved conflict is kept for a week`(days: Int64, isGone: Bool) {
        let loser = version(1, edited: .days(days), since: .days(days), isResolved: true)
        #expect(discarded([loser]) == (isGone ? [1] : []))
    }

    @Test func `what is to come is kept`() {
        #expect(discarded([version(1, edited: .zero - .days(3), since: .zero - .days(400))]) == [])
    }

    /// But for a day or an hour through which the border of two steps runs: thinning once keeps the newest on both sides of it. Who has
    /// lost it by then keeps the one before.
    @Test(arguments: 1...50 as ClosedRange<UInt64>)
    func `thinning again and again keeps what thinning once would`(seed: UInt64) {
        var random = Dice(state: seed)
        var versions: [RetainedVersion] = []
        for number in 0..<UInt64(200) {
            let edited = Duration.seconds(Int64(random.next() % (500 * 86_400)))
            versions.append(version(number, edited: edited, since: edited))
        }
        let once = Set(versions.map(\.revision)).subtracting(
            RetentionRules.standard.discarded(among: versions, now: Self.now)
        )
        var left = versions
        for day in stride(from: Int64(500), through: 0, by: -1) {
            let then = Self.now.before(.days(day))
            let gone = Set(RetentionRules.standard.discarded(among: left.filter { $0.since <= then }, now: then))
            left.removeAll { gone.contains($0.revision) }
        }
        #expect(left.count <= once.count)
        for lost in versions where once.contains(lost.revision) && !left.contains(lost) {
            let day = lost.edited.nanoseconds / 86_400_000_000_000
            #expect(left.contains { $0.edited > lost.edited && $0.edited.nanoseconds / 86_400_000_000_000 == day })
        }
    }
}
