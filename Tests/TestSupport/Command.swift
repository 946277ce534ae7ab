import Foundation
import Glibc

/// A process that a test starts. Its output goes to files, so that a daemon that it leaves behind never holds a pipe that
/// somebody reads to its end.
///
/// 1. `init` starts it, in a process group of its own.
/// 2. `wait` returns its result, or kills the whole group at the deadline and throws.
/// 3. A thread of its own reaps it, whether anybody waits or not.
package final class Command: @unchecked Sendable {
    // Unchecked: `exit` and `isReaped` are guarded by `condition`; everything else is constant.
    private let condition = NSCondition()
    private var exit: Int32?
    private var isReaped = false

    package let words: [String]
    package let pid: Int32
    private let output: NamelessFile
    private let failures: NamelessFile
    private let start = ContinuousClock.now

    package struct Result: Sendable, CustomStringConvertible {
        package var words: [String]
        /// The exit code; 128 plus the signal's number for a process that was killed.
        package var code: Int32
        package var bytes: [UInt8]
        package var errors: String
        package var duration: Duration

        package var output: String { String(decoding: bytes, as: UTF8.self) }
        package var isSuccess: Bool { code == 0 }

        package var description: String {
            "`\(words.joined(separator: " "))` ended with \(code) after \(duration)\n\(output.suffix(2000))\(errors.suffix(2000))"
        }
    }

    /// - Parameter environment: the whole environment; nothing is inherited.
    package init(
        _ words: [String],
        environment: [String: String] = Command.plainEnvironment,
        folder: String = "/",
        input: String = "/dev/null"
    ) throws {
        self.words = words
        output = try NamelessFile()
        failures = try NamelessFile()

        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, input, O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, output.descriptor, 1)
        posix_spawn_file_actions_adddup2(&actions, failures.descriptor, 2)
        // Not the ports that other tests of this process listen on: a command that outlives such a test would keep them taken.
        _ = Self.closeFrom?(&actions, 3)

        // Dispatch's threads block most signals, and a child would inherit that.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setpgroup(&attributes, 0)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK))

        // `env` changes the folder and becomes the program.
        let line = folder == "/" ? words : ["env", "-C", folder] + words
        var arguments: [UnsafeMutablePointer<CChar>?] = line.map { strdup($0) } + [nil]
        var variables: [UnsafeMutablePointer<CChar>?] = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for text in arguments + variables { free(text) } }
        var pid: Int32 = 0
        // The caller's PATH finds the program.
        let failure = posix_spawnp(&pid, line.first ?? "", &actions, &attributes, &arguments, &variables)
        guard failure == 0 else { throw SystemError("starting", words.first ?? "", failure) }
        self.pid = pid
        Thread.detachNewThread { self.reap() }
    }

    /// `posix_spawn_file_actions_addclosefrom_np` (glibc 2.34), which Swift's module of glibc does not show.
    private static let closeFrom = dlsym(nil, "posix_spawn_file_actions_addclosefrom_np").map {
        unsafeBitCast($0, to: (@convention(c) (UnsafeMutablePointer<posix_spawn_file_actions_t>, Int32) -> Int32).self)
    }

    /// What a program needs, and nothing of the machine that could change what it does.
    package static var plainEnvironment: [String: String] {
        var variables = ["LANG": "C.UTF-8", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"]
        variables["PATH"] = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        variables["HOME"] = "/nonexistent"
        for role in ["AUTHOR", "COMMITTER"] {
            variables["GIT_\(role)_NAME"] = "A Tester"
            variables["GIT_\(role)_EMAIL"] = "tester@example.org"
        }
        return variables
    }

    // MARK: - While it runs

    /// What it has written so far.
    package var outputSoFar: String { String(decoding: output.bytes, as: UTF8.self) }
    package var errorsSoFar: String { String(decoding: failures.bytes, as: UTF8.self) }

    package var isRunning: Bool { condition.withLock { exit == nil } }

    /// Sends a signal to the process alone, never to another one that got its number.
    package func send(_ signal: Int32) {
        condition.withLock {
            if !isReaped { _ = Glibc.kill(pid, signal) }
        }
    }

    /// Kills the process and what it started in its group.
    package func kill() {
        condition.withLock {
            if !isReaped { _ = Glibc.kill(-pid, SIGKILL) }
        }
    }

    /// Waits for its end; at the deadline writes down where it hangs, kills it and throws.
    @discardableResult
    package func wait(_ limit: Duration = .seconds(60)) throws -> Result {
        guard let code = code(within: limit) else {
            let place = Processes.whereabouts(of: pid)
            kill()
            throw TestFailure(
                "`\(words.joined(separator: " "))` was still running after \(limit)\n\(place)\n\(outputSoFar.suffix(2000))"
                    + "\(errorsSoFar.suffix(2000))"
            )
        }
        return Result(
            words: words,
            code: code,
            bytes: output.bytes,
            errors: errorsSoFar,
            duration: ContinuousClock.now - start
        )
    }

    /// Waits for its end, which may not come.
    package func hasEnded(within limit: Duration) -> Bool { code(within: limit) != nil }

    private func code(within limit: Duration) -> Int32? {
        let deadline = Date(timeIntervalSinceNow: limit.seconds)
        condition.lock()
        defer { condition.unlock() }
        while exit == nil, condition.wait(until: deadline) {}
        return exit
    }

    private func reap() {
        var information = siginfo_t()
        while waitid(P_PID, id_t(pid), &information, WEXITED | WNOWAIT) != 0, errno == EINTR {}
        condition.withLock {
            var status: Int32 = 0
            while waitpid(pid, &status, 0) < 0, errno == EINTR {}
            isReaped = true
            let signal = status & 0x7f
            exit = signal == 0 ? (status >> 8) & 0xff : 128 + signal
            condition.broadcast()
        }
    }
}

/// A file without a name, so that nothing is left of it whatever happens.
private final class NamelessFile: Sendable {
    let descriptor: Int32

    init() throws {
        let name = NSTemporaryDirectory() + "/ubiquity-test-\(UUID().uuidString)"
        descriptor = try Files.open(name, O_RDWR | O_CREAT | O_EXCL | O_APPEND)
        unlink(name)
    }

    deinit {
        close(descriptor)
    }

    var bytes: [UInt8] {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return [] }
        return [UInt8](unsafeUninitializedCapacity: Int(status.st_size)) { buffer, filled in
            filled = max(0, pread(descriptor, buffer.baseAddress, buffer.count, 0))
        }
    }
}

/// Runs a program to its end.
@discardableResult
package func run(
    _ words: String...,
    environment: [String: String] = Command.plainEnvironment,
    folder: String = "/",
    limit: Duration = .seconds(60)
) throws -> Command.Result {
    try Command(words, environment: environment, folder: folder).wait(limit)
}

/// Runs a program that must succeed.
@discardableResult
package func succeed(
    _ words: String...,
    environment: [String: String] = Command.plainEnvironment,
    folder: String = "/",
    limit: Duration = .seconds(60)
) throws -> Command.Result {
    let result = try Command(words, environment: environment, folder: folder).wait(limit)
    guard result.isSuccess else { throw TestFailure("\(result)") }
    return result
}

extension Duration {
    package var seconds: Double {
        Double(components.seconds) + Double(components.attoseconds) / 1e18
    }
}
