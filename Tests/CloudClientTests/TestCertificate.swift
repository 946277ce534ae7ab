import Crypto
import FoundationEssentials
import NIOSSL
import SwiftASN1
import X509

/// A self-signed certificate as a server makes one for itself.
struct TestCertificate: Sendable {
    let der: [UInt8]
    private let key: String

    var fingerprint: [UInt8] { Array(SHA256.hash(data: der)) }

    init() throws {
        let privateKey = P256.Signing.PrivateKey()
        let name = try DistinguishedName { CommonName("ubiquity") }
        let certificate = try Certificate(
            version: .v3,
            serialNumber: Certificate.SerialNumber(),
            publicKey: Certificate.PublicKey(privateKey.publicKey),
            notValidBefore: Date(timeIntervalSinceNow: -3600),
            notValidAfter: Date(timeIntervalSinceNow: 3600),
            issuer: name,
            subject: name,
            signatureAlgorithm: .ecdsaWithSHA256,
            extensions: Certificate.Extensions {
                Critical(BasicConstraints.isCertificateAuthority(maxPathLength: nil))
            },
            issuerPrivateKey: Certificate.PrivateKey(privateKey)
        )
        var serializer = DER.Serializer()
        try serializer.serialize(certificate)
        der = serializer.serializedBytes
        key = privateKey.pemRepresentation
    }

    func serverContext() throws -> NIOSSLContext {
        try NIOSSLContext(
            configuration: .makeServerConfiguration(
                certificateChain: [.certificate(try NIOSSLCertificate(bytes: der, format: .der))],
                privateKey: .privateKey(try NIOSSLPrivateKey(bytes: Array(key.utf8), format: .pem))
            )
        )
    }
}
