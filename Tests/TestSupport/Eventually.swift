import Foundation
import Glibc

/// Waits until `condition` gives a value; throws at the deadline with `what` was waited for.
///
/// For what tells nobody (another process's effect on a folder). It looks every 10 ms.
@discardableResult
package func eventually<Value>(
    _ what: @autoclosure () -> String,
    within limit: Duration = .seconds(20),
    _ condition: () throws -> Value?
) throws -> Value {
    let deadline = ContinuousClock.now + limit
    while true {
        if let value = try condition() { return value }
        if ContinuousClock.now >= deadline { throw TestFailure("not within \(limit): \(what())") }
        poll(nil, 0, 10)
    }
}

/// Waits until `condition` is true.
package func eventually(
    _ what: @autoclosure () -> String,
    within limit: Duration = .seconds(20),
    _ condition: () throws -> Bool
) throws {
    _ = try eventually(what(), within: limit) { try condition() ? true : nil } as Bool
}

/// Checks that `condition` stays true for a while: for what must *not* happen.
package func steadily(
    _ what: @autoclosure () -> String,
    for duration: Duration = .milliseconds(700),
    _ condition: () throws -> Bool
) throws {
    let end = ContinuousClock.now + duration
    repeat {
        guard try condition() else { throw TestFailure("did not stay so: \(what())") }
        poll(nil, 0, 10)
    } while ContinuousClock.now < end
}

/// Runs `body` on a thread of its own: it may block.
package func startThread(_ body: @escaping @Sendable () -> Void) {
    Thread.detachNewThread(body)
}
