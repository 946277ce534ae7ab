package import UbiquityModel

/// Why a message cannot be what it claims to be. Nothing that came over the wire reaches the model without these checks.
package enum WireError: Error, Hashable, Sendable {
    /// A part that must be there is not.
    case missing(String)
    /// An identifier or digest with this many bytes.
    case wrongLength(String, bytes: Int)
    case badName(NameError)
    /// A number that cannot be, such as a negative size.
    case outOfRange(String, value: Int64)
    /// A value that a newer version may have introduced.
    case unknown(String, value: String)
    /// Two parts that exclude one another, or that should agree and do not.
    case contradiction(String)
    case tooLong(String, bytes: Int, limit: Int)
    case tooMany(String, Int, limit: Int)
    /// The stream ended within a message.
    case truncated
    /// Bytes that are no message at all.
    case undecodable(String)
    /// A message of our own that has no bytes: it is too long.
    case unencodable(String, reason: String)

    /// The fault is on this side of the wire.
    package var isOwn: Bool {
        switch self {
        case .unencodable: true
        case .missing, .wrongLength, .badName, .outOfRange, .unknown, .contradiction, .tooLong, .tooMany, .truncated,
            .undecodable:
            false
        }
    }
}

extension WireError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .missing(let field): "\(field) is missing"
        case .wrongLength(let field, let bytes): "\(field) has \(bytes) bytes"
        case .badName(let error): error.description
        case .outOfRange(let field, let value): "\(field) cannot be \(value)"
        case .unknown(let field, let value): "\(field) has the unknown value \(value)"
        case .contradiction(let what): what
        case .tooLong(let field, let bytes, let limit):
            "\(field) is too long: \(bytes) bytes, where \(limit) are allowed"
        case .tooMany(let what, let count, let limit): "\(count) \(what), where \(limit) are allowed"
        case .truncated: "the stream ended within a message"
        case .undecodable(let what): "\(what) cannot be decoded"
        case .unencodable(let what, let reason): "a message of the kind \(what) cannot be encoded: \(reason)"
        }
    }
}
