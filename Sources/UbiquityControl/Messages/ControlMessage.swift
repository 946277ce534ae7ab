internal import UbiquityModel

/// A request on the control socket, and what its answer is made of. The file that declares a verb says what it does.
///
/// The protocol is one JSON object a line. A request is `{"v": 1, "verb": VERB, "arguments": {…}}`; the answer is any number of
/// `{"event": "progress", "progress": {…}}` and then `{"event": "result", "result": {…}}` or `{"event": "error", "error": {…}}`.
/// Requests of one connection are answered one after the other. A connection that closes cancels its request and ends its claims.
package protocol ControlRequest: Codable, Sendable {
    associatedtype Answer: Codable & Sendable
    static var verb: String { get }
}

/// The part of a request that says how to read the rest. Unknown keys are ignored, so that later versions may add some.
package struct RequestHead: Codable, Sendable {
    package var v: UInt32
    package var verb: String
}

package struct RequestEnvelope<Request: ControlRequest>: Codable, Sendable {
    package var v: UInt32
    package var verb: String
    package var arguments: Request

    package init(_ request: Request) {
        v = FormatVersion.control
        verb = Request.verb
        arguments = request
    }
}

package enum ReplyEvent: String, Codable, Sendable {
    case progress, result, error
}

package struct ReplyHead: Codable, Sendable {
    package var event: ReplyEvent
}

package struct ProgressReply: Codable, Sendable {
    package var event = ReplyEvent.progress
    package var progress: ControlProgress
    package init(_ progress: ControlProgress) { self.progress = progress }
}

package struct ResultReply<Answer: Codable & Sendable>: Codable, Sendable {
    package var event = ReplyEvent.result
    package var result: Answer
    package init(_ result: Answer) { self.result = result }
}

package struct ErrorReply: Codable, Sendable {
    package var event = ReplyEvent.error
    package var error: ControlError
    package init(_ error: ControlError) { self.error = error }
}

/// How far something is, for a person who watches.
package struct ControlProgress: Codable, Sendable, Hashable {
    /// What is being done.
    package var activity: String
    package var done: Int64
    /// 0 while it is not known.
    package var total: Int64
    /// What `done` and `total` count.
    package var unit: Unit

    package enum Unit: String, Codable, Sendable { case bytes, files, none }

    package init(_ activity: String, done: Int64 = 0, total: Int64 = 0, unit: Unit = .none) {
        self.activity = activity
        self.done = done
        self.total = total
        self.unit = unit
    }
}

/// The answer of verbs that have nothing to say.
package struct Nothing: Codable, Sendable, Hashable {
    package init() {}
}
