import Foundation

/// What `Tools/test` and a person tell the mount tests through the environment.
package enum TestSettings {
    /// The program under test: `UBIQUITY_TEST_BINARY`, else the release build of this package.
    package static var binary: String {
        variable("UBIQUITY_TEST_BINARY") ?? package.appending(path: ".build/release/ubiquity").path
    }

    /// The passthrough helper (`UBIQUITY_TEST_HELPER`), else as it is built with the tests.
    package static var helper: String {
        variable("UBIQUITY_TEST_HELPER") ?? package.appending(path: ".build/debug/ubiquity-passthrough-helper").path
    }

    /// What does not wait is over within this, on a machine that has much else to do: waiting takes 30 s and more. How fast something is
    /// no test tells, but `Tools/bench`.
    package static let atOnce = Duration.seconds(10)

    private static var package: URL {
        URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    }

    /// Where tests put their folders (`UBIQUITY_TEST_FOLDER`). Short, since a socket's path has at most 107 bytes.
    package static var folder: String { variable("UBIQUITY_TEST_FOLDER") ?? "/tmp" }

    /// A filesystem of some 100 MB that tests may fill (`UBIQUITY_TEST_SMALL`); only root can make one.
    package static var smallFilesystem: String? { variable("UBIQUITY_TEST_SMALL") }

    /// Sizes and counts as the acceptance asks for them, instead of those for every day (`UBIQUITY_TEST_FULL=1`).
    package static var isFullSize: Bool { variable("UBIQUITY_TEST_FULL") == "1" }

    /// How many times something is killed (`UBIQUITY_TEST_KILLS`).
    package static var kills: Int { variable("UBIQUITY_TEST_KILLS").flatMap { Int($0) } ?? (isFullSize ? 50 : 12) }

    /// Repeats a random test (`UBIQUITY_TEST_SEED`, which a failed run printed).
    package static var seed: UInt64 { givenSeed ?? UInt64.random(in: 1...UInt64(UInt32.max)) }
    package static var givenSeed: UInt64? { variable("UBIQUITY_TEST_SEED").flatMap { UInt64($0) } }

    /// How many random histories are played (`UBIQUITY_TEST_HISTORIES`).
    package static var histories: Int {
        variable("UBIQUITY_TEST_HISTORIES").flatMap { Int($0) } ?? (isFullSize ? 300 : 15)
    }

    /// Spoilt inputs for decoders, `UBIQUITY_TEST_FUZZ=SEED:COUNT`: the first seed, and how many of them (one without a count).
    package static var fuzz: (seed: UInt64, count: Int)? {
        let words = variable("UBIQUITY_TEST_FUZZ")?.split(separator: ":") ?? []
        guard let seed = words.first.flatMap({ UInt64($0) }) else { return nil }
        return (seed, words.dropFirst().first.flatMap { Int($0) } ?? 1)
    }

    /// Measurements are made only when asked for (`UBIQUITY_TEST_MEASURE=1`, by `Tools/measure`).
    package static var isMeasuring: Bool { variable("UBIQUITY_TEST_MEASURE") == "1" }

    /// Failed tests leave their folders behind (`UBIQUITY_TEST_KEEP=1`).
    package static var keepsFolders: Bool { variable("UBIQUITY_TEST_KEEP") == "1" }

    private static func variable(_ name: String) -> String? {
        ProcessInfo.processInfo.environment[name].flatMap { $0.isEmpty ? nil : $0 }
    }
}
