package import UbiquityModel

/// How long the cloud keeps what is not current any more (semantics sections 4 and 7). Conflict versions are kept until somebody resolves
/// them, and current ones for good.
package struct RetentionRules: Hashable, Sendable {
    /// Up to an age, the newest version of each period is kept.
    package struct Step: Hashable, Sendable {
        package var age: Duration
        package var period: Duration

        package init(age: Duration, period: Duration) {
            self.age = age
            self.period = period
        }
    }

    /// Saved versions up to this age are all kept.
    package var everything: Duration
    /// By age; older ones are discarded.
    package var steps: [Step]
    /// How long a loser is kept after its conflict was resolved.
    package var resolved: Duration
    /// How long a saved version is kept that nobody wants, for whoever is just fetching it.
    package var unwanted: Duration
    /// How long a deleted item can be brought back with its versions.
    package var deleted: Duration

    package init(everything: Duration, steps: [Step], resolved: Duration, unwanted: Duration, deleted: Duration) {
        self.everything = everything
        self.steps = steps
        self.resolved = resolved
        self.unwanted = unwanted
        self.deleted = deleted
    }

    /// Those of semantics section 4: all for a day, then hourly to a week, daily to a month, weekly to a year.
    package static let standard = RetentionRules(
        everything: .days(1),
        steps: [
            Step(age: .days(7), period: .hours(1)), Step(age: .days(30), period: .days(1)),
            Step(age: .days(365), period: .days(7)),
        ],
        resolved: .days(7),
        unwanted: .hours(1),
        deleted: .days(30)
    )

    /// Which saved versions of one item are kept no longer, in their order.
    ///
    /// A version's age counts from when it ceased to be current: what was written years ago and overwritten now is a minute old. Its
    /// period is that of its own time, so that the state from before a day of edits is not one of that day's.
    package func discarded(among versions: [RetainedVersion], now: Timestamp) -> [RevisionID] {
        let claims = versions.map { (version: $0, claim: claim(of: $0, now: now)) }
        var newest: [Slot: RetainedVersion] = [:]
        for case (let version, .newestOf(let slot)) in claims where newest[slot].map({ $0.precedes(version) }) ?? true {
            newest[slot] = version
        }
        return claims.filter { version, claim in
            switch claim {
            case .kept: false
            case .newestOf(let slot): newest[slot]?.revision != version.revision
            case .discarded: true
            }
        }.map(\.version.revision)
    }

    /// A step's period, counted from the beginning of 1970.
    private struct Slot: Hashable {
        var step: Int
        var period: Int64
    }

    private enum Claim {
        case kept
        case newestOf(Slot)
        case discarded
    }

    private func claim(of version: RetainedVersion, now: Timestamp) -> Claim {
        let age = version.since.age(at: now)
        if version.isUnwanted { return age > unwanted ? .discarded : .kept }
        if version.isResolved { return age > resolved ? .discarded : .kept }
        if age <= everything { return .kept }
        guard let step = steps.firstIndex(where: { age <= $0.age }) else { return .discarded }
        let period = max(1, steps[step].period.wholeNanoseconds)
        return .newestOf(Slot(step: step, period: version.edited.nanoseconds.flooredQuotient(by: period)))
    }
}

/// A saved version, as far as it matters for whether it is kept.
package struct RetainedVersion: Hashable, Sendable {
    package var revision: RevisionID
    /// The time of the change that made it.
    package var edited: Timestamp
    /// When it ceased to be what it was before, by the server's clock: current, or a conflict's loser.
    package var since: Timestamp
    /// It lost a conflict that somebody has resolved.
    package var isResolved: Bool
    /// Whoever replaced it did not want it to be kept.
    package var isUnwanted: Bool

    package init(
        revision: RevisionID,
        edited: Timestamp,
        since: Timestamp,
        isResolved: Bool,
        isUnwanted: Bool = false
    ) {
        self.revision = revision
        self.edited = edited
        self.since = since
        self.isResolved = isResolved
        self.isUnwanted = isUnwanted
    }

    fileprivate func precedes(_ other: RetainedVersion) -> Bool {
        (edited, since, revision) < (other.edited, other.since, other.revision)
    }
}

extension Duration {
    package static func hours(_ count: Int64) -> Duration { .seconds(count * 3_600) }

    package static func days(_ count: Int64) -> Duration { .hours(count * 24) }

    /// Rounded down; the greatest there is for more.
    fileprivate var wholeNanoseconds: Int64 {
        let (seconds, attoseconds) = components
        return Int64(clamping: Int128(seconds) * 1_000_000_000 + Int128(attoseconds / 1_000_000_000))
    }
}

extension Timestamp {
    /// Earlier by a duration; the earliest there is if that were before it.
    package func before(_ duration: Duration) -> Timestamp {
        Timestamp(nanoseconds: Int64(clamping: Int128(nanoseconds) - Int128(duration.wholeNanoseconds)))
    }

    package func after(_ duration: Duration) -> Timestamp {
        Timestamp(nanoseconds: Int64(clamping: Int128(nanoseconds) + Int128(duration.wholeNanoseconds)))
    }
}

extension Int64 {
    /// Rounded down also below zero.
    fileprivate func flooredQuotient(by divisor: Int64) -> Int64 {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? quotient - 1 : quotient
    }
}
