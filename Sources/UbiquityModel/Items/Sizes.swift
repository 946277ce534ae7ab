/// Arithmetic with files' sizes. They are what a program or another device says: two of them may be more than any number, and what is past
/// the end stays there.
package enum Sizes {
    /// In bytes; no size is negative.
    package static func sum(_ left: Int64, _ right: Int64) -> Int64 {
        let (sum, overflow) = left.addingReportingOverflow(right)
        return overflow ? .max : sum
    }

    /// In bytes; no size is negative.
    package static func sum(_ sizes: some Sequence<Int64>) -> Int64 { sizes.reduce(0) { sum($0, $1) } }

    /// 0 to 100, rounded down. Nothing of nothing is all of it.
    package static func percent(_ part: Int64, of whole: Int64) -> Int {
        if part >= whole { return 100 }
        if part <= 0 { return 0 }
        return Int(whole.dividingFullWidth(part.multipliedFullWidth(by: 100)).quotient)
    }
}
