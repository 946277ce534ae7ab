internal import CLinux
internal import CloudClient
internal import Glibc
internal import Logging
internal import SyncEngine
internal import UbiquityControl
internal import UbiquityModel

/// Opens sessions for all containers of the device: they share its nonce, which every session renews.
final class AccountSession: Sendable {
    let cloud: CloudClient
    private let home: HomeDirectories
    private let logger: Logger
    private let turnstile = Turnstile()

    init(cloud: CloudClient, home: HomeDirectories, logger: Logger) {
        self.cloud = cloud
        self.home = home
        self.logger = logger
    }

    /// Whoever asked may go away meanwhile: an answer that is not stored would make this device look like a restored one.
    func open() async throws(CloudError) -> CloudSession {
        let task = Task { await self.openInTurn() }
        return try await task.value.get()
    }

    /// The containers that this device may use, written down as they are told.
    func listContainers() async throws(CloudError) -> [ContainerInfo] {
        let task = Task { await self.listInTurn() }
        return try await task.value.get()
    }

    /// What a container declares has changed. It counts even if it cannot be written down: the next session tells it again.
    func remember(_ packages: PackageDeclaration, of container: ContainerInfo) async {
        await turnstile.enter()
        do throws(CloudError) {
            try await change { account in account.note(packages, of: container) }
        } catch {
            logger.warning("what a container declares is not written down", metadata: ["why": "\(error)"])
        }
        await turnstile.leave()
    }

    /// Returns when no session is being opened, and so no account written. For when `cloud` was shut down.
    func settle() async {
        await turnstile.enter()
        await turnstile.leave()
    }

    private func openInTurn() async -> Result<CloudSession, CloudError> {
        await turnstile.enter()
        let result: Result<CloudSession, CloudError>
        do throws(CloudError) {
            try await cloud.prepareSession { (credentials) async throws(CloudError) in try await store(credentials) }
            let session = try await cloud.session(nonce: cloud.storedNonce, clock: .now())
            if session.isRestored {
                logger.notice("this device was restored or cloned: it is another device from now on")
            }
            try await store(cloud.credentials, session.containers)
            result = .success(session)
        } catch {
            result = .failure(error)
        }
        await turnstile.leave()
        return result
    }

    private func listInTurn() async -> Result<[ContainerInfo], CloudError> {
        await turnstile.enter()
        let result: Result<[ContainerInfo], CloudError>
        do throws(CloudError) {
            let containers = try await cloud.containers()
            try await change { account in
                account.containers = containers.map { ContainerRecord($0) }
                return true
            }
            result = .success(containers)
        } catch {
            result = .failure(error)
        }
        await turnstile.leave()
        return result
    }

    /// - Parameter containers: `nil` where they are as they were.
    private func store(_ credentials: Credentials, _ containers: [ContainerInfo]? = nil) async throws(CloudError) {
        try await change { account in
            account.credentials = credentials
            if let containers { account.containers = containers.map { ContainerRecord($0) } }
            return true
        }
        cloud.noteStored(credentials)
    }

    /// In turn: two that change the file at once would lose what one of them wrote, a nonce even.
    /// - Parameter body: whether there is anything to be written.
    private func change(_ body: @escaping @Sendable (inout Account) -> Bool) async throws(CloudError) {
        let stored = await BlockingThread.run("ubi-account") { [home] in
            Result { () throws(ControlError) in
                // Signed out meanwhile: nothing is written that would sign in again.
                guard var account = try Account.load(home), body(&account) else { return }
                try account.save(home)
                Self.keepReserve(home)
            }
        }
        if case .failure(let error) = stored { throw .offline("the account's file cannot be written: \(error.why)") }
    }

    private static let reserveBytes: Int64 = 1 << 20

    private static func keepReserve(_ home: HomeDirectories) {
        guard access(home.reserveFile, F_OK) != 0 else { return }
        _ = clinux_keep_room(home.reserveFile, reserveBytes)
    }
}
