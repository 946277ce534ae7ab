// Binds backing files for ubiquity's device services, which run as ordinary users: the kernel lets only CAP_SYS_ADMIN do it (Linux 6.9's
// FUSE_DEV_IOC_BACKING_OPEN and FUSE_DEV_IOC_BACKING_CLOSE). It does nothing else, and keeps nothing.
//
//   ubiquity-passthrough-helper [--listen PATH]
//
// Without --listen the socket comes from systemd. A request is a `clinux_backing_request` with the FUSE connection and, to open, the
// file as descriptors. Everybody may connect. What a peer gains by it:
//
// - Whoever has a descriptor of a FUSE connection is its daemon, and decides what its files contain anyway. Whose mount it is does not
//   matter: nobody comes by another's descriptor but from him.
// - A file that is bound can be read and written through the mount, by whom the mount lets in. The kernel asks for no rights then: the
//   peer has to show a descriptor that is open for both. `clinux_check_backing_file` has what else is refused, and why.
// - The kernel uses the rights of whoever bound a file. Here these are the peer's, and nothing of root's but CAP_SYS_ADMIN.
// - What is bound counts for no limit of the peer's open files until his mount ends. That is the price of the matter.
import CLinux
import Glibc

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

let listening = listener()
let kept = clinux_keep_binding_rights()
if kept < 0 { fail("giving rights up", -kept) }
let peers = Peers()
while true {
    let socket = accept(listening, nil, nil)
    if socket >= 0 {
        peers.serve(socket)
    } else if errno != EINTR && errno != ECONNABORTED {
        // No descriptors or no memory left: those of others come free.
        sleep(1)
    }
}
