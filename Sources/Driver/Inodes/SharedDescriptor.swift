import Glibc

/// A descriptor that is closed when its last user is done with it: the cache may give it up while a request still works on it.
final class SharedDescriptor: Sendable {
    let raw: Int32

    /// Takes over an open descriptor.
    init(_ raw: Int32) { self.raw = raw }

    deinit { close(raw) }
}
