internal import AsyncHTTPClient
internal import CloudProtocol
internal import Glibc
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import NIOSSL
internal import UbiquityModel

// The boundary where the errors of the libraries end.

extension CloudError {
    /// - Parameter server: for people, `host:port`.
    init(_ error: any Error, server: String) {
        switch error {
        case let error as CloudError: self = error
        case let error as WireError: self = .malformed(error.description)
        case is CancellationError: self = .cancelled
        case let error as HTTPClientError: self.init(client: error, server: server)
        case let error as NIOSSLError: self.init(tls: error, server: server)
        case let error as NIOSSLExtraError: self = .wrongServer("\(server) is not the server it should be: \(error)")
        case let error as NIOConnectionError: self = .offline("\(server) is not reached: \(Self.reason(error))")
        case let error as IOError: self = .offline("\(server) is not reached: \(Self.reason(error))")
        case let error as ChannelError: self.init(channel: error, server: server)
        // The connection ended within an answer.
        case HTTPParserError.invalidEOFState: self = .offline("\(server) closed the connection")
        case let error as HTTPParserError: self = .wrongServer("\(server) does not speak HTTP: \(error)")
        case let error as NIOTooManyBytesError:
            self = .malformed("more than \(error.maxBytes.map(String.init) ?? "the allowed number of") bytes")
        default: self = .offline("\(server) is not reached: \(error)")
        }
    }

    private init(client error: HTTPClientError, server: String) {
        switch error {
        case .cancelled, .requestStreamCancelled, .alreadyShutdown:
            self = .cancelled
        case .connectTimeout, .tlsHandshakeTimeout, .getConnectionFromPoolTimeout:
            self = .offline("\(server) is not reached: no connection in time")
        case .readTimeout, .writeTimeout, .deadlineExceeded:
            self = .stalled("\(server) stopped answering")
        case .remoteConnectionClosed, .uncleanShutdown:
            self = .offline("\(server) closed the connection")
        case .invalidURL, .emptyHost, .emptyScheme:
            self = .notFound("\(server) is no address of a server")
        default:
            self = .offline("\(server) is not reached: \(error)")
        }
    }

    private init(tls error: NIOSSLError, server: String) {
        switch error {
        case .handshakeFailed(.sslError(let reasons)):
            self = .wrongServer("\(server) is not the server it should be: \(reasons)")
        case .unableToValidateCertificate, .noCertificateToValidate:
            self = .wrongServer("\(server) is not the server it should be: its certificate is not the known one")
        case .failedToLoadCertificate:
            self = .wrongServer("the certificate that is stored for \(server) cannot be read")
        case .handshakeFailed, .writeDuringTLSShutdown, .unableToAllocateBoringSSLObject, .noSuchFilesystemObject,
            .failedToLoadPrivateKey, .shutdownFailed, .cannotMatchULabel, .cannotFindPeerIP, .readInInvalidTLSState,
            .uncleanShutdown:
            self = .offline("\(server) closed the connection: \(error)")
        }
    }

    private init(channel error: ChannelError, server: String) {
        switch error {
        case .connectTimeout: self = .offline("\(server) is not reached: no connection in time")
        case .eof, .ioOnClosedChannel, .alreadyClosed, .inputClosed, .outputClosed:
            self = .offline("\(server) closed the connection")
        default: self = .offline("\(server) is not reached: \(error)")
        }
    }

    private static func reason(_ error: IOError) -> String {
        switch error.errnoCode {
        case ECONNREFUSED: "connection refused"
        case ECONNRESET, EPIPE: "connection reset"
        case ETIMEDOUT: "no answer"
        case EHOSTUNREACH, ENETUNREACH, ENETDOWN, EHOSTDOWN: "no way to it"
        default: "\(error)"
        }
    }

    private static func reason(_ error: NIOConnectionError) -> String {
        if let first = error.connectionErrors.first?.error {
            if let failure = first as? IOError { return reason(failure) }
            return "\(first)"
        }
        if let failure = error.dnsAError ?? error.dnsAAAAError { return "\(error.host) is not found (\(failure))" }
        return "\(error)"
    }

    /// The server's answer is a failure.
    /// - Parameter failure: its body; `nil` if that is none of ours, as a proxy's.
    init(status: Int, failure: WireFailure?, server: String) {
        guard let failure else {
            self.init(foreign: status, server: server)
            return
        }
        guard let code = FailureCode(rawValue: failure.code) else {
            self.init(status: status, message: failure.message, code: failure.code, server: server)
            return
        }
        let message = failure.message.isEmpty ? "the server answered \(code.rawValue)" : failure.message
        switch code {
        case .revoked: self = .revoked
        case .unauthorized: self = .unauthorized(message)
        case .noSuchContainer, .notFound: self = .notFound(message)
        case .quota: self = .quotaExceeded
        case .noSpace: self = .serverFull(message)
        case .tooNew: self = .tooNew(message)
        case .internalError: self = .offline("the server has trouble: \(message)")
        case .badRequest, .wrongCode, .usedCode, .expiredCode, .containerExists, .readOnly, .notEmbedded, .tooLarge,
            .unknownBase:
            self = .rejected(code: code.rawValue, message: message)
        }
    }

    /// A failure that says nothing in our words.
    private init(foreign status: Int, server: String) {
        switch status {
        // Our server says it in its own words. What wants a sign-in without them is on the way, and may be gone the next time.
        case 401, 407: self = .wrongServer("\(server) answered with status \(status): something else answers there")
        default: self.init(status: status, message: nil, code: nil, server: server)
        }
    }

    /// A failure without a code that we know.
    private init(status: Int, message: String?, code: String?, server: String) {
        let message = message.flatMap { $0.isEmpty ? nil : $0 } ?? "\(server) answered with status \(status)"
        switch status {
        case 401: self = .unauthorized(message)
        case 404: self = .notFound(message)
        case 408, 429, 500...: self = status == 507 ? .serverFull(message) : .offline(message)
        default: self = .rejected(code: code ?? "\(status)", message: message)
        }
    }
}

/// Whether a kept connection turned out to be dead when it was used: the server was restarted, or closed it as idle.
func wasStaleConnection(_ error: any Error) -> Bool {
    switch error {
    case let error as HTTPClientError: error == .remoteConnectionClosed
    case let error as IOError: error.errnoCode == ECONNRESET || error.errnoCode == EPIPE
    case let error as NIOSSLError: if case .uncleanShutdown = error { true } else { false }
    default: false
    }
}
