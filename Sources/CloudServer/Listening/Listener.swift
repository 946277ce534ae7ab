internal import Glibc
internal import Hummingbird
internal import HummingbirdCore
internal import HummingbirdTLS
internal import Logging
internal import NIOCore
internal import NIOSSL

/// One address that the server listens on, with or without TLS.
struct Listener: Sendable {
    let address: ListenAddress
    /// `nil`: plain.
    let tls: TLSConfiguration?
    let responder: RouterResponder<CloudRequestContext>
    let logger: Logger

    /// A connection on which nothing is asked, or goes on being asked, is closed: machines go without a word. Devices themselves close what
    /// they have not used for half as long.
    private static let idleTimeout = TimeAmount.seconds(120)

    /// Not all descriptors of the process: where none is left, the system ends the listener itself.
    private static let mostConnections: Int = {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 512 }
        return max(64, min(8192, Int(clamping: limit.rlim_cur) / 2))
    }()

    /// Serves until its task is cancelled or shut down. Throws when the address cannot be had.
    func run(onReady: @escaping @Sendable (_ port: Int) async -> Void) async throws {
        var builder = HTTPServerBuilder.http1(configuration: .init(idleTimeout: Self.idleTimeout))
        if let tls { builder = try .tls(builder, tlsConfiguration: tls) }
        var quiet = logger
        quiet.logLevel = max(logger.logLevel, .warning)
        let application = Application(
            responder: responder,
            server: builder,
            configuration: ApplicationConfiguration(
                address: .hostname(address.host, port: address.port),
                serverName: "ubiquity",
                backlog: 512,
                availableConnectionsDelegate: MaximumAvailableConnections(Self.mostConnections, logger: quiet)
            ),
            onServerRunning: { channel in await onReady(channel.localAddress?.port ?? address.port) },
            logger: quiet
        )
        do { try await application.run() } catch let error as IOError {
            throw ServerError.cannotListen("\(address.host):\(address.port)", reason: error.description)
        }
    }
}
