internal import CatalogModel
internal import CatalogStore
internal import ChunkStore
internal import CloudProtocol
internal import Hummingbird
internal import Logging
internal import ServiceLifecycle
internal import UnixSignals

/// The cloud in one process: catalogue, chunks and change feed behind HTTP.
///
/// 1. `init` opens the data folder. A data folder has one server.
/// 2. `run` listens and serves. Loopback is plain unless the server is embedded, every other address has TLS with the server's own
///    certificate.
/// 3. A signal or a cancelled task ends it: feeds are ended, requests under way are answered, files are closed.
///
/// It may be killed at any moment: what was answered is on the disk.
package final class UbiquityServer: Sendable {
    private let configuration: ServerConfiguration
    private let directory: DataDirectory
    private let catalog: SQLiteCatalog
    private let chunks: FolderChunkStore
    private let hub: FeedHub

    /// It blocks for as long as opening takes: call it before anything else runs, or off the cooperative pool.
    package init(configuration: ServerConfiguration) throws(ServerError) {
        self.configuration = configuration
        directory = try DataDirectory(configuration.dataDirectory)
        // First the chunks: their lock tells when another server is at work here.
        chunks = try directory.openChunks(
            url: configuration.chunksURL,
            packBytes: configuration.packBytes,
            now: configuration.now()
        )
        catalog = try directory.openCatalog(url: configuration.catalogURL) { [chunks] in
            chunks.hasRecord(in: $0, endingAt: $1)
        }
        hub = FeedHub(signOfLife: configuration.signOfLife ?? CloudLimits.signOfLife)
    }

    /// Serves until a signal (SIGTERM, SIGINT) comes or the task is cancelled.
    /// - Parameter handlesSignals: Not when several servers live in one process.
    /// - Parameter onReady: Called once with the URL, when the server can be reached.
    package func run(
        handlesSignals: Bool = true,
        onReady: @escaping @Sendable (_ url: String) async -> Void = { _ in }
    ) async throws(ServerError) {
        let outcome: Result<Void, any Error>
        do { outcome = .success(try await serve(handlesSignals: handlesSignals, onReady: onReady)) } catch {
            outcome = .failure(error)
        }
        hub.close()
        await chunks.close()
        do throws(CatalogError) { try catalog.close() } catch {
            configuration.logger.warning("the catalogue could not be closed: \(error)")
        }
        switch outcome {
        case .success: return
        case .failure(let error as ServerError): throw error
        case .failure(let error as CatalogError): throw .catalog(error)
        case .failure(is CancellationError): return
        case .failure(let error): throw .failed("\(error)")
        }
    }

    private func serve(handlesSignals: Bool, onReady: @escaping @Sendable (_ url: String) async -> Void) async throws {
        if configuration.isEmbedded, try await catalog.accounts().isEmpty {
            try await catalog.addAccount(ServerAdministration.embeddedAccount, quota: nil, now: configuration.now())
        }
        let logger = configuration.logger
        let services = try makeServices(onReady: onReady)
        var group = ServiceGroupConfiguration(
            services: services,
            gracefulShutdownSignals: handlesSignals ? [.sigterm, .sigint] : [],
            logger: logger
        )
        // A transfer that takes longer is cut off: it resumes.
        group.maximumGracefulShutdownDuration = .seconds(5)
        var quiet = logger
        quiet.logLevel = max(logger.logLevel, .warning)
        group.logger = quiet
        try await ServiceGroup(configuration: group).run()
    }

    /// In the order in which they start; they are stopped from the last to the first.
    private func makeServices(onReady: @escaping @Sendable (_ url: String) async -> Void) throws -> [any Service] {
        // Also on loopback, where an embedded server has its devices' tokens sent to a port that they remember: while it does not
        // run, any user of this machine may listen there.
        let usesTLS = configuration.isEmbedded || !configuration.listen.isLoopback
        let logger = configuration.logger
        let directory = directory
        // The door needs the router, whose routes need the door: it gets its router when it is asked to open.
        let responders = LateValue<RouterResponder<CloudRequestContext>>()
        let door =
            configuration.isEmbedded && configuration.listen.isLoopback
            ? NetworkDoor(catalog: catalog, logger: logger) { port in
                Listener(
                    address: ListenAddress(host: "0.0.0.0", port: port),
                    tls: try ServerCertificate.load(directory).tlsConfiguration(),
                    responder: try responders.value(),
                    logger: logger
                )
            } : nil
        let network = ServerNetwork(listen: configuration.listen, usesTLS: usesTLS, door: door) {
            try ServerCertificate.load(directory).fingerprint
        }
        let service = CloudService(
            catalog: catalog,
            chunks: chunks,
            hub: hub,
            network: network,
            now: configuration.now,
            logger: logger
        )
        let responder = service.makeRouter().buildResponder()
        responders.set(responder)
        let listener = LocalListener(
            listener: Listener(
                address: configuration.listen,
                tls: usesTLS ? try ServerCertificate.load(directory).tlsConfiguration() : nil,
                responder: responder,
                logger: logger
            ),
            catalog: catalog,
            remembersPort: configuration.isEmbedded
        ) { [catalog] port in
            network.listening(on: port)
            do { try await catalog.set(ServerAdministration.urlSetting, to: network.url) } catch {
                logger.warning("the server's URL could not be remembered: \(error)")
            }
            await onReady(network.url)
        }
        let housekeeping = Housekeeping(catalog: catalog, chunks: chunks, now: configuration.now, logger: logger)
        return [listener, housekeeping] + (door.map { [$0] } ?? []) + [FeedCloser(hub: hub)]
    }
}

/// Ends the feeds first when the server stops: their connections would never end by themselves.
private struct FeedCloser: Service {
    let hub: FeedHub

    func run() async throws {
        defer { hub.close() }
        try await gracefulShutdown()
    }
}
