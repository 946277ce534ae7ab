internal import Hummingbird
internal import NIOCore

/// What a route knows of a request besides the request: who is at the other end of the connection.
struct CloudRequestContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    /// `nil` for connections without one.
    let peer: String?

    init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        peer = source.channel.remoteAddress?.ipAddress
    }

    /// Whether the request comes from this machine.
    var isLocal: Bool { peer.map { ListenAddress.isLoopback($0) } ?? false }
}
