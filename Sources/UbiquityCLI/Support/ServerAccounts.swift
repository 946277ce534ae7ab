import CatalogModel
import CloudServer
import Logging
import UbiquityControl

/// A server's own data, as the command line reaches it, and the server itself.
enum ServerAccounts {
    static func add(_ name: String, quota: Int64?, data: String) async throws(ControlError) -> ServerInvitation {
        try await administer(data, name) { (server) async throws(ServerError) in
            try await server.addAccount(name: name, quota: quota)
        }
    }

    /// Where no server has its data there are no accounts, and asking makes none.
    static func list(data: String) async throws(ControlError) -> [AccountInfo] {
        do throws(ServerError) {
            guard let server = try ServerAdministration(existing: data) else { return [] }
            return try await server.accounts()
        } catch {
            throw ControlError("account", error.description)
        }
    }

    static func remove(_ name: String, data: String) async throws(ControlError) {
        do throws(ServerError) {
            guard let server = try ServerAdministration(existing: data) else {
                throw ServerError.catalog(.noSuchAccount(name))
            }
            try await server.removeAccount(name: name)
        } catch {
            throw ControlError(name, error.description)
        }
    }

    /// A code for this machine's own device.
    static func embeddedInvitation(data: String) async throws(ControlError) -> String {
        try await administer(data, "server") { (server) async throws(ServerError) in
            try await server.makeInvitation(account: ServerAdministration.embeddedAccount).code
        }
    }

    static func serve(
        _ configuration: ServerConfiguration,
        ready: @escaping @Sendable (String) -> Void
    ) async throws(ControlError) {
        do throws(ServerError) {
            try await UbiquityServer(configuration: configuration).run { ready($0) }
        } catch {
            throw ControlError("server", error.description)
        }
    }

    private static func administer<Value>(
        _ data: String,
        _ what: String,
        _ body: (ServerAdministration) async throws(ServerError) -> Value
    ) async throws(ControlError) -> Value {
        do throws(ServerError) { return try await body(ServerAdministration(dataDirectory: data)) } catch {
            throw ControlError(what, error.description)
        }
    }
}
