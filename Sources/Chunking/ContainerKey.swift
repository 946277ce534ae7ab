internal import Crypto

/// A container's secret, 32 bytes: without it nobody can tell from a chunk's or a content's name what it names.
package struct ContainerKey: Sendable, Hashable {
    package let bytes: [UInt8]

    /// `nil` if there are not exactly 32 bytes.
    package init?(bytes: [UInt8]) {
        guard bytes.count == 32 else { return nil }
        self.bytes = bytes
    }

    /// An HMAC that has taken in the key already, to be copied for each name.
    var authentication: HMAC<SHA256> { HMAC<SHA256>(key: SymmetricKey(data: bytes)) }
}

extension ContainerKey: CustomStringConvertible {
    /// Keeps the key out of logs.
    package var description: String { "ContainerKey" }
}
