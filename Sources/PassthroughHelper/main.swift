// Binds backing files for ubiquity's device services, which run as ordinary users: the kernel lets only CAP_SYS_ADMIN do it (Linux 6.9's
// FUSE_DEV_IOC_BACKING_OPEN and FUSE_DEV_IOC_BACKING_CLOSE). It does nothing else, and keeps nothing.
//
//   ubiquity-passthrough-helper [--listen PATH]
//
// Without --listen the socket comes from systemd. A request is a `clinux_backing_request` with the FUSE connection and, to open, the
// file as descriptors; see `clinux_check_backing_file` for what is refused.
import CLinux
import Glibc

let connectionLimit = 256

func say(_ text: String) {
    var text = text + "\n"
    text.withUTF8 { _ = write(STDERR_FILENO, $0.baseAddress, $0.count) }
}

func fail(_ what: String, _ code: Int32) -> Never {
    say("ubiquity-passthrough-helper: \(what): \(String(cString: strerror(code)))")
    exit(1)
}

/// The socket on which to listen.
func listener() -> Int32 {
    let words = CommandLine.arguments
    if words.count == 3, words[1] == "--listen" {
        let made = clinux_listen_packets(words[2])
        if made < 0 { fail(words[2], -made) }
        return made
    }
    guard words.count == 1 else {
        say("usage: ubiquity-passthrough-helper [--listen PATH]")
        exit(64)
    }
    // sd_listen_fds(3): descriptors from 3 on, if they are meant for this process.
    let process = getenv("LISTEN_PID").flatMap { Int32(String(cString: $0)) }
    let count = getenv("LISTEN_FDS").flatMap { Int32(String(cString: $0)) } ?? 0
    guard process == getpid(), count == 1 else { fail("no socket from systemd, and no --listen", EINVAL) }
    return 3
}

/// What the descriptors that came with a request are worth.
func answer(_ request: clinux_backing_request, _ descriptors: ArraySlice<Int32>, user: UInt32, group: UInt32) -> Int32 {
    guard request.version == 1 else { return -EPROTONOSUPPORT }
    guard let connection = descriptors.first else { return -EBADF }
    let checked = clinux_check_connection(connection)
    guard checked == 0 else { return checked }
    switch Int(request.verb) {
    case Int(CLINUX_BACKING_OPEN):
        guard descriptors.count == 2, let file = descriptors.last else { return -EBADF }
        let allowed = clinux_check_backing_file(file, user)
        guard allowed == 0 else { return allowed }
        // The kernel remembers whose rights these are, and opens the file with them for each program.
        let changed = clinux_become_for_files(user, group)
        guard changed == 0 else { return changed }
        defer { _ = clinux_become_for_files(0, 0) }
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

/// Serves one request. False: the peer is gone, or sends what is no request.
func serve(_ socket: Int32) -> Bool {
    var user: UInt32 = 0
    var group: UInt32 = 0
    guard clinux_packets_peer(socket, &user, &group) == 0 else { return false }
    var request = clinux_backing_request()
    var descriptors = [Int32](repeating: -1, count: 2)
    var count = descriptors.count
    let size = MemoryLayout<clinux_backing_request>.size
    let received = clinux_receive_descriptors(socket, &request, size, &descriptors, &count)
    defer { for descriptor in descriptors.prefix(count) { close(descriptor) } }
    if received == -Int64(EINTR) || received == -Int64(EAGAIN) { return true }
    guard received == Int64(size) else { return false }
    var result = answer(request, descriptors.prefix(count), user: user, group: group)
    return clinux_send_descriptors(socket, &result, MemoryLayout<Int32>.size, nil, 0) > 0
}

let listening = listener()
var peers: [Int32] = []
while true {
    // Who comes when there is no room waits in the queue.
    let isFull = peers.count >= connectionLimit
    var entries = [pollfd(fd: isFull ? -1 : listening, events: Int16(POLLIN), revents: 0)]
    entries += peers.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    if poll(&entries, nfds_t(entries.count), -1) < 0 {
        if errno == EINTR { continue }
        fail("poll", errno)
    }
    for entry in entries.dropFirst() where entry.revents != 0 && !serve(entry.fd) {
        close(entry.fd)
        peers.removeAll { $0 == entry.fd }
    }
    if entries[0].revents != 0 {
        let peer = clinux_socket_accept(listening)
        if peer >= 0 { peers.append(peer) } else if peer == -EMFILE || peer == -ENFILE { sleep(1) }
    }
}
