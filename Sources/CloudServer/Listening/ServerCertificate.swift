internal import Crypto
internal import FoundationEssentials
internal import Glibc
internal import NIOSSL
internal import SwiftASN1
internal import X509

/// The server's own certificate: self-signed, made once, known to devices by its fingerprint, which travels in the invitation.
struct ServerCertificate: Sendable {
    /// DER.
    let certificate: [UInt8]
    /// PKCS #8.
    let key: [UInt8]

    /// SHA-256 of the certificate.
    var fingerprint: [UInt8] { Array(SHA256.hash(data: certificate)) }

    /// Reads the certificate of a data folder, or makes it. One file, so that certificate and key are there together or not at all.
    static func load(_ directory: DataDirectory) throws(ServerError) -> ServerCertificate {
        let path = "\(directory.path)/tls.pem"
        do {
            if let text = try read(path) { return try parse(text) }
            let made = try make()
            try write(made.pem, to: path)
            // Another process may have been faster: what lies in the folder is what counts.
            guard let text = try read(path) else { throw ServerError.certificate("\(path) has vanished") }
            return try parse(text)
        } catch let error as ServerError {
            throw error
        } catch {
            throw .certificate("\(error)")
        }
    }

    func tlsConfiguration() throws -> TLSConfiguration {
        let chain = [NIOSSLCertificateSource.certificate(try NIOSSLCertificate(bytes: certificate, format: .der))]
        let key = NIOSSLPrivateKeySource.privateKey(try NIOSSLPrivateKey(bytes: self.key, format: .der))
        var configuration = TLSConfiguration.makeServerConfiguration(certificateChain: chain, privateKey: key)
        configuration.minimumTLSVersion = .tlsv12
        configuration.applicationProtocols = ["http/1.1"]
        return configuration
    }

    private var pem: String {
        PEMDocument(type: "CERTIFICATE", derBytes: certificate).pemString + "\n"
            + PEMDocument(type: "PRIVATE KEY", derBytes: key).pemString + "\n"
    }

    private static func parse(_ text: String) throws -> ServerCertificate {
        let documents = try PEMDocument.parseMultiple(pemString: text)
        guard let certificate = documents.first(where: { $0.discriminator == "CERTIFICATE" }),
            let key = documents.first(where: { $0.discriminator == "PRIVATE KEY" })
        else { throw ServerError.certificate("tls.pem does not hold a certificate and its key") }
        return ServerCertificate(certificate: certificate.derBytes, key: key.derBytes)
    }

    private static func make() throws -> ServerCertificate {
        let key = P256.Signing.PrivateKey()
        let name = try DistinguishedName { CommonName("ubiquity") }
        let certificate = try Certificate(
            version: .v3,
            serialNumber: Certificate.SerialNumber(),
            publicKey: Certificate.PublicKey(key.publicKey),
            // Devices know it by itself: no clock, neither the server's nor theirs, has anything to say. The end is what RFC 5280 has for
            // certificates without one (9999-12-31T23:59:59Z).
            notValidBefore: Date(timeIntervalSince1970: 0),
            notValidAfter: Date(timeIntervalSince1970: 253_402_300_799),
            issuer: name,
            subject: name,
            signatureAlgorithm: .ecdsaWithSHA256,
            extensions: try Certificate.Extensions {
                Critical(BasicConstraints.isCertificateAuthority(maxPathLength: 0))
                Critical(KeyUsage(digitalSignature: true, keyCertSign: true))
                try ExtendedKeyUsage([.serverAuth])
                SubjectAlternativeNames([.dnsName("ubiquity")])
            },
            issuerPrivateKey: Certificate.PrivateKey(key)
        )
        var serializer = DER.Serializer()
        try serializer.serialize(certificate)
        let keyDocument = try PEMDocument(pemString: key.pemRepresentation)
        return ServerCertificate(certificate: serializer.serializedBytes, key: keyDocument.derBytes)
    }

    // MARK: The file

    private static func read(_ path: String) throws -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            let code = errno
            if code == ENOENT { return nil }
            throw ServerError.certificate("\(path): \(String(cString: strerror(code)))")
        }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 64 * 1024)
        let count = Glibc.read(descriptor, &bytes, bytes.count)
        guard count > 0 else { throw ServerError.certificate("\(path) cannot be read") }
        return String(decoding: bytes.prefix(count), as: UTF8.self)
    }

    /// Puts the file there, whole and durable, unless there is one already.
    private static func write(_ text: String, to path: String) throws {
        let staged = "\(path).\(getpid())"
        unlink(staged)
        let descriptor = open(staged, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            let code = errno
            throw ServerError.certificate("\(staged): \(String(cString: strerror(code)))")
        }
        defer { unlink(staged) }
        let bytes = Array(text.utf8)
        let isWritten = Glibc.write(descriptor, bytes, bytes.count) == bytes.count && fsync(descriptor) == 0
        guard close(descriptor) == 0, isWritten else { throw ServerError.certificate("\(staged) cannot be written") }
        if link(staged, path) != 0 {
            let code = errno
            guard code == EEXIST else { throw ServerError.certificate("\(path): \(String(cString: strerror(code)))") }
        }
        // Devices will know the server by it: a loss of power must not have another one made.
        let above = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
        let folder = open(above, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else { throw ServerError.certificate("\(above): \(String(cString: strerror(errno)))") }
        defer { close(folder) }
        guard fsync(folder) == 0 else { throw ServerError.certificate("\(path) cannot be made durable") }
    }
}
