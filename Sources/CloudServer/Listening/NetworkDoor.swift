internal import CatalogModel
internal import Logging
internal import ServiceLifecycle
internal import Synchronization

/// An embedded server's way to the network: closed until the first invitation asks for it, then a TLS listener on every address,
/// and again after each start.
final class NetworkDoor: Service {
    private typealias Waiting = CheckedContinuation<Result<Int, ServerError>, Never>

    private static let portSetting = "network-port"

    private let catalog: any Catalog
    private let logger: Logger
    /// Made when the door opens: it needs the certificate.
    private let makeListener: @Sendable (_ port: Int) throws -> Listener
    private let requests: AsyncStream<Waiting>
    private let asking: AsyncStream<Waiting>.Continuation
    /// The port while the door is open. Guarded for reading it from any request; written by `run` only.
    private let openPort = Mutex<Int?>(nil)

    init(catalog: any Catalog, logger: Logger, makeListener: @escaping @Sendable (_ port: Int) throws -> Listener) {
        self.catalog = catalog
        self.logger = logger
        self.makeListener = makeListener
        (requests, asking) = AsyncStream<Waiting>.makeStream()
    }

    /// `nil` while it is closed.
    var port: Int? { openPort.withLock { $0 } }

    /// Opens the door, if it is not open yet, and remembers that. Returns the port.
    func open() async throws(ServerError) -> Int {
        if let port { return port }
        return try await withCheckedContinuation { (waiting: Waiting) in
            if case .terminated = asking.yield(waiting) { waiting.resume(returning: .failure(Self.stopping)) }
        }.get()
    }

    private static let stopping = ServerError.failed("the server is stopping")

    func run() async throws {
        await withTaskGroup(of: Void.self) { group in
            if let remembered = await rememberedPort() {
                if case .failure(let error) = await start(remembered, in: &group) { logger.error("\(error)") }
            }
            for await waiting in requests.cancelOnGracefulShutdown() {
                if let port {
                    waiting.resume(returning: .success(port))
                } else {
                    let remembered = await rememberedPort()
                    waiting.resume(returning: await start(remembered, in: &group))
                }
            }
            asking.finish()
            for await waiting in requests { waiting.resume(returning: .failure(Self.stopping)) }
        }
    }

    private func rememberedPort() async -> Int? {
        do { return LastingPort.remembered(try await catalog.setting(Self.portSetting)) } catch {
            logger.warning("the network's port is not known: \(error)")
            return nil
        }
    }

    private func start(_ remembered: Int?, in group: inout TaskGroup<Void>) async -> Result<Int, ServerError> {
        var result = Result<Int, ServerError>.failure(Self.stopping)
        for next in LastingPort.tries(remembered: remembered) {
            do { try await next.begin(logger) } catch { return .failure(Self.stopping) }
            result = await listen(on: next.port, in: &group)
            guard case .failure(.cannotListen) = result else { break }
        }
        guard case .success(let port) = result else { return result }
        do { try await catalog.set(Self.portSetting, to: "\(port)") } catch { return .failure(.catalog(error)) }
        return result
    }

    private func listen(on port: Int, in group: inout TaskGroup<Void>) async -> Result<Int, ServerError> {
        let (answers, answer) = AsyncStream<Result<Int, ServerError>>.makeStream()
        group.addTask {
            do {
                try await self.makeListener(port).run { port in
                    self.openPort.withLock { $0 = port }
                    answer.yield(.success(port))
                }
                answer.yield(.failure(Self.stopping))
            } catch {
                answer.yield(.failure(error as? ServerError ?? .failed("\(error)")))
                if self.port != nil { self.logger.error("the way to the network has closed: \(error)") }
            }
            self.openPort.withLock { $0 = nil }
            answer.finish()
        }
        for await result in answers { return result }
        return .failure(Self.stopping)
    }
}
