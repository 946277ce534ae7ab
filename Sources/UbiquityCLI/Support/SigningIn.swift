import CloudClient
import CloudServer
import DeviceService
import UbiquityControl

/// Brings this device into an account, and remembers it.
enum SigningIn {
    /// Into the account of the embedded server, which is started and made on the first occasion. Call with the start lock held.
    static func embedded(_ home: HomeDirectories) async throws(ControlError) {
        let url = try EmbeddedServer.start(home)
        let code = try await ServerAccounts.embeddedInvitation(data: home.server)
        try await join(url: url, code: code, deviceName: nil, isEmbedded: true, home)
    }

    /// By an invitation.
    static func join(
        url: String,
        code: String,
        deviceName: String?,
        isEmbedded: Bool = false,
        _ home: HomeDirectories,
        expecting name: String? = nil
    ) async throws(ControlError) {
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
            do throws(ControlError) { try account.save(home) } catch {
                try await withdraw(credentials)
                throw CloudError.rejected(code: "", message: "\(error)")
            }
        } catch {
            throw ControlError(isEmbedded ? "server" : "join", error)
        }
    }

    /// A device that could not be kept is not left in the account's list.
    private static func withdraw(_ credentials: Credentials) async throws(CloudError) {
        let client = try CloudClient(credentials: credentials, logger: AccountCloud.quietLogger())
        try? await client.signOut()
        await client.shutdown()
    }
}
