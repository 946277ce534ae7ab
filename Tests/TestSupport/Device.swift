import Glibc

/// A device of a test: a `UBIQUITY_HOME`, a mount point, and the program driven as a person would.
package final class Device: Sendable {
    package let name: String
    package let site: Site
    /// `UBIQUITY_HOME`: everything that the device keeps.
    package let home: String
    package let mountPoint: String
    package let environment: [String: String]

    init(_ name: String, site: Site, parent: String, patience: Int?) {
        self.name = name
        self.site = site
        // A device on a machine with several is told apart by the last component.
        home = parent + "/" + name
        mountPoint = parent + "/" + name + "-mount"
        var environment = Command.plainEnvironment
        environment["HOME"] = site.userFolder
        environment["UBIQUITY_HOME"] = home
        if let patience { environment["UBIQUITY_PATIENCE"] = String(patience) }
        self.environment = environment
    }

    /// The path of an item in the mount.
    package func path(_ item: String) -> String { item.isEmpty ? mountPoint : mountPoint + "/" + item }

    // MARK: - Running the program

    package func start(_ words: [String], folder: String = "/") throws -> Command {
        try site.start([TestSettings.binary] + words, environment: environment, folder: folder)
    }

    @discardableResult
    package func run(_ words: [String], limit: Duration = .seconds(60)) throws -> Command.Result {
        try start(words).wait(limit)
    }

    @discardableResult
    package func run(_ words: String..., limit: Duration = .seconds(60)) throws -> Command.Result {
        try run(words, limit: limit)
    }

    /// Runs a verb that must succeed.
    @discardableResult
    package func succeed(_ words: String..., limit: Duration = .seconds(60)) throws -> Command.Result {
        let result = try run(words, limit: limit)
        guard result.isSuccess else { throw TestFailure("on \(name): \(result)") }
        return result
    }

    package func json(_ words: String..., limit: Duration = .seconds(60)) throws -> JSON {
        let result = try run(words + ["--json"], limit: limit)
        guard result.isSuccess else { throw TestFailure("on \(name): \(result)") }
        return try JSON(result.bytes)
    }

    /// Runs an ordinary program with the device's environment, in the mount.
    @discardableResult
    package func shell(_ script: String, limit: Duration = .seconds(60)) throws -> Command.Result {
        let result = try startShell(script).wait(limit)
        guard result.isSuccess else { throw TestFailure("on \(name): \(result)") }
        return result
    }

    package func startShell(_ script: String) throws -> Command {
        try site.start(["bash", "-euo", "pipefail", "-c", script], environment: shellEnvironment, folder: mountPoint)
    }

    private var shellEnvironment: [String: String] {
        environment.merging(["UBIQUITY": TestSettings.binary]) { $1 }
    }

    // MARK: - Life

    package func up() throws {
        try succeed("up", mountPoint)
    }

    package struct Invitation: Sendable {
        package var url: String
        package var code: String

        package init(url: String, code: String) {
            self.url = url
            self.code = code
        }
    }

    /// Opens the embedded server on this machine's own address and reads the line that it prints.
    package func invite() throws -> Invitation {
        try Device.invitation(in: succeed("invite", "--address", "127.0.0.1").output)
    }

    /// Finds `ubiquity join URL CODE DIR`.
    package static func invitation(in output: String) throws -> Invitation {
        let words = output.split(whereSeparator: \.isWhitespace).map(String.init)
        guard let start = words.firstIndex(of: "join"), start > 0, words[start - 1].hasSuffix("ubiquity"),
            words.count > start + 3
        else { throw TestFailure("no line to type in: \(output)") }
        return Invitation(url: words[start + 1], code: words[start + 2])
    }

    package func join(_ invitation: Invitation) throws {
        try succeed("join", invitation.url, invitation.code, mountPoint)
    }

    package func down() throws {
        try succeed("down", mountPoint)
    }

    /// Returns when everything local is in the cloud and everything known from the cloud is here.
    package func sync(limit: Duration = .seconds(60)) throws {
        try succeed("sync", "--timeout", String(limit.components.seconds), limit: limit + .seconds(10))
    }

    package func setOffline(_ isOffline: Bool) throws {
        try succeed("offline", isOffline ? "on" : "off")
    }

    // MARK: - Processes

    /// Daemons only: what the tests started in their own session does not count.
    private var daemons: [Processes.Found] {
        Processes.having("UBIQUITY_HOME", home).filter {
            $0.session != getsid(0) && $0.words.first?.hasSuffix("ubiquity") == true
        }
    }

    package var servicePIDs: [Int32] { daemons.filter { !Device.isServer($0) }.map(\.pid) }
    package var serverPIDs: [Int32] { daemons.filter(Device.isServer).map(\.pid) }

    /// The process that serves the mount: the first of those that belong to it.
    package func servicePID() throws -> Int32 {
        guard let pid = servicePIDs.first else { throw TestFailure("\(name) has no service: \(daemons)") }
        return pid
    }

    package func serverPID() throws -> Int32 {
        guard let pid = serverPIDs.first else { throw TestFailure("\(name) has no server: \(daemons)") }
        return pid
    }

    /// `kill -9`; returns when it is gone.
    package func killService() throws {
        try Device.kill(servicePIDs, "the service of \(name)")
    }

    package func killServer() throws {
        try Device.kill(serverPIDs, "the server of \(name)")
    }

    private static func kill(_ pids: [Int32], _ what: String) throws {
        guard !pids.isEmpty else { throw TestFailure("\(what) does not run") }
        for pid in pids { Glibc.kill(pid, SIGKILL) }
        try eventually("\(what) is gone") { pids.allSatisfy { !Processes.exists($0) } }
    }

    private static func isServer(_ process: Processes.Found) -> Bool { process.words.dropFirst().first == "serve" }
}
