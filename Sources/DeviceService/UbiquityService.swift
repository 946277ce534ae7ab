internal import CLinux
internal import CloudClient
internal import Driver
internal import Glibc
internal import Logging
internal import Replica
internal import SyncEngine
internal import UbiquityControl
internal import UbiquityModel

/// The process that joins the parts: one account, its containers' mounts and engines, the claims, the control socket.
///
/// What it has mounted is in `mounts.json`, and comes back at every start: nothing needs to be repaired after a crash but to start
/// it again.
package actor UbiquityService {
    nonisolated let home: HomeDirectories
    nonisolated let logger: Logger
    nonisolated let cloud: CloudClient
    nonisolated let session: AccountSession
    nonisolated let broker: ClaimBroker
    nonisolated let gate: MaterializationGate
    let serverIsEmbedded: Bool

    var table: MountTable
    var mounted: [String: MountedContainer] = [:]
    /// When nothing is fetched that nobody has asked for.
    var thrift: Thrift
    /// What the machine says of its link and its power.
    var conditions = MachineConditions()
    /// Why mounts of the table could not be brought back.
    var failures: [String: ControlError] = [:]
    /// Mounting and unmounting happen one after the other.
    private let turnstile = Turnstile()
    /// For good: the account is gone, and who signs in gets another service (`signOut`).
    var isSignedOut = false
    /// Ends the time in which the machine falls asleep (`machineTold`).
    var wakening: Task<Void, Never>?
    private var isStopping = false
    private var stopWaiters: [CheckedContinuation<Void, Never>] = []

    init(home: HomeDirectories, account: Account, logger: Logger) throws(ControlError) {
        self.home = home
        self.logger = logger
        do throws(CloudError) {
            cloud = try CloudClient(credentials: account.credentials, patience: Patience.limit, logger: logger)
        } catch { throw ControlError("account", error) }
        serverIsEmbedded = account.serverIsEmbedded
        session = AccountSession(cloud: cloud, home: home, logger: logger)
        let settings = Self.settings(home, logger)
        cloud.bandwidth.set(settings.bandwidth)
        thrift = settings.thrift
        broker = ClaimBroker(openLimit: settings.claimLimit, logger: logger)
        gate = MaterializationGate(Self.policy(home, logger), logger: logger)
        table = try MountTable.load(home)
        if table.signIn(try ContainerFolder.all(home, of: account)) { try table.save(home) }
    }

    /// A file that cannot be understood keeps nobody from his documents: `ubiquity policy` says what is wrong with it.
    private static func policy(_ home: HomeDirectories, _ logger: Logger) -> MaterializationPolicy {
        do throws(ControlError) { return try PolicyFile.load(home).policy } catch {
            logger.error("the policy is the default one", metadata: ["why": "\(error)"])
            return MaterializationPolicy()
        }
    }

    private static func settings(_ home: HomeDirectories, _ logger: Logger) -> Settings {
        do throws(ControlError) { return try SettingsFile.load(home).settings() } catch {
            logger.error("the settings are the default ones", metadata: ["why": "\(error)"])
            return Settings()
        }
    }

    // MARK: - Order

    /// Runs `body` when every earlier operation is done.
    func serially<Value: Sendable>(_ body: () async throws(ControlError) -> Value) async throws(ControlError) -> Value {
        await turnstile.enter()
        do throws(ControlError) {
            let value = try await body()
            await turnstile.leave()
            return value
        } catch {
            await turnstile.leave()
            throw error
        }
    }

    /// Runs what blocks on a thread of its own.
    nonisolated func blocking<Value: Sendable>(
        _ body: @escaping @Sendable () throws(ControlError) -> Value
    ) async throws(ControlError) -> Value {
        let result = await BlockingThread.run("ubi-service") { Result { () throws(ControlError) in try body() } }
        return try result.get()
    }

    func saveTable() async throws(ControlError) {
        let (table, home) = (table, home)
        try await blocking { () throws(ControlError) in try table.save(home) }
    }

    // MARK: - The end

    func stopSoon() {
        isStopping = true
        for waiter in stopWaiters { waiter.resume() }
        stopWaiters = []
    }

    func waitUntilStopped() async {
        if isStopping { return }
        await withCheckedContinuation { stopWaiters.append($0) }
    }
}
