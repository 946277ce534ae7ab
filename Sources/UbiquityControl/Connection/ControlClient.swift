internal import CLinux
internal import Glibc
internal import UbiquityModel

/// A connection to the device service, for a program that has nothing else to do: every call blocks.
///
/// Claims that were granted on it are held until it is closed.
package struct ControlClient: ~Copyable {
    private let socket: Int32
    private var lines = LineBuffer(limit: 1 << 30)
    private var descriptors: [Int32] = []

    /// Whom this is connected to.
    package let servicePID: Int32

    /// - Throws: `unreachable` if no service runs.
    package init(_ home: HomeDirectories) throws(ControlError) {
        let folder = clinux_open_at(AT_FDCWD, home.runtime, pathFolderFlags, 0)
        guard folder >= 0 else { throw .noService() }
        defer { close(folder) }
        let socket = clinux_socket_connect(folder, HomeDirectories.socketName)
        guard socket >= 0 else {
            if socket == -ENOENT || socket == -ECONNREFUSED { throw .noService() }
            throw ControlError(.unreachable, "device service", systemMessage(socket))
        }
        var process: pid_t = 0
        var user: uid_t = 0
        guard clinux_socket_peer(socket, &process, &user) == 0, user == getuid() || user == 0 else {
            close(socket)
            throw ControlError(
                .unreachable,
                "device service",
                "\(home.runtime)/\(HomeDirectories.socketName) belongs to another user"
            )
        }
        self.socket = socket
        servicePID = process
    }

    deinit {
        close(socket)
        for descriptor in descriptors { close(descriptor) }
    }

    /// Sends a request and waits for its answer.
    package mutating func send<Request: ControlRequest>(
        _ request: Request,
        progress: (ControlProgress) -> Void = { _ in }
    ) throws(ControlError) -> Request.Answer {
        try write(try ControlCoding.encode(RequestEnvelope(request)) + [UInt8(ascii: "\n")])
        while true {
            guard let line = try nextLine() else { throw .serviceLost() }
            switch try ControlCoding.decode(ReplyHead.self, from: line).event {
            case .progress: progress(try ControlCoding.decode(ProgressReply.self, from: line).progress)
            case .result: return try ControlCoding.decode(ResultReply<Request.Answer>.self, from: line).result
            case .error: throw try ControlCoding.decode(ErrorReply.self, from: line).error
            }
        }
    }

    /// Takes the descriptor that came with the answer; the caller closes it.
    package mutating func takeDescriptor() -> Int32? { descriptors.isEmpty ? nil : descriptors.removeFirst() }

    /// Whether the service has closed the connection or died: what it granted is gone.
    package func isLost() -> Bool {
        guard clinux_wait_readable(socket, 0) > 0 else { return false }
        var byte: UInt8 = 0
        return recv(socket, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) == 0
    }

    /// Waits until the service has closed the connection.
    package func waitUntilClosed() {
        var buffer = [UInt8](repeating: 0, count: 4096)
        var descriptor: Int32 = -1
        while clinux_socket_receive(socket, &buffer, buffer.count, &descriptor) > 0 {
            if descriptor >= 0 { close(descriptor) }
        }
    }

    private func write(_ bytes: [UInt8]) throws(ControlError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { clinux_socket_send(socket, $0.baseAddress, $0.count, -1) }
            guard count > 0 else { throw .serviceLost() }
            rest = rest.dropFirst(Int(count))
        }
    }

    private mutating func nextLine() throws(ControlError) -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            if let line = lines.next() { return line }
            var descriptor: Int32 = -1
            let count = clinux_socket_receive(socket, &buffer, buffer.count, &descriptor)
            if descriptor >= 0 { descriptors.append(descriptor) }
            if count == 0 || count == Int64(-ECONNRESET) { return nil }
            guard count > 0 else { throw ControlError(.unreachable, "device service", systemMessage(Int32(count))) }
            lines.append(buffer[..<Int(count)])
        }
    }
}

/// `O_PATH | O_DIRECTORY`: only to reach what lies in the folder.
private let pathFolderFlags = Int32(CLINUX_O_PATH) | O_DIRECTORY
