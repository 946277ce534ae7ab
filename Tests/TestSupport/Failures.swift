import Glibc

/// What a helper of the tests could not do or did not find, in words.
package struct TestFailure: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) {
        self.description = description
    }
}

/// A system call that failed on a path.
package struct SystemError: Error, CustomStringConvertible, Hashable {
    package let call: String
    package let path: String
    package let code: Int32

    package init(_ call: String, _ path: String, _ code: Int32) {
        self.call = call
        self.path = path
        self.code = code
    }

    package var description: String { "\(call) \(path): \(String(cString: strerror(code)))" }
}
