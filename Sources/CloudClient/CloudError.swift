/// Why the cloud did not do what was asked.
package enum CloudError: Error, Hashable, Sendable {
    /// Not reached, or it has trouble of its own: worth trying again later.
    case offline(String)
    /// Reached, but nothing has moved for as long as a request waits for that: worth trying again later, not at once.
    case stalled(String)
    /// This device was removed from its account.
    case revoked
    /// The token is not (or no longer) known.
    case unauthorized(String)
    case notFound(String)
    /// The server understood and said no. The codes are those of `FailureCode`.
    case rejected(code: String, message: String)
    /// The server's disk is full.
    case serverFull(String)
    /// The account's.
    case quotaExceeded
    /// One side speaks a newer version of the protocol than the other.
    case tooNew(String)
    /// Something else answers there: another certificate than the one that this device knows, or none.
    case wrongServer(String)
    /// An answer that makes no sense.
    case malformed(String)
    case cancelled
}

extension CloudError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .offline(let reason): reason
        case .stalled(let reason): reason
        case .revoked: "this device was removed from its account"
        case .unauthorized(let reason): reason
        case .notFound(let what): what
        case .rejected(_, let message): message
        case .serverFull(let reason): reason
        case .quotaExceeded: "the account's quota is used up"
        case .tooNew(let reason): reason
        case .wrongServer(let reason): reason
        case .malformed(let reason): "the server's answer makes no sense: \(reason)"
        case .cancelled: "cancelled"
        }
    }
}
