import CloudClient
import DeviceService
import Logging
import UbiquityControl

/// The verbs that concern the account as a whole ask its server directly: they need no service.
enum AccountCloud {
    /// Runs `body` with a client of the account that this device is signed in to.
    static func ask<Value>(
        _ what: String,
        _ body: (CloudClient, Account) async throws(CloudError) -> Value
    ) async throws(ControlError) -> Value {
        guard let account = try Account.load(try HomeDirectories.current()) else { throw .notSignedIn() }
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
