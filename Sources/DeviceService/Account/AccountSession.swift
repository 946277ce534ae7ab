internal import CloudClient
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
            let session = try await cloud.session(nonce: cloud.credentials.nonce, clock: .now())
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

    /// - Parameter containers: `nil` where they are as they were.
    private func store(_ credentials: Credentials, _ containers: [ContainerInfo]? = nil) async throws(CloudError) {
        let stored = await BlockingThread.run("ubi-account") { [home] in
            Result { () throws(ControlError) in
                // Signed out meanwhile: nothing is written that would sign in again.
                guard var account = try Account.load(home) else { return }
                account.credentials = credentials
                if let containers { account.containers = containers.map { ContainerRecord($0) } }
                try account.save(home)
            }
        }
        if case .failure(let error) = stored { throw .offline("the account's file cannot be written: \(error.why)") }
    }
}
