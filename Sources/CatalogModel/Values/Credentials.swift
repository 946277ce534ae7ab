internal import Crypto
package import UbiquityModel

/// SHA-256 of a device's token: the catalogue never holds what would let somebody in.
package struct TokenHash: Hashable, Sendable {
    package let bytes: [UInt8]

    package init(token: [UInt8]) { bytes = Array(SHA256.hash(data: token)) }
}

/// SHA-256 of the secret in an invitation code.
package struct SecretHash: Hashable, Sendable {
    package let bytes: [UInt8]

    package init(secret: [UInt8]) { bytes = Array(SHA256.hash(data: secret)) }
}

/// What a device may do.
package struct Grant: Hashable, Sendable {
    package var isReadOnly: Bool
    /// `nil`: all of the account, also those that come later.
    package var containers: [ContainerID]?

    package init(isReadOnly: Bool = false, containers: [ContainerID]? = nil) {
        self.isReadOnly = isReadOnly
        self.containers = containers
    }

    package static let everything = Grant()

    package var isLimited: Bool { isReadOnly || containers != nil }

    package func allows(_ container: ContainerID) -> Bool { containers?.contains(container) ?? true }
}

/// A code that lets one device in, once.
package struct Invitation: Hashable, Sendable {
    package var secret: SecretHash
    package var grant: Grant
    package var expires: Timestamp

    package init(secret: SecretHash, grant: Grant, expires: Timestamp) {
        self.secret = secret
        self.grant = grant
        self.expires = expires
    }
}

/// A device that joins: its identity and credentials are made by the server.
package struct NewDevice: Hashable, Sendable {
    package var id: DeviceID
    package var name: String
    package var token: TokenHash
    package var nonce: [UInt8]
    /// Good too until it has committed something.
    package var formerNonce: [UInt8]?

    package init(id: DeviceID, name: String, token: TokenHash, nonce: [UInt8], formerNonce: [UInt8]? = nil) {
        self.id = id
        self.name = name
        self.token = token
        self.nonce = nonce
        self.formerNonce = formerNonce
    }
}

/// Credentials for a session. All but the nonce are used only if the device turns out to be restored or cloned.
package struct FreshCredentials: Hashable, Sendable {
    package var nonce: [UInt8]
    package var device: DeviceID
    package var token: TokenHash
    /// What the device has written down before it asked, and asks with until an answer comes: preferred to `token` where nobody has it.
    package var proposed: TokenHash?

    package init(nonce: [UInt8], device: DeviceID, token: TokenHash, proposed: TokenHash? = nil) {
        self.nonce = nonce
        self.device = device
        self.token = token
        self.proposed = proposed
    }
}

/// Who a token belongs to, and what that device may do.
package struct Access: Hashable, Sendable {
    package var device: DeviceID
    package var deviceName: String
    /// The account's number in the catalogue.
    package var account: Int64
    package var accountName: String
    package var grant: Grant

    package init(device: DeviceID, deviceName: String, account: Int64, accountName: String, grant: Grant) {
        self.device = device
        self.deviceName = deviceName
        self.account = account
        self.accountName = accountName
        self.grant = grant
    }
}

package struct CatalogSession: Hashable, Sendable {
    /// As it is after the session was opened: another device than before where `isRestored`.
    package var access: Access
    /// The nonce was an old one: this is a restored or cloned device, and has another identity.
    package var isRestored: Bool
    /// That identity has the token that the device had proposed, not the fresh one.
    package var hasProposedToken: Bool
    /// There was no room to write another nonce down: this one stays.
    package var keptNonce: [UInt8]?

    package init(
        access: Access,
        isRestored: Bool,
        hasProposedToken: Bool = false,
        keptNonce: [UInt8]? = nil
    ) {
        self.access = access
        self.isRestored = isRestored
        self.hasProposedToken = hasProposedToken
        self.keptNonce = keptNonce
    }
}

/// A container as one device may use it: which device, which container.
package struct Scope: Hashable, Sendable {
    package var token: TokenHash
    package var container: ContainerID

    package init(token: TokenHash, container: ContainerID) {
        self.token = token
        self.container = container
    }
}

package struct AccountInfo: Hashable, Sendable {
    package var name: String
    /// Bytes; `nil` without a limit.
    package var quota: Int64?
    /// Bytes of different chunks, before compression.
    package var used: Int64
    /// Devices that are not revoked.
    package var devices: Int
    package var containers: Int

    package init(name: String, quota: Int64?, used: Int64, devices: Int, containers: Int) {
        self.name = name
        self.quota = quota
        self.used = used
        self.devices = devices
        self.containers = containers
    }
}

package struct DeviceRecord: Hashable, Sendable {
    package var id: DeviceID
    package var name: String
    package var joined: Timestamp
    package var seen: Timestamp
    package var isRevoked: Bool
    /// The device that asked.
    package var isCurrent: Bool

    package init(
        id: DeviceID,
        name: String,
        joined: Timestamp,
        seen: Timestamp,
        isRevoked: Bool,
        isCurrent: Bool
    ) {
        self.id = id
        self.name = name
        self.joined = joined
        self.seen = seen
        self.isRevoked = isRevoked
        self.isCurrent = isCurrent
    }
}

package struct CatalogContainer: Hashable, Sendable {
    /// Its number in the catalogue, which is never used again.
    package var number: Int64
    package var info: ContainerInfo

    package init(number: Int64, info: ContainerInfo) {
        self.number = number
        self.info = info
    }
}
