import CLinux
import Glibc

/// One connection and its thread.
final class Peer: Sendable {
    private let socket: Int32
    private let user: UInt32
    private let group: UInt32
    private let whenGone: @Sendable () -> Void

    init(socket: Int32, user: UInt32, group: UInt32, whenGone: @escaping @Sendable () -> Void) {
        self.socket = socket
        self.user = user
        self.group = group
        self.whenGone = whenGone
    }

    /// Serves until the peer is gone, or sends what is no request.
    func run() {
        // Of this thread alone, and for good: the kernel remembers whose rights these are when it binds a file.
        if clinux_become_for_files(user, group) == 0 {
            while serve() {}
        }
        close(socket)
        whenGone()
    }

    private func serve() -> Bool {
        var request = clinux_backing_request()
        var descriptors = [Int32](repeating: -1, count: 2)
        var count = descriptors.count
        let size = MemoryLayout<clinux_backing_request>.size
        let received = clinux_receive_descriptors(socket, &request, size, &descriptors, &count)
        if received == -Int64(EINTR) { return true }
        let connection = count > 0 ? descriptors[0] : -1
        defer { if count > 0 { close(connection) } }
        let isRequest = received == Int64(size)
        var result = isRequest ? answer(request, descriptors.prefix(count)) : -EPROTO
        // Before the answer: the service finds out by the file's uses whether a program has it mapped.
        for descriptor in descriptors.prefix(count).dropFirst() { close(descriptor) }
        guard isRequest else { return false }
        if clinux_send_descriptors(socket, &result, MemoryLayout<Int32>.size, nil, 0) > 0 { return true }
        // A peer that waits no longer will never close it.
        if request.verb == UInt32(CLINUX_BACKING_OPEN), result > 0 { _ = clinux_fuse_backing_close(connection, result) }
        return false
    }

    /// The id, 0 or -errno.
    private func answer(_ request: clinux_backing_request, _ descriptors: ArraySlice<Int32>) -> Int32 {
        guard request.version == 1 else { return -EPROTONOSUPPORT }
        guard let connection = descriptors.first else { return -EBADF }
        let checked = clinux_check_connection(connection)
        guard checked == 0 else { return checked }
        switch Int(request.verb) {
        case Int(CLINUX_BACKING_OPEN):
            guard descriptors.count == 2, let file = descriptors.last else { return -EBADF }
            let allowed = clinux_check_backing_file(file, user)
            guard allowed == 0 else { return allowed }
            // The path alone counts as no use of the inode: the service finds mappings by who uses it.
            let path = clinux_reopen(file, Int32(CLINUX_O_PATH))
            guard path >= 0 else { return path }
            defer { close(path) }
            return clinux_fuse_backing_open(connection, path)
        case Int(CLINUX_BACKING_CLOSE):
            return clinux_fuse_backing_close(connection, request.id)
        default: return -ENOSYS
        }
    }
}
