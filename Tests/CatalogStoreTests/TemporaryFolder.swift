import Glibc
import TestSupport

/// A folder that goes with its owner.
final class TemporaryFolder: Sendable {
    let path: String

    /// In memory where there is such a filesystem, for tests that write much and ask nothing of a disk.
    static func inMemory() throws -> TemporaryFolder {
        try TemporaryFolder(in: access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp")
    }

    init(in parent: String = "/tmp") throws {
        var template = Array("\(parent)/ubiquity-test-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw TestFailure("no temporary folder: error \(errno)") }
        path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    deinit { Self.remove(path) }

    private static func remove(_ path: String) {
        for name in (try? Files.names(in: path)) ?? [] { remove(path + "/" + name) }
        if unlink(path) != 0 { rmdir(path) }
    }
}
