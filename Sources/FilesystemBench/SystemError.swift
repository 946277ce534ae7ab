import Glibc

/// A system call that failed: which, on what, and why.
struct SystemError: Error, CustomStringConvertible {
    var call: String
    var subject: String
    var errno: Int32

    var description: String { "\(call) \(subject): \(String(cString: strerror(errno)))" }
}

/// The result of a system call, or its error; `errno` is read at once.
@inline(__always)
func check<Result: SignedInteger>(
    _ call: StaticString,
    _ subject: @autoclosure () -> String,
    _ result: Result
) throws(SystemError) -> Result {
    if result >= 0 { return result }
    let code = Glibc.errno
    throw SystemError(call: "\(call)", subject: subject(), errno: code)
}
