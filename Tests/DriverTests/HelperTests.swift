import CLinux
import Glibc
import TestSupport
import Testing

/// What the passthrough helper takes from its peers, and what it refuses.
struct HelperTests {
    // MARK: What may be bound

    private struct Refused: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var error: Int32
        var open: @Sendable (_ folder: String) throws -> Int32

        init(_ description: String, _ error: Int32, _ open: @escaping @Sendable (_ folder: String) throws -> Int32) {
            testDescription = description
            self.error = error
            self.open = open
        }
    }

    private static let refused = [
        // The kernel would open each of these for writing.
        Refused("open for reading", EACCES) { try Files.open($0 + "/file", O_RDONLY) },
        Refused("open for writing", EACCES) { try Files.open($0 + "/file", O_WRONLY) },
        Refused("open for appending", EACCES) { try Files.open($0 + "/file", O_RDWR | O_APPEND) },
        Refused("a path only", EACCES) { try Files.open($0 + "/file", Int32(CLINUX_O_PATH)) },
        Refused("a folder", EACCES) { try Files.open($0, O_RDONLY) },
        Refused("a device", EINVAL) { _ in try Files.open("/dev/null", O_RDWR) },
        Refused("a file of /proc", EOPNOTSUPP) { _ in try Files.open("/proc/self/comm", O_RDWR) },
        Refused("memory that can be sealed", EPERM) { _ in clinux_memory_file(1) },
        Refused("nothing", EBADF) { _ in -1 },
    ]

    @Test(arguments: refused)
    private func `a file is not bound that is`(_ file: Refused) throws {
        try withFolder { folder in
            let descriptor = try file.open(folder)
            defer { close(descriptor) }
            #expect(clinux_check_backing_file(descriptor, geteuid()) == -file.error)
        }
    }

    @Test
    func `a file is bound for its owner only`() throws {
        try withFolder { folder in
            let descriptor = try Files.open(folder + "/file", O_RDWR)
            defer { close(descriptor) }
            #expect(clinux_check_backing_file(descriptor, geteuid()) == 0)
            #expect(clinux_check_backing_file(descriptor, geteuid() + 1) == (geteuid() + 1 == 0 ? 0 : -EPERM))
        }
    }

    @Test
    func `memory that can never be sealed is a file like others`() {
        let descriptor = clinux_memory_file(0)
        defer { close(descriptor) }
        #expect(clinux_check_backing_file(descriptor, geteuid()) == 0)
    }

    private func withFolder(_ body: (String) throws -> Void) throws {
        let folder = "/tmp/ubiquity-helper-\(UInt32.random(in: 0 ... .max))"
        try Files.makeFolder(folder)
        defer { _ = try? run("rm", "-rf", folder) }
        try Files.write("x", to: folder + "/file")
        try body(folder)
    }

    // MARK: The protocol

    private static let root: ConditionTrait = .enabled(if: Requirements.isRoot, "only root can start the helper")

    @Test(root)
    func `a request with wrong descriptors is answered with what is wrong, and keeps none of them`() async throws {
        try await withSite { site in
            let helper = try Helper(site)
            let before = try helper.descriptors()
            let file = try Files.open(site.folder + "/file", O_RDWR | O_CREAT)
            defer { close(file) }
            // Not a mount's: the kernel refuses it by itself.
            let connection = try Files.open("/dev/fuse", O_RDWR)
            defer { close(connection) }
            let peer = try Connection(helper)
            let open = Int(CLINUX_BACKING_OPEN)
            #expect(peer.ask(open, []) == -EBADF)
            #expect(peer.ask(open, [file, file]) == -EINVAL)
            #expect(peer.ask(open, [connection]) == -EBADF)
            #expect(peer.ask(open, [connection, file]) ?? 0 < 0)
            #expect(peer.ask(open, [connection, connection]) == -EINVAL)
            #expect(peer.ask(open, [file, file, file, file]) == -EINVAL)
            #expect(peer.ask(Int(CLINUX_BACKING_CLOSE), [connection], id: 1) ?? 0 < 0)
            #expect(peer.ask(9, [connection]) == -ENOSYS)
            #expect(peer.ask(open, [connection, file], version: 2) == -EPROTONOSUPPORT)
            try eventually("the connection alone is left") { try helper.descriptors() == before + 1 }
        }
    }

    @Test(root, arguments: [0, 1, 11, 13, 4096])
    func `what is no request ends the connection, and leaves nothing open`(sizeBytes: Int) async throws {
        try await withSite { site in
            let helper = try Helper(site)
            let before = try helper.descriptors()
            let peer = try Connection(helper)
            peer.send([UInt8](repeating: 1, count: sizeBytes), [0, 0])
            #expect(peer.answer() == nil)
            try eventually("it is closed") { try helper.descriptors() == before }
            #expect(helper.command.isRunning)
        }
    }

    @Test(root)
    func `nobody waits for a peer that reads no answers, and one user has 32 connections`() async throws {
        try await withSite { site in
            let helper = try Helper(site)
            var peers = try (0..<32).map { _ in try Connection(helper) }
            for peer in peers { #expect(peer.ask(9, []) == -EBADF) }
            try #expect(Connection(helper).ask(9, []) == nil)
            for _ in 0..<2000 { peers[0].send([UInt8](repeating: 1, count: 12), [0, 0]) }
            #expect(peers[1].ask(9, []) == -EBADF)
            peers = []
            try eventually("there is room again") { try Connection(helper).ask(9, []) == -EBADF }
        }
    }
}

extension Helper {
    fileprivate func descriptors() throws -> Int { try Files.names(in: "/proc/\(command.pid)/fd").count }
}

/// A peer that may send anything.
private final class Connection {
    private let socket: Int32

    init(_ helper: Helper) throws {
        socket = clinux_connect_packets(helper.path)
        if socket < 0 { throw SystemError("connecting to", helper.path, -socket) }
    }

    deinit { close(socket) }

    func send(_ bytes: [UInt8], _ descriptors: [Int32]) {
        _ = clinux_send_descriptors(socket, bytes, bytes.count, descriptors, descriptors.count)
    }

    /// `nil`: the helper has ended the connection.
    func answer() -> Int32? {
        var answer: Int32 = 0
        return clinux_receive_answer(socket, &answer, MemoryLayout<Int32>.size, 5000) == 4 ? answer : nil
    }

    func ask(_ verb: Int, _ descriptors: [Int32], id: Int32 = 0, version: UInt32 = 1) -> Int32? {
        let request = clinux_backing_request(version: version, verb: UInt32(verb), id: id)
        send(withUnsafeBytes(of: request) { [UInt8]($0) }, descriptors)
        return answer()
    }
}
