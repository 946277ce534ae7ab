/// Time limits as they travel: in seconds, `nil` for none.
package enum TimeLimit {
    /// Some thirty years. Deadlines are numbers too, and end somewhere.
    package static let longestSeconds = 1e9

    /// - Throws: usage, for what is negative, too long or no number.
    package static func duration(seconds: Double?) throws(ControlError) -> Duration? {
        guard let seconds else { return nil }
        guard seconds >= 0, seconds < longestSeconds else {
            throw ControlError(.usage, "time limit", "\(seconds) is no number of seconds to wait")
        }
        return .seconds(seconds)
    }
}
