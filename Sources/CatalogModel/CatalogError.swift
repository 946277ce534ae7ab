package import UbiquityModel

/// Why the catalogue refused something or could not do it. Nothing was changed.
package enum CatalogError: Error, Hashable, Sendable {
    /// No device has that token.
    case unauthorized
    /// The device was removed from its account, or the account itself was removed.
    case revoked
    /// The device may only read, or only use certain containers.
    case readOnly
    case noSuchContainer(ContainerID)
    case containerExists(ContainerID)
    case noSuchAccount(String)
    case accountExists(String)
    case noSuchDevice(String)
    case noSuchItem(ItemID)
    case wrongCode
    case usedCode
    case expiredCode
    case quotaExceeded
    /// What was asked for is more than one answer may be, in bytes.
    case tooMuch(bytes: Int64, limit: Int)
    /// The container would declare more extensions of packages than it may.
    case tooManyExtensions(limit: Int)
    /// The disk of the catalogue is full.
    case noSpace
    /// The catalogue was written by a newer version of ubiquity.
    case tooNew(format: Int)
    case cancelled
    case failed(String)
}

extension CatalogError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .unauthorized: "this device is not known to the server: sign in again"
        case .revoked: "this device was removed from the account"
        case .readOnly: "this device may not do that: its invitation was limited"
        case .noSuchContainer(let id): "there is no container \(id)"
        case .containerExists(let id): "there is a container \(id) already"
        case .noSuchAccount(let name): "there is no account \(name)"
        case .accountExists(let name): "there is an account \(name) already"
        case .noSuchDevice(let name): "the account has no device \(name)"
        case .noSuchItem: "there is no such item"
        case .wrongCode: "the invitation code is wrong"
        case .usedCode: "the invitation code was used already: each works once"
        case .expiredCode: "the invitation code has expired"
        case .quotaExceeded: "the account's quota is used up"
        case .tooMuch(let bytes, let limit): "\(bytes) bytes were asked for at once, where \(limit) are allowed"
        case .tooManyExtensions(let limit): "a container declares \(limit) extensions of packages at most"
        case .noSpace: "the server's disk is full"
        case .tooNew(let format): "the catalogue has format \(format): it was written by a newer version of ubiquity"
        case .cancelled: "cancelled"
        case .failed(let message): "the catalogue failed: \(message)"
        }
    }
}
