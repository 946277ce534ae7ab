internal import Logging

/// Ports that a server can have again after a restart.
///
/// A port that the system chooses lies where it also takes the ports of outgoing connections from: while the server does not run, any
/// program's connection may have it for a moment, and the address that all devices know would be void for good. So an embedded server
/// chooses below that range, and waits a little for a port that it had.
enum LastingPort {
    /// Below those that Linux takes for outgoing connections (32768 and more).
    private static let range = 20_000..<32_000
    private static let choices = 20
    /// A port that is known to others is waited for: 3 s.
    private static let attempts = 30
    private static let pause = Duration.milliseconds(100)

    struct Try {
        var port: Int
        var pause: Duration
        /// The port that others know, at the first try of another.
        var givingUp: Int?

        func begin(_ logger: Logger) async throws(CancellationError) {
            if let givingUp {
                logger.warning("port \(givingUp) is taken by another program: using a new one, known URLs are void")
            }
            guard pause > .zero else { return }
            do { try await Task.sleep(for: pause) } catch { throw CancellationError() }
        }
    }

    /// The port that a setting of the catalogue remembers; `nil` for what is none.
    static func remembered(_ setting: String?) -> Int? { setting.flatMap { UInt16($0) }.map { Int($0) } }

    /// What to try, one after the other, each after a pause: the port that it had, then others; in the end whatever the system has.
    static func tries(remembered: Int?) -> [Try] {
        var fresh = (0..<choices).map { _ in Try(port: .random(in: range), pause: .zero) }
        fresh.append(Try(port: 0, pause: .zero))
        guard let remembered else { return fresh }
        fresh[0].givingUp = remembered
        return (0..<attempts).map { Try(port: remembered, pause: $0 == 0 ? .zero : pause) } + fresh
    }
}
