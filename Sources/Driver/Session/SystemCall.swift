import Glibc
import Replica
import SystemPackage

/// The C functions of `CLinux` return a result or -errno.
@discardableResult
func checked(_ result: Int32) throws(Errno) -> Int32 {
    guard result >= 0 else { throw Errno(rawValue: -result) }
    return result
}

@discardableResult
func checked(_ result: Int64) throws(Errno) -> Int {
    guard result >= 0 else { throw Errno(rawValue: Int32(truncatingIfNeeded: -result)) }
    return Int(result)
}

/// Glibc's functions return -1 and set errno, which is read at once. The argument is the call itself.
@discardableResult
@inline(__always)
func called(_ call: @autoclosure () -> Int32) throws(Errno) -> Int32 {
    let result = call()
    guard result >= 0 else { throw Errno(rawValue: errno) }
    return result
}

extension Errno {
    static var crossDevice: Errno { Errno(rawValue: Glibc.EXDEV) }
    static var notConnected: Errno { Errno(rawValue: Glibc.ENOTCONN) }
    static var readOnly: Errno { Errno(rawValue: Glibc.EROFS) }
    static var unsupported: Errno { Errno(rawValue: Glibc.EOPNOTSUPP) }
    static var descriptorsExhausted: Errno { Errno(rawValue: Glibc.EMFILE) }
}
