internal import CLinux
internal import Glibc
internal import Synchronization
internal import UbiquityControl

/// One program on the control socket, as those see it who answer its request.
///
/// What is sent is queued here and written by the listener's thread: nobody waits for a slow reader. Progress that the reader
/// does not take in time is dropped.
final class ControlConnection: Sendable {
    private struct State {
        var outgoing: [Piece] = []
        var outgoingBytes = 0
        var isIdle = true
        var isClosed = false
        var whenClosed: [String: @Sendable () -> Void] = [:]
        var task: Task<Void, Never>?
    }

    private struct Piece {
        var bytes: ArraySlice<UInt8>
        /// Goes with the first byte; closed afterwards. -1: none.
        var descriptor: Int32
    }

    private static let progressLimitBytes = 256 * 1024

    /// Of no other connection of this service.
    let id: UInt64
    let pid: Int32
    private let socket: Int32
    private let wake: @Sendable () -> Void
    /// Guards memory, and the socket's writes by the listener's thread (which never block). A leaf in the order of locks.
    private let state = Mutex(State())

    private static let lastID = Atomic<UInt64>(0)

    init(socket: Int32, pid: Int32, wake: @escaping @Sendable () -> Void) {
        id = Self.lastID.wrappingAdd(1, ordering: .relaxed).newValue
        self.socket = socket
        self.pid = pid
        self.wake = wake
    }

    // MARK: - For those who answer

    func progress(_ progress: ControlProgress) {
        guard state.withLock({ $0.outgoingBytes < Self.progressLimitBytes }) else { return }
        if let bytes = try? ControlCoding.encode(ProgressReply(progress)) { queue(bytes) }
    }

    /// - Parameter descriptor: travels with the answer, and is closed here.
    func answer(_ result: some Codable & Sendable, descriptor: Int32 = -1) {
        do throws(ControlError) { queue(try ControlCoding.encode(ResultReply(result)), descriptor: descriptor) } catch {
            if descriptor >= 0 { close(descriptor) }
            fail(error)
        }
    }

    func fail(_ error: ControlError) {
        if let bytes = try? ControlCoding.encode(ErrorReply(error)) { queue(bytes) }
    }

    /// Runs `body` when the other side is gone: at once if it is already.
    /// - Parameter purpose: of several with the same one, the last one counts.
    func whenClosed(_ purpose: String, _ body: @escaping @Sendable () -> Void) {
        let isClosed = state.withLock { state in
            if !state.isClosed { state.whenClosed[purpose] = body }
            return state.isClosed
        }
        if isClosed { body() }
    }

    private func queue(_ bytes: [UInt8], descriptor: Int32 = -1) {
        let isQueued = state.withLock { state in
            guard !state.isClosed else { return false }
            state.outgoing.append(Piece(bytes: (bytes + [UInt8(ascii: "\n")])[...], descriptor: descriptor))
            state.outgoingBytes += bytes.count + 1
            return true
        }
        if isQueued { wake() } else if descriptor >= 0 { close(descriptor) }
    }

    // MARK: - For the listener's thread

    var hasOutgoing: Bool { state.withLock { !$0.outgoing.isEmpty } }
    var isIdle: Bool { state.withLock { $0.isIdle } }

    /// Starts the answer to a request. The connection is idle again when `body` has returned.
    func begin(_ body: @escaping @Sendable () async -> Void) {
        state.withLock { state in
            state.isIdle = false
            state.task = Task {
                await body()
                self.state.withLock { state in
                    state.isIdle = true
                    state.task = nil
                }
                self.wake()
            }
        }
    }

    /// Writes what the socket takes. `false`: the other side is gone.
    func flush() -> Bool {
        state.withLock { state in
            while let piece = state.outgoing.first {
                let count = piece.bytes.withUnsafeBytes {
                    clinux_socket_send(socket, $0.baseAddress, $0.count, piece.descriptor)
                }
                if count == Int64(-EAGAIN) { return true }
                guard count > 0 else { return false }
                if piece.descriptor >= 0 { close(piece.descriptor) }
                state.outgoingBytes -= Int(count)
                if Int(count) == piece.bytes.count {
                    state.outgoing.removeFirst()
                } else {
                    state.outgoing[0] = Piece(bytes: piece.bytes.dropFirst(Int(count)), descriptor: -1)
                }
            }
            return true
        }
    }

    /// Cancels the request, tells who wanted to know, and closes the socket.
    func closeConnection() {
        let (task, bodies, pieces) = state.withLock { state in
            defer {
                state.isClosed = true
                state.whenClosed = [:]
                state.outgoing = []
            }
            return (state.task, Array(state.whenClosed.values), state.outgoing)
        }
        for piece in pieces where piece.descriptor >= 0 { close(piece.descriptor) }
        task?.cancel()
        for body in bodies { body() }
        close(socket)
    }
}
