package import CatalogModel
internal import CatalogStore
internal import CloudProtocol
package import UbiquityModel

/// Accounts of a server's data folder, also while a server runs on it.
package struct ServerAdministration: Sendable {
    /// The account of an embedded server.
    package static let embeddedAccount = "me"
    static let invitationSeconds: Int64 = 15 * 60
    static let urlSetting = "url"

    private let directory: DataDirectory
    private let catalog: SQLiteCatalog
    private let now: @Sendable () -> Timestamp

    /// Opens the data folder, or makes it. It blocks for as long as that takes.
    package init(dataDirectory: String, catalogURL: String? = nil) throws(ServerError) {
        directory = try DataDirectory(dataDirectory)
        catalog = try directory.openCatalog(url: catalogURL)
        now = Clock.now
    }

    /// Opens what a server's data folder has; `nil`, and nothing is made, where there is none.
    package init?(existing dataDirectory: String) throws(ServerError) {
        guard DataDirectory.hasCatalog(dataDirectory) else { return nil }
        try self.init(dataDirectory: dataDirectory)
    }

    /// - Parameter quota: Bytes; `nil` without a limit.
    /// - Returns: An invitation for the account's first device.
    package func addAccount(name: String, quota: Int64?) async throws(ServerError) -> ServerInvitation {
        guard !name.isEmpty, name.utf8.count <= 128, !name.unicodeScalars.contains(where: { $0.value < 32 }) else {
            throw .failed("\"\(name)\" is no name for an account")
        }
        do throws(CatalogError) { try await catalog.addAccount(name, quota: quota, now: now()) } catch {
            throw .catalog(error)
        }
        return try await makeInvitation(account: name)
    }

    package func accounts() async throws(ServerError) -> [AccountInfo] {
        do throws(CatalogError) { return try await catalog.accounts() } catch { throw .catalog(error) }
    }

    /// Its devices are signed out and its containers are gone.
    package func removeAccount(name: String) async throws(ServerError) {
        do throws(CatalogError) { try await catalog.removeAccount(name, now: now()) } catch { throw .catalog(error) }
    }

    /// A code that lets one device in. It holds the certificate's fingerprint if the server uses TLS: for an embedded server, and
    /// for one that has never run, it is for this machine.
    package func makeInvitation(
        account: String,
        containers: [ContainerID] = [],
        isReadOnly: Bool = false
    ) async throws(ServerError) -> ServerInvitation {
        do {
            let url = try await catalog.setting(Self.urlSetting)
            let usesTLS = url?.hasPrefix("https:") ?? false
            let fingerprint = usesTLS ? try ServerCertificate.load(directory).fingerprint : nil
            let made = try NewInvitation.make(
                grant: Grant(isReadOnly: isReadOnly, containers: containers.isEmpty ? nil : containers),
                fingerprint: fingerprint,
                now: now()
            )
            try await catalog.addInvitation(made.invitation, account: account)
            return ServerInvitation(url: url, code: made.code, expires: made.invitation.expires)
        } catch let error as CatalogError {
            throw .catalog(error)
        } catch {
            throw error as? ServerError ?? .failed("\(error)")
        }
    }
}

/// What is typed on the device that joins.
package struct ServerInvitation: Hashable, Sendable {
    /// Where the server was last reached; `nil` if it has never run.
    package var url: String?
    package var code: String
    package var expires: Timestamp
}

/// A fresh code, and what the catalogue keeps of it.
struct NewInvitation {
    let code: String
    let invitation: Invitation

    static func make(grant: Grant, fingerprint: [UInt8]?, now: Timestamp) throws -> NewInvitation {
        guard let code = InvitationCode(fingerprint: fingerprint) else {
            throw ServerError.certificate("its fingerprint is not one of SHA-256")
        }
        let expires = Timestamp(nanoseconds: now.nanoseconds + ServerAdministration.invitationSeconds * 1_000_000_000)
        return NewInvitation(
            code: code.text,
            invitation: Invitation(secret: SecretHash(secret: code.secret), grant: grant, expires: expires)
        )
    }
}
