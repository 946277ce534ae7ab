package import SystemPackage

/// Why a replica cannot be used, or a step on it failed.
package enum ReplicaError: Error, Hashable, Sendable {
    /// A system call: what was done, and on what.
    case system(operation: String, path: String, Errno)
    /// SQLite, in its words.
    case database(String)
    /// Written by a newer version of the program.
    case tooNew(what: String, version: UInt32)
    /// Something of ours cannot be read back.
    case corrupted(String)
    /// Another process has this replica open.
    case inUse(path: String)
    /// The disk's filesystem has no extended attributes for users, without which there are no placeholders.
    case noExtendedAttributes(path: String)
}

extension ReplicaError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .system(let operation, let path, let error): "\(operation) \(path): \(error)"
        case .database(let message): "state database: \(message)"
        case .tooNew(let what, let version):
            "\(what) has format version \(version), written by a newer version of ubiquity: update ubiquity"
        case .corrupted(let what): "\(what) is damaged"
        case .inUse(let path): "\(path) is in use by another process"
        case .noExtendedAttributes(let path):
            "the filesystem of \(path) has no user extended attributes, which ubiquity needs"
        }
    }
}

extension ReplicaError {
    /// Turns a failed system call into an error that says on what it failed.
    static func naming<Result: ~Copyable>(
        _ operation: String,
        _ path: String,
        _ body: () throws(Errno) -> Result
    ) throws(ReplicaError) -> Result {
        do throws(Errno) { return try body() } catch { throw .system(operation: operation, path: path, error) }
    }
}
