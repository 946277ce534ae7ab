import CloudClient
import DeviceService
import Logging
import UbiquityControl

/// The verbs that concern the account as a whole ask its server directly: they need no service.
enum AccountCloud {
    /// Runs `body` with a client of the account that this device is signed in to.
    /// - Parameter evenOffline: also over a network from which `ubiquity offline on` keeps all others. (A server of this device's own
    ///   is on this machine, and asked without one.)
    static func ask<Value>(
        _ what: String,
        evenOffline: Bool = false,
        _ body: (CloudClient, Account) async throws(CloudError) -> Value
    ) async throws(ControlError) -> Value {
        let home = try HomeDirectories.current()
        guard let account = try Account.load(home) else { throw .notSignedIn() }
        if !evenOffline, !account.serverIsEmbedded, try MountTable.load(home).isOffline { throw .offline(what) }
        do throws(CloudError) {
            let client = try CloudClient(credentials: account.credentials, logger: quietLogger())
            do throws(CloudError) {
                let value = try await body(client, account)
                await client.shutdown()
                return value
            } catch {
                await client.shutdown()
                throw error
            }
        } catch {
            throw ControlError(what, error)
        }
    }

    /// What goes wrong is the command's error; only what is asked for by `UBIQUITY_LOG_LEVEL` is logged besides.
    static func quietLogger() -> Logger {
        Logger(label: "ubiquity") { label in
            LineLogHandler(label: label, sink: .standardError, level: LineLogHandler.requestedLevel() ?? .critical)
        }
    }
}
