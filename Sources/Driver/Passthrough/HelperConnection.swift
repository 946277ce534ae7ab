import CLinux
import Synchronization
import SystemPackage

/// The connection to the passthrough helper. One request is on its way at a time: each takes microseconds.
///
/// Opens of programs wait for it, and the helper may be stopped, killed or replaced at any moment. So every wait is bounded; a connection
/// that failed is given up, since an answer that comes late must not be taken for the next one; and the helper is then left alone for a
/// while. Files that would have been bound meanwhile go the ordinary way.
final class HelperConnection: Sendable {
    fileprivate struct State: Sendable {
        var socket: SharedDescriptor?
        /// When the helper is tried again.
        var rest: ContinuousClock.Instant?
        /// Ids that nobody needs, and that the helper was not there to close: the kernel keeps their files.
        var surplus: [Int32] = []
    }

    /// For a service that systemd has to start first.
    private static let firstPatience: Int32 = 5000
    /// What an open is worth waiting for.
    private static let patience: Int32 = 1000
    /// After the helper has gone. To find out that it has not come back costs microseconds.
    private static let shortRest = Duration.seconds(1)
    /// After it was there and did not answer: the next to try waits for it again.
    private static let longRest = Duration.seconds(60)
    /// Of surplus ids, so many at once.
    private static let closesAtOnce = 32

    private let path: String
    /// Held over one exchange, so for `patience` at most.
    private let state: Mutex<State>

    /// `nil` if there is no helper here.
    init?(path: String) {
        let descriptor = clinux_connect_packets(path)
        guard descriptor >= 0 else { return nil }
        self.path = path
        state = Mutex(State(socket: SharedDescriptor(descriptor)))
    }

    var isResting: Bool { state.withLock { $0.isResting } }

    /// It did not answer when it was last asked.
    var isAway: Bool { state.withLock { $0.socket == nil } }

    /// - Parameter isFirst: no program waits for it.
    func open(connection: Int32, file: Int32, isFirst: Bool) throws(BindingError) -> Int32 {
        let result = state.withLock { state -> Result<Int32, BindingError> in
            closeSurplus(&state, connection)
            let patience = isFirst ? Self.firstPatience : Self.patience
            guard let answer = exchange(&state, CLINUX_BACKING_OPEN, 0, [connection, file], patience) else {
                return .failure(.helperIsAway)
            }
            return answer > 0 ? .success(answer) : .failure(.refused(Errno(rawValue: 0 &- answer)))
        }
        return try result.get()
    }

    func close(connection: Int32, id: Int32) {
        state.withLock { state in
            state.surplus.append(id)
            closeSurplus(&state, connection)
        }
    }

    private func closeSurplus(_ state: inout State, _ connection: Int32) {
        for id in state.surplus.suffix(Self.closesAtOnce).reversed() {
            guard exchange(&state, CLINUX_BACKING_CLOSE, id, [connection], Self.patience) != nil else { return }
            state.surplus.removeLast()
        }
    }

    /// The helper's answer; `nil` if there is none.
    private func exchange(
        _ state: inout State,
        _ verb: Int,
        _ id: Int32,
        _ descriptors: [Int32],
        _ patience: Int32
    ) -> Int32? {
        guard let socket = connect(&state) else { return nil }
        var request = clinux_backing_request(version: 1, verb: UInt32(verb), id: id)
        let size = MemoryLayout<clinux_backing_request>.size
        guard clinux_send_descriptors(socket.raw, &request, size, descriptors, descriptors.count) == Int64(size) else {
            state.giveUp(for: Self.shortRest)
            return nil
        }
        var answer: Int32 = 0
        var received = clinux_receive_answer(socket.raw, &answer, MemoryLayout<Int32>.size, patience)
        if received == MemoryLayout<Int32>.size { return answer }
        let isStuck = received == -Int64(Errno.timedOut.rawValue)
        if isStuck { received = clinux_last_answer(socket.raw, &answer, MemoryLayout<Int32>.size) }
        state.giveUp(for: isStuck ? Self.longRest : Self.shortRest)
        return received == MemoryLayout<Int32>.size ? answer : nil
    }

    private func connect(_ state: inout State) -> SharedDescriptor? {
        if let socket = state.socket { return socket }
        guard !state.isResting else { return nil }
        let descriptor = clinux_connect_packets(path)
        guard descriptor >= 0 else {
            state.giveUp(for: Self.shortRest)
            return nil
        }
        state.rest = nil
        state.socket = SharedDescriptor(descriptor)
        return state.socket
    }
}

extension HelperConnection.State {
    fileprivate var isResting: Bool { rest.map { ContinuousClock.now < $0 } ?? false }

    fileprivate mutating func giveUp(for rest: Duration) {
        socket = nil
        self.rest = ContinuousClock.now + rest
    }
}
