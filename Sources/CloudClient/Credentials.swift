package import UbiquityModel

/// What a device must keep to be itself. The token and the nonce are secrets: files with them are 0600.
package struct Credentials: Hashable, Sendable {
    /// Without a slash at its end.
    package var url: String
    /// PEM: the one certificate that this server has; `nil` without TLS, or where the system's trusted roots decide.
    package var certificate: String?
    /// SHA-256 of that certificate (DER).
    package var fingerprint: [UInt8]?
    package var account: String
    package var device: DeviceID
    package var deviceName: String
    package var token: [UInt8]
    /// Presented, and renewed, with every session.
    package var nonce: [UInt8]
    /// Of the identity that this device gets if it turns out to be restored or cloned: written down before it asks, and the same until an
    /// answer comes, so that a lost answer does not make two identities of it.
    package var proposedToken: [UInt8]?

    package init(
        url: String,
        certificate: String?,
        fingerprint: [UInt8]?,
        account: String,
        device: DeviceID,
        deviceName: String,
        token: [UInt8],
        nonce: [UInt8],
        proposedToken: [UInt8]? = nil
    ) {
        self.url = url
        self.certificate = certificate
        self.fingerprint = fingerprint
        self.account = account
        self.device = device
        self.deviceName = deviceName
        self.token = token
        self.nonce = nonce
        self.proposedToken = proposedToken
    }
}

extension Credentials: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Keeps the secrets out of logs.
    package var description: String { "\(account) on \(url) as \(deviceName)" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}

extension Credentials: Codable {
    private enum CodingKeys: String, CodingKey {
        case version, url, certificate, fingerprint, account, device, token, nonce
        case deviceName = "device-name"
        case proposedToken = "proposed-token"
    }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        let version = try container.decode(UInt32.self, forKey: .version)
        guard version <= FormatVersion.configuration else {
            throw DecodingError.dataCorruptedError(
                forKey: .version,
                in: container,
                debugDescription: "written by a newer version of ubiquity (format \(version))"
            )
        }
        func bytes(_ key: CodingKeys) throws -> [UInt8] {
            guard let bytes = Hexadecimal.decode(try container.decode(String.self, forKey: key)) else {
                throw DecodingError.dataCorruptedError(forKey: key, in: container, debugDescription: "not hexadecimal")
            }
            return bytes
        }
        guard let device = DeviceID(bytes: try bytes(.device)) else {
            throw DecodingError.dataCorruptedError(forKey: .device, in: container, debugDescription: "no device's id")
        }
        self.init(
            url: try container.decode(String.self, forKey: .url),
            certificate: try container.decodeIfPresent(String.self, forKey: .certificate),
            fingerprint: container.contains(.fingerprint) ? try bytes(.fingerprint) : nil,
            account: try container.decode(String.self, forKey: .account),
            device: device,
            deviceName: try container.decode(String.self, forKey: .deviceName),
            token: try bytes(.token),
            nonce: try bytes(.nonce),
            proposedToken: container.contains(.proposedToken) ? try bytes(.proposedToken) : nil
        )
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(FormatVersion.configuration, forKey: .version)
        try container.encode(url, forKey: .url)
        try container.encodeIfPresent(certificate, forKey: .certificate)
        try container.encodeIfPresent(fingerprint.map { Hexadecimal.encode($0) }, forKey: .fingerprint)
        try container.encode(account, forKey: .account)
        try container.encode(device.description, forKey: .device)
        try container.encode(deviceName, forKey: .deviceName)
        try container.encode(Hexadecimal.encode(token), forKey: .token)
        try container.encode(Hexadecimal.encode(nonce), forKey: .nonce)
        try container.encodeIfPresent(proposedToken.map { Hexadecimal.encode($0) }, forKey: .proposedToken)
    }
}
