/// What came of one of several paths.
package struct PathOutcome<Value: Codable & Sendable>: Codable, Sendable {
    /// As it was typed.
    package var path: ControlPath
    /// `nil` if it failed.
    package var value: Value?
    package var error: ControlError?
    /// The item that was told last, where more are to come (`ItemStatusRequest`).
    package var next: ControlPath?

    package init(_ path: ControlPath, _ value: Value) {
        self.path = path
        self.value = value
    }

    package init(_ path: ControlPath, _ error: ControlError) {
        self.path = path
        self.error = error
    }

    package var status: ExitStatus { error?.status ?? .done }
}
