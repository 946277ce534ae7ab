import CLinux
import Glibc
import Synchronization
import SystemPackage

/// Who binds backing files for the kernel: that takes CAP_SYS_ADMIN, which this process has, or the passthrough helper.
enum BackingChannel: Sendable {
    case own
    case helper(HelperConnection)

    /// - Returns: the id under which opens of this connection may name the file.
    func open(connection: Int32, file: Int32) throws(Errno) -> Int32 {
        switch self {
        case .own: try checked(clinux_fuse_backing_open(connection, file))
        case .helper(let helper): try helper.open(connection: connection, file: file)
        }
    }

    /// Opens that are bound to it go on.
    func close(connection: Int32, id: Int32) {
        switch self {
        case .own: _ = clinux_fuse_backing_close(connection, id)
        case .helper(let helper): helper.close(connection: connection, id: id)
        }
    }

    /// The kernel opens the backing file for programs with the rights of whoever bound it, and looks at no mode: the helper therefore
    /// takes only what its peer may write.
    var needsWritableFiles: Bool { if case .helper = self { true } else { false } }
}

/// The connection to the passthrough helper. One request is on its way at a time: each takes microseconds.
final class HelperConnection: Sendable {
    /// Held over one exchange with the helper, which answers without waiting for anything.
    private let socket: Mutex<SharedDescriptor>

    /// `nil` if there is no helper here.
    init?(path: String) {
        let descriptor = clinux_connect_packets(path)
        guard descriptor >= 0 else { return nil }
        socket = Mutex(SharedDescriptor(descriptor))
    }

    func open(connection: Int32, file: Int32) throws(Errno) -> Int32 {
        try exchange(clinux_backing_request(version: 1, verb: UInt32(CLINUX_BACKING_OPEN), id: 0), [connection, file])
    }

    func close(connection: Int32, id: Int32) {
        // Without the helper there is nothing more to close: the connection's end closes all.
        _ = try? exchange(clinux_backing_request(version: 1, verb: UInt32(CLINUX_BACKING_CLOSE), id: id), [connection])
    }

    private func exchange(_ request: clinux_backing_request, _ descriptors: [Int32]) throws(Errno) -> Int32 {
        let result: Int32 = socket.withLock { socket in
            var request = request
            let size = MemoryLayout<clinux_backing_request>.size
            let sent = clinux_send_descriptors(socket.raw, &request, size, descriptors, descriptors.count)
            guard sent >= 0 else { return Int32(sent) }
            var answer: Int32 = 0
            var count = 0
            let received = clinux_receive_descriptors(socket.raw, &answer, MemoryLayout<Int32>.size, nil, &count)
            guard received == MemoryLayout<Int32>.size else { return received < 0 ? Int32(received) : -EPIPE }
            return answer
        }
        return try checked(result)
    }
}
