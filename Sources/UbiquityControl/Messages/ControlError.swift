/// What went wrong, in the words in which a person sees it: `ubiquity: WHAT: WHY; REMEDY`.
package struct ControlError: Error, Codable, Sendable, Hashable {
    package var status: ExitStatus
    /// On which thing: a path, a verb, a URL.
    package var what: String
    package var why: String
    /// What to do next, where that is known.
    package var remedy: String?

    package init(_ what: String, _ why: String, remedy: String? = nil) {
        self.init(.failed, what, why, remedy: remedy)
    }

    package init(_ status: ExitStatus, _ what: String, _ why: String, remedy: String? = nil) {
        self.status = status
        self.what = what
        self.why = why
        self.remedy = remedy
    }

    package static func noService() -> ControlError {
        ControlError(
            .unreachable,
            "device service",
            "it does not run",
            remedy: "start it with `ubiquity up DIR`, or `ubiquity mount CONTAINER DIR`"
        )
    }

    /// The connection ended before the answer came: whether the request was carried out is not known.
    package static func serviceLost() -> ControlError {
        ControlError(
            .unreachable,
            "device service",
            "it ended during the request",
            remedy: "`ubiquity up DIR` starts it again"
        )
    }

    /// `ubiquity offline on` has been said.
    package static func offline(_ what: String) -> ControlError {
        ControlError(.tryAgain, what, "this device is offline", remedy: "`ubiquity offline off`")
    }

    package static func notSignedIn() -> ControlError {
        ControlError(
            "account",
            "this device is not signed in",
            remedy:
                "`ubiquity up DIR` starts with a server of its own, `ubiquity join URL CODE DIR` joins another device"
        )
    }
}

extension ControlError: CustomStringConvertible {
    /// One line, whatever its parts contain.
    package var description: String {
        let text = remedy.map { "\(what): \(why); \($0)" } ?? "\(what): \(why)"
        return text.split(whereSeparator: \.isNewline).joined(separator: " ")
    }
}
