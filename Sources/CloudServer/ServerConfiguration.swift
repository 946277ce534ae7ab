package import Logging
package import UbiquityModel

/// How a server shall run.
package struct ServerConfiguration: Sendable {
    /// Everything that the server keeps lies here, unless the two URLs say otherwise.
    package var dataDirectory: String
    package var listen: ListenAddress
    /// Started by `up` for this machine: it makes its account by itself, listens on loopback, remembers its ports, and opens
    /// itself to the network when a device asks it to.
    package var isEmbedded: Bool
    /// `sqlite:PATH`; `nil`: in the data folder.
    package var catalogURL: String?
    /// `folder:PATH`; `nil`: in the data folder.
    package var chunksURL: String?
    package var logger: Logger
    /// The server's clock.
    package var now: @Sendable () -> Timestamp = Clock.now
    /// Feeds that have nothing to say send an empty page this often; `nil`: as the protocol says.
    package var signOfLife: Duration?
    /// A pack of chunks is begun anew when it has passed so many bytes; `nil`: as the store says.
    package var packBytes: UInt64?

    package init(
        dataDirectory: String,
        listen: ListenAddress = .loopback,
        isEmbedded: Bool = false,
        catalogURL: String? = nil,
        chunksURL: String? = nil,
        logger: Logger
    ) {
        self.dataDirectory = dataDirectory
        self.listen = listen
        self.isEmbedded = isEmbedded
        self.catalogURL = catalogURL
        self.chunksURL = chunksURL
        self.logger = logger
    }
}

/// HOST:PORT. Port 0 is any free one.
package struct ListenAddress: Hashable, Sendable {
    package var host: String
    package var port: Int

    package init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    /// This machine only, on any port.
    package static let loopback = ListenAddress(host: "127.0.0.1", port: 0)

    /// `HOST:PORT`, `[IPV6]:PORT` or `:PORT` (every address); `nil` for anything else.
    package init?(_ text: String) {
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) else {
            return nil
        }
        var host = String(text[..<colon])
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = String(host.dropFirst().dropLast())
        } else if host.contains(":") {
            return nil
        }
        self.init(host: host.isEmpty ? "0.0.0.0" : host, port: Int(port))
    }

    /// Whether only this machine can reach it.
    package var isLoopback: Bool { Self.isLoopback(host) }

    static func isLoopback(_ host: String) -> Bool {
        host == "localhost" || host.hasPrefix("127.") || host == "::1" || host.hasPrefix("::ffff:127.")
    }

    /// Every address of this machine.
    var isWildcard: Bool { host == "0.0.0.0" || host == "::" }

    static func url(scheme: String, host: String, port: Int) -> String {
        "\(scheme)://\(host.contains(":") ? "[\(host)]" : host):\(port)"
    }
}
