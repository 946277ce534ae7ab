import Glibc
import TestSupport

/// A folder that goes with its owner.
final class TemporaryFolder: Sendable {
    let path: String

    init() throws {
        var template = Array("/tmp/ubiquity-test-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw TestFailure("no temporary folder: error \(errno)") }
        path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    deinit { Self.remove(path) }

    private static func remove(_ path: String) {
        for name in (try? Files.names(in: path)) ?? [] { remove(path + "/" + name) }
        if unlink(path) != 0 { rmdir(path) }
    }
}
