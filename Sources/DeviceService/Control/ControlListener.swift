internal import CLinux
internal import Glibc
internal import Logging
internal import SyncEngine
internal import Synchronization
internal import UbiquityControl

/// The control socket: accepts programs of the same user and reads their requests, all on one thread.
///
/// 1. `init` makes the socket, so that an error there is the start's error.
/// 2. `start` begins to answer.
/// 3. `stop` closes the socket and all connections, and returns when the thread is done.
final class ControlListener: Sendable {
    /// A request is a line of at most this many bytes; thousands of paths fit.
    private static let requestLimitBytes = 4 * 1024 * 1024
    /// More programs wait in the kernel until one of these is done.
    private static let connectionLimit = 512

    private struct Client {
        var connection: ControlConnection
        var lines: LineBuffer
    }

    private let listener: Int32
    private let folder: Int32
    private let event: Int32
    private let logger: Logger
    private let isStopping = Atomic(false)
    /// Resumed by the thread at its end.
    private let finished = Mutex<(isDone: Bool, waiting: [CheckedContinuation<Void, Never>])>((false, []))

    /// Call with the service's lock held: a socket that is there is a dead one.
    init(_ home: HomeDirectories, logger: Logger) throws(ControlError) {
        let folder = clinux_open_at(AT_FDCWD, home.runtime, O_RDONLY | O_DIRECTORY, 0)
        guard folder >= 0 else { throw ControlError(home.runtime, systemMessage(folder)) }
        unlinkat(folder, HomeDirectories.socketName, 0)
        let listener = clinux_socket_listen(folder, HomeDirectories.socketName)
        let event = clinux_event_make()
        guard listener >= 0, event >= 0 else {
            close(folder)
            if listener >= 0 { close(listener) }
            throw ControlError("\(home.runtime)/\(HomeDirectories.socketName)", systemMessage(min(listener, event)))
        }
        self.folder = folder
        self.listener = listener
        self.event = event
        self.logger = logger
    }

    /// - Parameter handle: answers one request.
    func start(_ handle: @escaping @Sendable ([UInt8], ControlConnection) async -> Void) {
        BlockingThread.start("ubi-control") { self.run(handle) }
    }

    func stop() async {
        isStopping.store(true, ordering: .sequentiallyConsistent)
        clinux_event_raise(event)
        await withCheckedContinuation { continuation in
            let isDone = finished.withLock { state in
                if !state.isDone { state.waiting.append(continuation) }
                return state.isDone
            }
            if isDone { continuation.resume() }
        }
    }

    private func run(_ handle: @escaping @Sendable ([UInt8], ControlConnection) async -> Void) {
        var clients = [Int32: Client]()
        // Without a descriptor for it a connection stays in the queue, and the listener readable: looked at again only after a while.
        var isOutOfDescriptors = false
        while !isStopping.load(ordering: .sequentiallyConsistent) {
            var entries = [pollfd(fd: event, events: Int16(POLLIN), revents: 0)]
            if clients.count < Self.connectionLimit, !isOutOfDescriptors {
                entries.append(pollfd(fd: listener, events: Int16(POLLIN), revents: 0))
            }
            for (socket, client) in clients {
                let writing = client.connection.hasOutgoing ? Int16(POLLOUT) : 0
                entries.append(pollfd(fd: socket, events: Int16(POLLIN) | writing, revents: 0))
            }
            let waitMilliseconds: Int32 = isOutOfDescriptors ? 500 : -1
            isOutOfDescriptors = false
            guard poll(&entries, nfds_t(entries.count), waitMilliseconds) >= 0 || errno == EINTR else {
                logger.error("the control socket fails: \(systemMessage(errno))")
                break
            }
            for entry in entries where entry.revents != 0 {
                if entry.fd == event {
                    clinux_event_clear(event)
                } else if entry.fd == listener {
                    isOutOfDescriptors = !accept(into: &clients)
                } else if entry.revents & ~Int16(POLLOUT) != 0, let client = clients[entry.fd] {
                    clients[entry.fd] = receive(client, entry.fd)
                }
            }
            serve(&clients, handle)
        }
        for client in clients.values {
            _ = client.connection.flush()
            client.connection.closeConnection()
        }
        unlinkat(folder, HomeDirectories.socketName, 0)
        close(listener)
        close(folder)
        let waiting = finished.withLock { state in
            state.isDone = true
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Writes what is queued, and begins the next request of whoever is idle.
    private func serve(
        _ clients: inout [Int32: Client],
        _ handle: @escaping @Sendable ([UInt8], ControlConnection) async -> Void
    ) {
        for (socket, client) in clients {
            let connection = client.connection
            guard connection.flush(), !client.lines.isOverLimit else {
                connection.closeConnection()
                clients[socket] = nil
                continue
            }
            if connection.isIdle, let line = clients[socket]?.lines.next() {
                connection.begin { await handle(line, connection) }
            }
        }
    }

    /// False if there are no descriptors left for those who knock.
    private func accept(into clients: inout [Int32: Client]) -> Bool {
        while clients.count < Self.connectionLimit {
            let socket = clinux_socket_accept(listener)
            guard socket >= 0 else { return ![-EMFILE, -ENFILE, -ENOMEM, -ENOBUFS].contains(socket) }
            var pid: pid_t = 0
            var user: uid_t = 0
            // The socket's mode keeps others out already; root may always.
            guard clinux_socket_peer(socket, &pid, &user) == 0, user == getuid() || user == 0 else {
                close(socket)
                continue
            }
            let event = event
            let connection = ControlConnection(socket: socket, pid: pid) { clinux_event_raise(event) }
            clients[socket] = Client(connection: connection, lines: LineBuffer(limit: Self.requestLimitBytes))
        }
        return true
    }

    /// `nil`: the other side is gone, and the connection closed.
    private func receive(_ client: Client, _ socket: Int32) -> Client? {
        var client = client
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            var descriptor: Int32 = -1
            let count = clinux_socket_receive(socket, &buffer, buffer.count, &descriptor)
            if descriptor >= 0 { close(descriptor) }
            if count == Int64(-EAGAIN) { return client }
            guard count > 0 else {
                client.connection.closeConnection()
                return nil
            }
            client.lines.append(buffer[..<Int(count)])
            if client.lines.isOverLimit { return client }
        }
    }
}
