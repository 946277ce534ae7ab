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
    /// Of a folder of which more is asked for.
    var restingWalk: RestingWalk?
    nonisolated let importStop = ImportStop()
    /// Mounting and unmounting happen one after the other.
    private let turnstile = Turnstile()
    /// So does writing the table down: each uses the same name beside it.
    private let tableTurnstile = Turnstile()
    /// Who waits for mounts that are on their way, by number (`awaitMounts`).
    private var mountWaiters: [UInt64: CheckedContinuation<Void, Never>] = [:]
    private var lastMountWaiter: UInt64 = 0
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
        // Mounts may have come, failed or gone.
        defer { resumeMountWaiters() }
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
        await tableTurnstile.enter()
        // As it is by now, with what was changed while another one was written.
        let (table, home) = (table, home)
        do throws(ControlError) {
            try await blocking { () throws(ControlError) in try table.save(home) }
            await tableTurnstile.leave()
        } catch {
            await tableTurnstile.leave()
            throw error
        }
    }

    // MARK: - Mounts on their way

    /// Returns when every mount of the table is there, or it is known why not: what is asked of all containers leaves none of them out that
    /// is just being mounted.
    /// - Parameter end: without it as long as for all that a program waits for; `nil` for as long as it takes.
    func awaitMounts(
        until end: ContinuousClock.Instant? = ContinuousClock.now + Patience.limit
    ) async throws(ControlError) {
        while let entry = table.entries.first(where: { isComing($0.container) }) {
            let point = "\(entry.mountPoint)"
            guard !isSignedOut else { throw ControlError(point, EngineError.signedOut) }
            guard !Task.isCancelled else { throw ControlError(.tryAgain, point, "interrupted") }
            if let end, ContinuousClock.now >= end {
                throw ControlError(.tryAgain, point, "it is just being mounted")
            }
            await mountsChange(until: end)
            guard table[entry.container] != nil else {
                throw ControlError(.tryAgain, point, "its mount was given up meanwhile")
            }
        }
    }

    private func isComing(_ container: String) -> Bool { mounted[container] == nil && failures[container] == nil }

    /// Returns when an operation has ended, at the time limit, or when the waiting task is cancelled.
    private func mountsChange(until end: ContinuousClock.Instant?) async {
        lastMountWaiter += 1
        let number = lastMountWaiter
        var timer: Task<Void, Never>?
        if let end {
            timer = Task {
                do { try await Task.sleep(until: end, clock: .continuous) } catch { return }
                self.resumeMountWaiter(number)
            }
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                if Task.isCancelled { continuation.resume() } else { mountWaiters[number] = continuation }
            }
        } onCancel: {
            Task { await self.resumeMountWaiter(number) }
        }
        timer?.cancel()
    }

    private func resumeMountWaiter(_ number: UInt64) { mountWaiters.removeValue(forKey: number)?.resume() }

    private func resumeMountWaiters() {
        let waiters = mountWaiters.values
        mountWaiters = [:]
        for waiter in waiters { waiter.resume() }
    }

    // MARK: - The end

    func stopSoon() {
        isStopping = true
        importStop.ask()
        for waiter in stopWaiters { waiter.resume() }
        stopWaiters = []
    }

    func waitUntilStopped() async {
        if isStopping { return }
        await withCheckedContinuation { stopWaiters.append($0) }
    }
}
