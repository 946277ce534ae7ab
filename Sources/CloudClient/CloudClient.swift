internal import CloudProtocol
internal import FoundationEssentials
package import Logging
internal import Synchronization
package import UbiquityModel

/// The cloud over HTTP.
///
/// 1. `join` makes credentials out of an invitation; they are kept by the caller.
/// 2. A client is made of credentials. It connects when it is first asked something.
/// 3. `session` comes first, and again whenever the connection was lost; it may change the credentials, which the caller then
///    stores.
/// 4. `shutdown` ends what is under way.
package final class CloudClient: Cloud {
    let transport: Transport
    /// How much of the link it takes: all of it, unless somebody sets less.
    package let bandwidth = BandwidthLimiter()
    let logger: Logger
    /// Guards the credentials: `session` replaces them, every request reads the token. Held for that only.
    private let state: Mutex<Credentials>
    /// Whether the server takes manifests as differences, as it said in the last session; older ones do not.
    private let differences = Mutex(false)
    /// The nonce that has been written down: a later one may be lost with the process.
    private let stored: Mutex<[UInt8]>

    package convenience init(credentials: Credentials, logger: Logger) throws(CloudError) {
        try self.init(credentials: credentials, limits: Transport.TimeLimits(), logger: logger)
    }

    /// - Parameter patience: how long a request may make no progress.
    package convenience init(credentials: Credentials, patience: Duration, logger: Logger) throws(CloudError) {
        try self.init(credentials: credentials, limits: Transport.TimeLimits(patience: patience), logger: logger)
    }

    /// With other time limits, for tests.
    init(credentials: Credentials, limits: Transport.TimeLimits, logger: Logger) throws(CloudError) {
        transport = try Transport(
            endpoint: try Endpoint(parsing: credentials.url),
            certificate: credentials.certificate,
            limits: limits,
            bandwidth: bandwidth,
            logger: logger
        )
        self.logger = logger
        state = Mutex(credentials)
        stored = Mutex(credentials.nonce)
    }

    /// As of the last session.
    package var credentials: Credentials { state.withLock { $0 } }

    /// What the next session presents, and commits vouch for.
    package var storedNonce: [UInt8] { stored.withLock { $0 } }

    /// These have been written down.
    package func noteStored(_ credentials: Credentials) { stored.withLock { $0 = credentials.nonce } }

    var takesDifferences: Bool { differences.withLock { $0 } }

    /// Ends all requests with `.cancelled` and closes the connections.
    package func shutdown() async { await transport.shutdown() }

    /// Whether a server answers there at all.
    package func health() async throws(CloudError) {
        _ = try await transport.send(CloudRequest(path: CloudRoute.health), token: nil)
    }

    /// Before `session`: makes a token to propose, unless there is one that no answer has come for.
    /// - Parameter store: writes the credentials down. If it throws, nothing is proposed.
    package func prepareSession(
        _ store: (Credentials) async throws(CloudError) -> Void
    ) async throws(CloudError) {
        var prepared = credentials
        guard prepared.proposedToken == nil else { return }
        let proposed = RandomBytes.make(CloudLimits.tokenBytes)
        prepared.proposedToken = proposed
        try await store(prepared)
        state.withLock { $0.proposedToken = proposed }
    }

    package func session(nonce: [UInt8], clock: Timestamp) async throws(CloudError) -> CloudSession {
        var message = WireSessionRequest()
        message.format = FormatVersion.cloudProtocol
        message.nonce = .init(nonce)
        message.deviceClock = clock.nanoseconds
        if let proposed = credentials.proposedToken { message.proposedToken = .init(proposed) }
        var request = try CloudRequest.post(CloudRoute.session, message)
        // It replaces the nonce: whether to ask once more is for the caller to decide.
        request.isRepeatable = false
        let answer = try await send(request, WireSessionResponse.self)
        guard !answer.nonce.isEmpty else { throw .malformed("a session without a nonce") }
        differences.withLock { $0 = answer.manifestDifferences }
        let session = state.withLock { credentials in
            credentials.nonce = [UInt8](answer.nonce)
            credentials.proposedToken = nil
            if !answer.account.isEmpty { credentials.account = answer.account }
            if !answer.deviceName.isEmpty { credentials.deviceName = answer.deviceName }
            if answer.restored, let device = DeviceID(bytes: answer.device), !answer.token.isEmpty {
                credentials.device = device
                credentials.token = [UInt8](answer.token)
            }
            return CloudSession(
                nonce: credentials.nonce,
                isRestored: answer.restored,
                device: credentials.device,
                serverClock: Timestamp(nanoseconds: answer.serverClock),
                containers: [],
                account: credentials.account,
                deviceName: credentials.deviceName
            )
        }
        return usable(answer.containers, in: session)
    }

    private func usable(_ containers: [WireContainerInfo], in session: CloudSession) -> CloudSession {
        var session = session
        session.containers = usable(containers)
        return session
    }

    /// Containers that a newer version has made in a way that this one does not know are left out, and said so.
    func usable(_ containers: [WireContainerInfo]) -> [ContainerInfo] {
        containers.compactMap { wire in
            do throws(WireError) { return try ContainerInfo(wire: wire) } catch {
                logger.warning("the container \"\(wire.id)\" cannot be used: \(error)")
                return nil
            }
        }
    }
}
