package import CloudClient
internal import CloudProtocol
package import UbiquityControl

extension ControlError {
    /// What a person sees of a failure of the cloud.
    package init(_ what: String, _ error: CloudError) {
        switch error {
        case .offline(let why):
            self.init(.unreachable, what, "the server cannot be reached: \(why)")
        case .stalled(let why):
            self.init(.unreachable, what, why)
        case .revoked:
            self.init(what, error.description, remedy: "`ubiquity sign-out`, then join again with a new invitation")
        case .unauthorized(let why):
            self.init(what, why, remedy: "`ubiquity sign-out`, then join again with a new invitation")
        case .notFound(let why):
            self.init(what, why)
        case .rejected(let code, let message):
            self.init(what, message, remedy: Self.remedy(code))
        case .serverFull(let why):
            self.init(.tryAgain, what, why, remedy: "make room on the server's disk")
        case .quotaExceeded:
            self.init(what, error.description)
        case .tooNew(let why):
            self.init(what, why, remedy: "update the older one")
        case .wrongServer(let why):
            self.init(what, why, remedy: "compare the address with the invitation; somebody may be in between")
        case .malformed:
            self.init(what, error.description)
        case .cancelled:
            self.init(.tryAgain, what, error.description)
        }
    }

    private static func remedy(_ code: String) -> String? {
        switch FailureCode(rawValue: code) {
        case .wrongCode: "compare it with what `ubiquity invite` printed"
        case .usedCode, .expiredCode: "make a new one with `ubiquity invite` on a device that is signed in"
        case .containerExists: "`ubiquity container list` shows it"
        case .badRequest, .revoked, .unauthorized, .noSuchContainer, .quota, .noSpace, .tooNew, .readOnly, .notEmbedded,
            .notFound,
            .tooLarge, .unknownBase, .internalError, nil:
            nil
        }
    }
}
