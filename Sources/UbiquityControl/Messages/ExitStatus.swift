/// The exit codes of `ubiquity`: the contract with scripts.
package enum ExitStatus: Int32, Codable, Sendable, Hashable {
    case done = 0
    case failed = 1
    /// Some of several paths.
    case partlyDone = 2
    /// Wrong words on the command line (sysexits).
    case usage = 64
    /// No device service or server to be reached.
    case unreachable = 69
    /// Busy, offline, time limit, cycle of claims.
    case tryAgain = 75
}

extension ExitStatus {
    /// What several outcomes make together: all done, some done, or none, and then their common reason if they have one.
    package static func combining(_ outcomes: [ExitStatus]) -> ExitStatus {
        guard let first = outcomes.first(where: { $0 != .done }) else { return .done }
        if outcomes.contains(.done) || outcomes.contains(.partlyDone) { return .partlyDone }
        return outcomes.allSatisfy { $0 == first } ? first : .failed
    }
}
