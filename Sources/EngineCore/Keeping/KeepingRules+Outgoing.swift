package import UbiquityModel

/// Which contents go by themselves.
extension KeepingRules {
    /// Giving up goes on to here, a twentieth below the limit, so that what comes next does not begin it again; and greediness ends here, so
    /// that what it brings never takes the place of what somebody uses.
    package var targetBytes: Int64? { limitBytes.map { $0 - $0 / 20 } }

    /// What goes, in this order.
    /// - Parameters:
    ///   - contents: those used least recently, in that order. Those of them that cannot go are left out by whoever looks at them.
    ///   - localBytes: of all content that is here.
    package func outgoing(_ contents: [KeptContent], localBytes: Int64, at now: Timestamp) -> [ItemID] {
        var excess: Int64 = 0
        if let limitBytes, let targetBytes, localBytes > limitBytes { excess = localBytes - targetBytes }
        let end = oldestUse(at: now)
        return contents.prefix { content in
            let isUnused = end.map { content.lastUsed < $0 } ?? false
            guard isUnused || excess > 0 else { return false }
            excess = max(0, excess - content.bytes)
            return true
        }.map(\.id)
    }

    /// What was used before goes. Where everything comes by itself nothing goes for its age: it would come again.
    package func oldestUse(at now: Timestamp) -> Timestamp? {
        guard !isGreedy, let span = Self.nanoseconds(unusedLimit) else { return nil }
        let (moment, overflow) = now.nanoseconds.subtractingReportingOverflow(span)
        return overflow ? nil : Timestamp(nanoseconds: moment)
    }

    /// How long until what was last used then goes for its age.
    package func remaining(of lastUsed: Timestamp, at now: Timestamp) -> Duration? {
        guard let end = oldestUse(at: now) else { return nil }
        return end.age(at: lastUsed)
    }

    private static func nanoseconds(_ span: Duration?) -> Int64? {
        guard let (seconds, attoseconds) = span?.components else { return nil }
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        return overflow ? nil : product + attoseconds / 1_000_000_000
    }
}
