/// A moment as nanoseconds since 1970, UTC. Files' times and edit times alike.
package struct Timestamp: Hashable, Sendable, Comparable {
    package var nanoseconds: Int64

    package init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    /// Times out of the range of 64-bit nanoseconds (years 1678 to 2262) become the nearest in it.
    package init(seconds: Int64, nanoseconds: Int64) {
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, overflowAgain) = product.addingReportingOverflow(nanoseconds)
        self.nanoseconds = overflow || overflowAgain ? (seconds < 0 ? .min : .max) : sum
    }

    /// Whole seconds, rounded down, and the rest in 0..<1_000_000_000.
    package var parts: (seconds: Int64, nanoseconds: Int64) {
        let (quotient, remainder) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        return remainder < 0 ? (quotient - 1, remainder + 1_000_000_000) : (quotient, remainder)
    }

    package static func < (left: Self, right: Self) -> Bool { left.nanoseconds < right.nanoseconds }
}
