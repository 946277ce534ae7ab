import Glibc

/// A port on loopback that refuses every connection as long as this lives: it is bound and not listened on, so nobody else can get it.
struct DeafPort: ~Copyable {
    let port: Int
    private let descriptor: Int32

    init() throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(INADDR_LOOPBACK).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptor = descriptor
        let failed = withUnsafeMutablePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(descriptor, address, length) != 0 || getsockname(descriptor, address, &length) != 0
            }
        }
        port = Int(UInt16(bigEndian: address.sin_port))
        if failed { throw BindError(errno: errno) }
    }

    deinit { close(descriptor) }

    struct BindError: Error { var errno: Int32 }
}
