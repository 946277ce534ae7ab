/// Why the server refused a request: the `code` of a `Failure` body.
package enum FailureCode: String, Error, Hashable, Sendable, CaseIterable {
    case badRequest = "bad-request"
    /// Joining: no such invitation, or one that was used or has expired.
    case wrongCode = "wrong-code"
    case usedCode = "used-code"
    case expiredCode = "expired-code"
    /// This device was removed from the account.
    case revoked
    /// The token is not known.
    case unauthorized
    case noSuchContainer = "no-such-container"
    case containerExists = "container-exists"
    case quota
    /// The server's disk is full.
    case noSpace = "no-space"
    /// The device speaks a newer version of the protocol than the server.
    case tooNew = "too-new"
    case readOnly = "read-only"
    /// Only an embedded server opens itself to the network.
    case notEmbedded = "not-embedded"
    /// Something that was asked for does not exist: an item, a device, chunks that are not in the cloud.
    case notFound = "not-found"
    /// More than `CloudLimits` allow.
    case tooLarge = "too-large"
    /// A manifest came as a difference to one that the server does not have: to be sent whole.
    case unknownBase = "unknown-base"
    /// The server's own trouble.
    case internalError = "internal"

    package var status: Int {
        switch self {
        case .badRequest: 400
        case .wrongCode, .expiredCode, .readOnly, .notEmbedded: 403
        case .revoked, .unauthorized: 401
        case .noSuchContainer, .notFound: 404
        case .usedCode, .containerExists, .unknownBase: 409
        case .quota, .tooLarge: 413
        case .tooNew: 426
        case .noSpace: 507
        case .internalError: 500
        }
    }
}

extension WireFailure {
    package init(_ code: FailureCode, _ message: String) {
        self.init()
        self.code = code.rawValue
        self.message = message
    }
}
