import Foundation
import TestSupport
import Testing

/// Whatever bytes a decoder is given: it does not crash, takes no more memory than they justify, throws no errors but its own, and what
/// it accepts is the same again when it is encoded and decoded.
///
/// `UBIQUITY_TEST_FUZZ=7` tries the input of that seed on every decoder, `UBIQUITY_TEST_FUZZ=7:100000` so many from there.
@Suite struct FuzzTests {
    /// Of each decoder that takes microseconds, every day.
    private static let inputs = 2000

    /// Inputs are tried in a process of their own, which may die of one. What it was at then stands in a file, and the next decoder's turn
    /// comes in another process.
    @Test func `every decoder takes or refuses what comes`() async throws {
        let (first, count) = TestSettings.fuzz ?? (1, Self.inputs)
        let environment = ProcessInfo.processInfo.environment
        if let path = environment[FuzzRun.variable] {
            return try await FuzzRun(record: path).tryAll(first: first, count: count)
        }
        let record = TestSettings.folder + "/ubiquity-fuzz-\(UInt64.random(in: .min ... .max))"
        try FuzzRun.makeRecord(record)
        defer { try? Files.remove(record) }
        let limit: Duration = TestSettings.fuzz == nil ? .seconds(300) : .seconds(24 * 3600)
        while try FuzzRun.target(record) != nil {
            let program = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
            let words = [program, "--testing-library", "swift-testing", "--filter", "FuzzTests"]
            let child = try Command(words, environment: environment.merging([FuzzRun.variable: record]) { $1 })
            let result = try child.wait(limit)
            let told = result.output.split(separator: "\n").filter { $0.hasPrefix("fuzz: ") }
            if TestSettings.fuzz != nil { print(told.joined(separator: "\n")) }
            for broken in told where broken.contains(FuzzRun.again) { Issue.record("\(broken)") }
            guard let target = try FuzzRun.target(record) else {
                #expect(result.isSuccess, "\(result)")
                return
            }
            Issue.record(
                "\(target.name): ended with \(result.code), \(FuzzRun.again)\(try FuzzRun.seed(record))\n\(result.errors)"
            )
            try FuzzRun.skip(record)
        }
    }
}
