internal import Synchronization

/// A value that is set once, after those who need it later were made.
final class LateValue<Value: Sendable>: Sendable {
    /// Guards the value. A leaf.
    private let content = Mutex<Value?>(nil)

    func set(_ value: Value) { content.withLock { $0 = value } }

    func value() throws(ServerError) -> Value {
        guard let value = content.withLock({ $0 }) else { throw .failed("the server has not started yet") }
        return value
    }
}
