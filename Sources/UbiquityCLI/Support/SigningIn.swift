import CloudClient
import CloudServer
import DeviceService
import UbiquityControl

/// Brings this device into an account, and remembers it.
enum SigningIn {
    /// Into the account of the embedded server, which is started and made on the first occasion. Call with the start lock held.
    static func embedded(_ startup: Startup) async throws(ControlError) {
        let home = startup.home
        let url = try EmbeddedServer.start(home)
        let code = try await ServerAccounts.embeddedInvitation(data: home.server)
        try await join(url: url, code: code, deviceName: nil, isEmbedded: true, startup)
    }

    /// By an invitation. Call with the start lock held.
    static func join(
        url: String,
        code: String,
        deviceName: String?,
        isEmbedded: Bool = false,
        _ startup: Startup,
        expecting name: String? = nil
    ) async throws(ControlError) {
        let home = startup.home
        do throws(CloudError) {
            let (credentials, containers) = try await CloudClient.join(
                url: url,
                code: code,
                deviceName: deviceName ?? DeviceName.make(home),
                logger: AccountCloud.quietLogger()
            )
            if let name, name != credentials.account {
                try await withdraw(credentials)
                throw CloudError.rejected(
                    code: "",
                    message: "the code belongs to the account \(credentials.account), not \(name)"
                )
            }
            let account = Account(credentials: credentials, containers: containers, serverIsEmbedded: isEmbedded)
            do throws(ControlError) {
                try endSignedOutService(startup)
                try account.save(home)
            } catch {
                try await withdraw(credentials)
                throw CloudError.rejected(code: "", message: "\(error)")
            }
        } catch {
            throw ControlError(isEmbedded ? "server" : "join", error)
        }
    }

    /// Without an account only a service runs that was signed out, and still has its mounts.
    private static func endSignedOutService(_ startup: Startup) throws(ControlError) {
        guard let client = try startup.connect() else { return }
        _ = try client.send(StopRequest(forgetsMounts: false, refusesWriters: false))
        client.waitForEnd()
    }

    /// A device that could not be kept is not left in the account's list.
    private static func withdraw(_ credentials: Credentials) async throws(CloudError) {
        let client = try CloudClient(credentials: credentials, logger: AccountCloud.quietLogger())
        try? await client.signOut()
        await client.shutdown()
    }
}
