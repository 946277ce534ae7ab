/// Somebody between a device and its server who changes names on their way: what a hostile device or server would send.
///
/// It replaces bytes by as many others, so that nothing around them has to change, and only where they are a protobuf field of
/// their length.
package final class TamperingProxy: Sendable {
    package enum Direction: String, Sendable {
        case toServer, toDevice
    }

    package let url: String
    private let command: Command

    package init(
        _ site: Site,
        before server: Server,
        _ direction: Direction,
        _ name: String,
        becomes other: String
    ) throws {
        guard name.utf8.count == other.utf8.count, let port = server.url.split(separator: ":").last else {
            throw TestFailure("\(name) and \(other) have to be equally long")
        }
        let words = [
            "python3", "-c", TamperingProxy.program, String(port), direction.rawValue, name.hexadecimal,
            other.hexadecimal,
        ]
        let command = try site.start(words)
        self.command = command
        let own = try eventually("the proxy listens") {
            command.outputSoFar.hasSuffix("\n") ? command.outputSoFar.dropLast() : nil
        }
        url = "http://127.0.0.1:\(own)"
    }

    private static let program = """
        import socket, sys, threading
        upstream, direction = int(sys.argv[1]), sys.argv[2]
        old, new = (bytes.fromhex(word) for word in sys.argv[3:5])
        old, new = (bytes([0x12, len(name)]) + name for name in (old, new))
        def pump(source, target, tampers):
            try:
                while data := source.recv(1 << 20):
                    target.sendall(data.replace(old, new) if tampers else data)
            except OSError: pass
            for end in (source, target):
                try: end.shutdown(socket.SHUT_RDWR)
                except OSError: pass
        listener = socket.create_server(('127.0.0.1', 0))
        print(listener.getsockname()[1], flush=True)
        while True:
            device, _ = listener.accept()
            server = socket.create_connection(('127.0.0.1', upstream))
            threading.Thread(target=pump, args=(device, server, direction == 'toServer'), daemon=True).start()
            threading.Thread(target=pump, args=(server, device, direction == 'toDevice'), daemon=True).start()
        """
}

extension String {
    fileprivate var hexadecimal: String {
        utf8.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}
