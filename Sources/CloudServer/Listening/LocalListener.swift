internal import CatalogModel
internal import Logging
internal import ServiceLifecycle
internal import Synchronization

/// The address that the server was told to listen on. An embedded server comes back on the port that it had, so that URLs stay.
struct LocalListener: Service {
    let listener: Listener
    let catalog: any Catalog
    let remembersPort: Bool
    let onReady: @Sendable (_ port: Int) async -> Void

    private static let portSetting = "loopback-port"

    func run() async throws {
        guard remembersPort, listener.address.port == 0 else { return try await listen(listener) }
        var failure: ServerError?
        for next in LastingPort.tries(remembered: try await rememberedPort()) {
            try await next.begin(listener.logger)
            let isReady = Atomic(false)
            do {
                return try await listen(listener.on(next.port)) { isReady.store(true, ordering: .relaxed) }
            } catch let error as ServerError {
                guard case .cannotListen = error, !isReady.load(ordering: .relaxed) else { throw error }
                failure = error
            }
        }
        if let failure { throw failure }
    }

    private func rememberedPort() async throws -> Int? {
        LastingPort.remembered(try await catalog.setting(Self.portSetting))
    }

    private func listen(_ listener: Listener, ready: @escaping @Sendable () -> Void = {}) async throws {
        try await listener.run { port in
            ready()
            if remembersPort {
                do { try await catalog.set(Self.portSetting, to: "\(port)") } catch {
                    listener.logger.warning("the port could not be remembered: \(error)")
                }
            }
            await onReady(port)
        }
    }
}

extension Listener {
    func on(_ port: Int) -> Listener {
        Listener(address: ListenAddress(host: address.host, port: port), tls: tls, responder: responder, logger: logger)
    }
}
