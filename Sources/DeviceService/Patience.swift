internal import Glibc

/// How long a program waits at most for what does not come: for the server, for another device, for another's claim (semantics
/// section 12).
enum Patience {
    private static let standard = 30

    /// 30 s, or as many as `UBIQUITY_PATIENCE` says.
    static var limit: Duration {
        let wanted = getenv("UBIQUITY_PATIENCE").flatMap { Int(String(cString: $0)) }
        return .seconds(wanted.flatMap { $0 > 0 ? $0 : nil } ?? standard)
    }
}
