import Glibc
import TestSupport
import Testing

/// A folder for one test, removed afterwards.
func withScratchFolder<Value>(in parent: String = "/tmp", _ body: (String) async throws -> Value) async throws -> Value
{
    var template = Array("\(parent)/ubiquity-service-XXXXXX".utf8CString)
    try #require(mkdtemp(&template) != nil)
    let folder = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    defer {
        _ = try? TestSupport.run("chmod", "-R", "u+rwX", folder)
        _ = try? TestSupport.run("rm", "-rf", folder)
    }
    return try await body(folder)
}
