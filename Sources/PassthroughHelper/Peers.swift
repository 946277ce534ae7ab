import CLinux
import Glibc
import Synchronization

/// Who is connected. Each connection has a thread: to look at a descriptor, and even to close it, may take as long as its sender likes
/// (his FUSE daemon is asked, his socket lingers), and nobody else has to wait for that.
final class Peers: Sendable {
    /// A service has a connection for each of its mounts. Those that are too many are ended, and go on without us.
    private static let limit = 1024
    private static let userLimit = 32
    /// How many connections each user has. A leaf.
    private let counts = Mutex<[UInt32: Int]>([:])

    /// Takes the socket over.
    func serve(_ socket: Int32) {
        var user: UInt32 = 0
        var group: UInt32 = 0
        guard clinux_packets_peer(socket, &user, &group) == 0, admit(user) else {
            close(socket)
            return
        }
        clinux_limit_sending(socket, 5)
        let peer = Peer(socket: socket, user: user, group: group) { [self, user] in dismiss(user) }
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
        pthread_attr_setstacksize(&attributes, 256 << 10)
        let reference = Unmanaged.passRetained(peer)
        var thread = pthread_t()
        let failure = pthread_create(
            &thread,
            &attributes,
            { pointer in
                if let pointer { Unmanaged<Peer>.fromOpaque(pointer).takeRetainedValue().run() }
                return nil
            },
            reference.toOpaque()
        )
        guard failure != 0 else { return }
        reference.release()
        close(socket)
        dismiss(user)
    }

    private func admit(_ user: UInt32) -> Bool {
        counts.withLock { counts in
            guard counts.values.reduce(0, +) < Self.limit, counts[user, default: 0] < Self.userLimit else {
                return false
            }
            counts[user, default: 0] += 1
            return true
        }
    }

    private func dismiss(_ user: UInt32) {
        counts.withLock { counts in
            let left = counts[user, default: 0] - 1
            counts[user] = left > 0 ? left : nil
        }
    }
}
