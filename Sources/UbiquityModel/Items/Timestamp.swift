/// A moment as nanoseconds since 1970, UTC. Files' times and edit times alike.
package struct Timestamp: Hashable, Sendable, Comparable {
    package var nanoseconds: Int64

    package init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    /// Times out of the range of 64-bit nanoseconds (years 1678 to 2262) become the nearest in it.
    package init(seconds: Int64, nanoseconds: Int64) {
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, overflowAgain) = product.addingReportingOverflow(nanoseconds)
        // The first second of the range begins before it.
        self.nanoseconds =
            overflow || overflowAgain ? Int64(clamping: Int128(seconds) * 1_000_000_000 + Int128(nanoseconds)) : sum
    }

    /// How long ago it was; zero for what is to come. Programs set a file's time as they like, also to centuries ago.
    package func age(at now: Timestamp) -> Duration {
        guard now > self else { return .zero }
        let (age, overflow) = now.nanoseconds.subtractingReportingOverflow(nanoseconds)
        return .nanoseconds(overflow ? .max : age)
    }

    /// Whole seconds, rounded down, and the rest in 0..<1_000_000_000.
    package var parts: (seconds: Int64, nanoseconds: Int64) {
        let (quotient, remainder) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        return remainder < 0 ? (quotient - 1, remainder + 1_000_000_000) : (quotient, remainder)
    }

    package static func < (left: Self, right: Self) -> Bool { left.nanoseconds < right.nanoseconds }
}
