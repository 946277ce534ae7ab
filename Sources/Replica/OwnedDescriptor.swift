internal import CLinux
internal import Glibc
package import SystemPackage
package import UbiquityModel

/// A file descriptor that is closed exactly once: by `close`, or at the end of its life.
package struct OwnedDescriptor: ~Copyable, Sendable {
    /// Good as long as the owner lives. Keep the owner in a variable: that of a temporary (`try open(…).raw`) is closed
    /// before it is used.
    package let raw: Int32

    /// Takes over an open descriptor.
    package init(_ raw: Int32) { self.raw = raw }

    /// A new open file description of the inode behind any descriptor, also an `O_PATH` one.
    package init(reopening descriptor: Int32, flags: Int32) throws(Errno) {
        self.init(try checked(clinux_reopen(descriptor, flags)))
    }

    /// `openat`; the last component is never followed.
    package init(in directory: Int32, _ name: UnsafePointer<CChar>, flags: Int32, mode: UInt32 = 0) throws(Errno) {
        self.init(try checked(clinux_open_at(directory, name, flags | O_NOFOLLOW, mode)))
    }

    /// `openat` of a name.
    package init(in directory: Int32, _ name: Name, flags: Int32, mode: UInt32 = 0) throws(Errno) {
        self.init(
            try name.withCString { name throws(Errno) in
                try checked(clinux_open_at(directory, name, flags | O_NOFOLLOW, mode))
            }
        )
    }

    /// Closes and reports what the kernel says; the descriptor is gone in any case.
    package consuming func close() throws(Errno) {
        let raw = raw
        discard self
        // Linux frees the descriptor even when it answers EINTR: never repeat.
        if Glibc.close(raw) < 0, errno != EINTR { throw Errno(rawValue: errno) }
    }

    /// Gives the descriptor away: the caller closes it.
    package consuming func release() -> Int32 {
        let raw = raw
        discard self
        return raw
    }

    deinit { _ = Glibc.close(raw) }
}

/// The C functions of `CLinux` return a result or -errno.
@discardableResult
package func checked(_ result: Int32) throws(Errno) -> Int32 {
    guard result >= 0 else { throw Errno(rawValue: -result) }
    return result
}

@discardableResult
package func checked(_ result: Int64) throws(Errno) -> Int {
    guard result >= 0 else { throw Errno(rawValue: Int32(truncatingIfNeeded: -result)) }
    return Int(result)
}

/// The C library's own functions return -1 and leave the error in errno.
func called(_ result: Int32) throws(Errno) {
    guard result >= 0 else { throw Errno(rawValue: errno) }
}

extension Errno {
    /// ENODATA: no such extended attribute.
    package static var noAttribute: Errno { Errno(rawValue: Glibc.ENODATA) }
}

/// All of a small file of our own.
func contents(of file: Int32) throws(Errno) -> [UInt8] {
    let size = Int(try status(of: file).size)
    var result: Int64 = 0
    let bytes = [UInt8](unsafeUninitializedCapacity: size) { room, count in
        result = clinux_pread(file, room.baseAddress, room.count, 0)
        count = max(0, Int(result))
    }
    try checked(result)
    return bytes
}
