internal import Glibc

/// How long a program waits at most for what does not come: for the server, for another device, for another's claim (semantics
/// section 12).
enum Patience {
    private static let standard = 30

    /// Who wants to wait for ever.
    private static let longest = 7 * 86_400

    /// 30 s, or as many as `UBIQUITY_PATIENCE` says.
    static var limit: Duration { limit(saidBy: getenv("UBIQUITY_PATIENCE").map { String(cString: $0) }) }

    static func limit(saidBy text: String?) -> Duration {
        let wanted = text.flatMap { Int($0) }.flatMap { $0 > 0 ? $0 : nil }
        return .seconds(min(wanted ?? standard, longest))
    }
}
