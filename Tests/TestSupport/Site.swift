import Dispatch
import Foundation
import Glibc
import Synchronization

/// A folder with devices and servers in it, for the length of one test.
///
/// 1. `withSite` makes it and runs the test's body on a thread of its own, where it may block.
/// 2. At the deadline the watchdog writes down where every process is and kills them all, which frees whoever waits on a
///    mount; the test then fails.
/// 3. In the end everything is killed, unmounted and removed, whatever happened. Orderly ends are subjects of tests, not of
///    this clean-up.
package final class Site: Sendable {
    package let folder: String
    /// `HOME` of everything in the site. Empty: nothing of the product may write there.
    package let userFolder: String
    /// A folder for what lies outside all mounts.
    package let outside: String
    /// Every folder that is the site's: processes and mounts in them end with it.
    private let folders: Mutex<[String]>
    private let commands = Mutex<[Command]>([])
    private let expired = Mutex(false)

    fileprivate init() throws {
        guard access(TestSettings.binary, X_OK) == 0 else {
            throw TestFailure("there is no \(TestSettings.binary): run Tools/build first")
        }
        folder = try Site.makeFolder(in: TestSettings.folder)
        folders = Mutex([folder])
        userFolder = folder + "/user"
        outside = folder + "/outside"
        try Files.makeFolder(userFolder)
        try Files.makeFolder(outside)
    }

    /// A device that has not been set up yet. Its state lies in the site's folder, or below `parent`.
    /// - Parameter patience: how many seconds programs wait there for what does not come, instead of 30.
    package func device(
        _ name: String,
        in parent: String? = nil,
        patience: Int? = nil,
        variables: [String: String] = [:]
    ) -> Device {
        var variables = variables
        if let patience { variables["UBIQUITY_PATIENCE"] = String(patience) }
        return Device(name, site: self, parent: parent ?? folder, variables: variables)
    }

    /// A device of an ordinary user, in a test that root runs.
    package func device(_ name: String, of user: OrdinaryUser, variables: [String: String] = [:]) -> Device {
        Device(name, site: self, parent: user.folder, user: user, variables: variables)
    }

    /// Two devices with one container: A with the embedded server, B joined to it.
    /// - Parameter patience: of B.
    package func pair(patience: Int? = nil) throws -> (a: Device, b: Device) {
        let a = device("a")
        let b = device("b", patience: patience)
        try a.up()
        try b.join(a.invite())
        return (a, b)
    }

    /// A folder on a filesystem of some 100 MB.
    package func smallFolder() throws -> String {
        guard let parent = TestSettings.smallFilesystem else { throw TestFailure("there is no small filesystem") }
        let small = try Site.makeFolder(in: parent)
        folders.withLock { $0.append(small) }
        return small
    }

    private static func makeFolder(in parent: String) throws -> String {
        var template = Array((parent + "/uq-XXXXXX").utf8CString)
        guard mkdtemp(&template) != nil else { throw SystemError("making a folder in", parent, errno) }
        return String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    /// Starts a process that ends with the site.
    package func start(
        _ words: [String],
        environment: [String: String] = Command.plainEnvironment,
        folder: String = "/"
    ) throws -> Command {
        let command = try Command(words, environment: environment, folder: folder)
        commands.withLock { $0.append(command) }
        return command
    }

    /// Runs strace on a process, with all its threads, until it is interrupted (SIGINT). Returns when it is attached. Needs root.
    package func startTracing(_ process: Int32, _ words: [String]) throws -> Command {
        let strace = try start(["strace", "-f", "-p", "\(process)"] + words)
        try eventually("strace is attached") {
            guard strace.isRunning else { throw TestFailure("\(try strace.wait())") }
            return strace.errorsSoFar.contains("attached")
        }
        return strace
    }

    // MARK: - The end

    /// Kills every process that has its state in the site, and what the test started.
    package func killAll() {
        for command in commands.withLock({ $0 }) { command.kill() }
        for process in processes() { kill(process.pid, SIGKILL) }
    }

    private func processes() -> [Processes.Found] {
        folders.withLock { $0 }.flatMap { Processes.having("UBIQUITY_HOME", prefix: $0 + "/") }
    }

    fileprivate func expire() {
        expired.withLock { $0 = true }
        let places = processes().map { Processes.whereabouts(of: $0.pid) }
        print("the site's time is over\n" + places.joined(separator: "\n"))
        killAll()
    }

    fileprivate func close(failed: Bool) {
        if failed { printLogs() }
        // A killed process may have started another one just before.
        _ = try? eventually("processes of the site are gone", within: .seconds(10)) {
            killAll()
            return processes().isEmpty
        }
        for folder in folders.withLock({ $0 }) {
            for point in Mounts.points(under: folder).reversed() { Mounts.detach(point) }
            if failed, TestSettings.keepsFolders {
                print("left for you to look at: \(folder)")
            } else {
                _ = try? run("chmod", "-R", "u+rwX", folder)
                _ = try? run("rm", "-rf", "--one-file-system", folder)
            }
        }
    }

    fileprivate var isExpired: Bool { expired.withLock { $0 } }

    /// The ends of all logs: most failures tell of themselves there.
    private func printLogs() {
        let logs = (try? run("find", folder, "-xdev", "-name", "*.log", "-not", "-path", "*/tree/*").output) ?? ""
        for log in logs.split(separator: "\n") {
            let lines = ((try? Files.text(String(log))) ?? "").split(separator: "\n").suffix(40)
            print("--- \(log)\n" + lines.joined(separator: "\n"))
        }
    }
}

/// Runs a test's body with a site of its own.
///
/// - Parameter limit: when the watchdog ends it.
package func withSite(
    limit: Duration = .seconds(180),
    _ body: @Sendable (Site) throws -> Void
) async throws {
    let site = try Site()
    let watchdog = DispatchSource.makeTimerSource(queue: .global(qos: .userInitiated))
    watchdog.setEventHandler { site.expire() }
    watchdog.schedule(deadline: .now() + limit.seconds)
    watchdog.activate()
    defer { watchdog.cancel() }
    // Bodies block: in system calls on a mount, and for processes.
    let failure = await withTaskExecutorPreference(BodyExecutor()) { () async -> (any Error)? in
        do {
            try body(site)
            site.close(failed: site.isExpired)
            return nil
        } catch {
            site.close(failed: true)
            return error
        }
    }
    if let failure {
        throw site.isExpired ? TestFailure("not done within \(limit): \(failure)") : failure
    }
    if site.isExpired { throw TestFailure("not done within \(limit)") }
}

/// Runs jobs on a thread of its own, so that a body that blocks takes no thread of Swift's cooperative pool.
private final class BodyExecutor: TaskExecutor {
    private let queue = DispatchQueue(label: "ubiquity.test-body")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
