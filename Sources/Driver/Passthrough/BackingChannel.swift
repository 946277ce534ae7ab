import CLinux
import Glibc
import Synchronization
import SystemPackage

/// Why a file was not bound.
enum BindingError: Error, Sendable {
    /// This file never will be.
    case refused(Errno)
    /// The helper cannot be asked at this time.
    case helperIsAway
}

/// Who binds backing files for the kernel: that takes CAP_SYS_ADMIN, which this process has, or the passthrough helper.
enum BackingChannel: Sendable {
    case own
    case helper(HelperConnection)

    /// - Parameter isFirst: a trial, for which no program waits.
    /// - Returns: the id under which opens of this connection may name the file.
    func open(connection: Int32, file: Int32, isFirst: Bool = false) throws(BindingError) -> Int32 {
        switch self {
        case .own:
            let id = clinux_fuse_backing_open(connection, file)
            guard id >= 0 else { throw .refused(Errno(rawValue: -id)) }
            return id
        case .helper(let helper): return try helper.open(connection: connection, file: file, isFirst: isFirst)
        }
    }

    /// Opens that are bound to it go on.
    func close(connection: Int32, id: Int32) {
        switch self {
        case .own: _ = clinux_fuse_backing_close(connection, id)
        case .helper(let helper): helper.close(connection: connection, id: id)
        }
    }

    /// Not worth asking at this time.
    var isResting: Bool { if case .helper(let helper) = self { helper.isResting } else { false } }

    /// The kernel opens the backing file for programs with the rights of whoever bound it, and looks at no mode: the helper therefore
    /// takes only what its peer may write.
    var needsWritableFiles: Bool { if case .helper = self { true } else { false } }
}
