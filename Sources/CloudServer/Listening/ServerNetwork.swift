internal import CloudProtocol
internal import Synchronization

/// How this server is reached: for the URLs in invitations.
final class ServerNetwork: Sendable {
    private let listen: ListenAddress
    /// The server's main address is behind TLS.
    private let usesTLS: Bool
    /// Only embedded servers have one.
    private let door: NetworkDoor?
    let fingerprint: @Sendable () throws -> [UInt8]
    /// The port of the main address. Guards a number that is set once, before the first request.
    private let listeningPort = Mutex<Int>(0)

    init(
        listen: ListenAddress,
        usesTLS: Bool,
        door: NetworkDoor?,
        fingerprint: @escaping @Sendable () throws -> [UInt8]
    ) {
        self.listen = listen
        self.usesTLS = usesTLS
        self.door = door
        self.fingerprint = fingerprint
    }

    private var scheme: String { usesTLS ? "https" : "http" }

    func listening(on port: Int) { listeningPort.withLock { $0 = port } }

    /// Where devices on this machine, or in the network that it listens to, find it.
    var url: String {
        let host = listen.isWildcard ? HostAddress.guess() ?? "127.0.0.1" : listen.host
        return ListenAddress.url(scheme: scheme, host: host, port: listeningPort.withLock { $0 })
    }

    /// An address for an invitation, and the fingerprint that goes with it.
    /// - Parameter address: The host that the other machine shall use; empty: a guess.
    /// - Parameter opening: Open the door first. Devices on other machines can not, but use it when it is open.
    func invitationAddress(
        address: String,
        opening: Bool,
        isLocal: Bool
    ) async throws -> (url: String, fingerprint: [UInt8]?) {
        let fingerprint = usesTLS ? try self.fingerprint() : nil
        if !listen.isLoopback {
            let port = listeningPort.withLock { $0 }
            return (address.isEmpty ? url : ListenAddress.url(scheme: scheme, host: address, port: port), fingerprint)
        }
        if opening, door?.port == nil {
            guard let door, isLocal else {
                throw RequestFailure(
                    .notEmbedded,
                    "this server listens on its own machine only: start it with --listen ADDRESS:PORT"
                )
            }
            _ = try await door.open()
        }
        let host = address.isEmpty ? HostAddress.guess() : address
        guard opening || !isLocal || !address.isEmpty, let port = door?.port, let host else {
            return (url, fingerprint)
        }
        return (ListenAddress.url(scheme: "https", host: host, port: port), try self.fingerprint())
    }
}
