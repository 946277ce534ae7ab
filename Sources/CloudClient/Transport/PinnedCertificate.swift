internal import CloudProtocol
internal import Crypto
internal import FoundationEssentials
internal import NIOCore
internal import NIOPosix
internal import NIOSSL

/// Gets a server's self-signed certificate, to be trusted from then on, by the fingerprint that came with the invitation.
enum PinnedCertificate {
    private static let timeout = TimeAmount.seconds(5)

    /// - Returns: the certificate as PEM.
    /// - Throws: `.wrongServer` if the server shows another one.
    static func fetch(from endpoint: Endpoint, fingerprint: [UInt8]) async throws(CloudError) -> String {
        let certificate: [UInt8]
        do { certificate = try await shownCertificate(endpoint) } catch {
            throw CloudError(error, server: endpoint.name)
        }
        guard Array(SHA256.hash(data: certificate)) == fingerprint else {
            throw .wrongServer(
                "\(endpoint.name) is not the server that the invitation is for: its certificate is another"
            )
        }
        return pem(certificate)
    }

    /// The certificate that the server shows, as DER. That it also has the key is proven by every later connection.
    private static func shownCertificate(_ endpoint: Endpoint) async throws -> [UInt8] {
        let context = try NIOSSLContext(configuration: .makeClientConfiguration())
        // Addresses have no place in the handshake's server name.
        let isAddress = (try? SocketAddress(ipAddress: endpoint.host, port: 0)) != nil
        let group = MultiThreadedEventLoopGroup.singleton
        let shown = group.next().makePromise(of: [UInt8].self)
        do {
            let channel = try await ClientBootstrap(group: group).connectTimeout(timeout)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        let handler = try NIOSSLClientHandler(
                            context: context,
                            serverHostname: isAddress ? nil : endpoint.host,
                            customVerificationCallback: { certificates, verification in
                                shown.completeWith(Result { try certificates.first?.toDERBytes() ?? [] })
                                // Nothing is said on this connection: it has shown what it is for.
                                verification.succeed(.failed)
                            }
                        )
                        try channel.pipeline.syncOperations.addHandlers(handler, FailureReport(to: shown))
                    }
                }
                .connect(host: endpoint.host, port: endpoint.port).get()
            let limit = channel.eventLoop.scheduleTask(in: timeout) { shown.fail(ChannelError.connectTimeout(timeout)) }
            defer {
                limit.cancel()
                channel.close(promise: nil)
            }
            return try await shown.futureResult.get()
        } catch {
            // Every promise is completed, also where no connection came about.
            shown.fail(error)
            throw error
        }
    }

    private static func pem(_ der: [UInt8]) -> String {
        let text = Data(der).base64EncodedString()
        var lines = ["-----BEGIN CERTIFICATE-----"]
        var rest = text[...]
        while !rest.isEmpty {
            lines.append(String(rest.prefix(64)))
            rest = rest.dropFirst(64)
        }
        lines.append("-----END CERTIFICATE-----")
        return lines.joined(separator: "\n") + "\n"
    }
}

/// Completes a promise with what goes wrong on a connection before it was completed otherwise.
private final class FailureReport: ChannelInboundHandler, Sendable {
    typealias InboundIn = NIOAny

    private let promise: EventLoopPromise<[UInt8]>

    init(to promise: EventLoopPromise<[UInt8]>) { self.promise = promise }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        promise.fail(error)
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) { promise.fail(ChannelError.eof) }
}
