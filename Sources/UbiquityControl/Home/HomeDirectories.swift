internal import Glibc

/// Where a device keeps what is its own: below `UBIQUITY_HOME`, or in the XDG directories.
package struct HomeDirectories: Sendable, Hashable {
    /// `account.json`, `policy.json`, `settings.json`.
    package var configuration: String
    /// Containers, the embedded server's data, locks.
    package var data: String
    /// Logs.
    package var state: String
    /// The control socket.
    package var runtime: String
    /// The last component of `UBIQUITY_HOME`: tells devices on one machine apart.
    package var label: String?

    /// All below one folder, which is made absolute.
    package init(home: String) throws(ControlError) {
        let absolute = try HomeDirectories.absolute(home)
        (configuration, data, state, runtime) = (absolute, absolute, absolute, absolute)
        label = absolute.split(separator: "/").last.map(String.init)
    }

    /// What the environment says. From then on it says so absolutely: what this process starts runs in another folder.
    package static func current() throws(ControlError) -> HomeDirectories {
        guard let home = variable("UBIQUITY_HOME") else { return try HomeDirectories() }
        let directories = try HomeDirectories(home: home)
        if directories.data != home { setenv("UBIQUITY_HOME", directories.data, 1) }
        return directories
    }

    private init() throws(ControlError) {
        let home = try HomeDirectories.userFolder()
        configuration = (HomeDirectories.xdg("XDG_CONFIG_HOME") ?? home + "/.config") + "/ubiquity"
        data = (HomeDirectories.xdg("XDG_DATA_HOME") ?? home + "/.local/share") + "/ubiquity"
        state = (HomeDirectories.xdg("XDG_STATE_HOME") ?? home + "/.local/state") + "/ubiquity"
        // Not in XDG_RUNTIME_DIR, which comes with the first login and may go with the last: a service that was started before, or stays,
        // and who logs in then, would not find one another.
        runtime = state
        label = nil
    }

    package var accountFile: String { configuration + "/account.json" }
    /// Room on a full disk for files as the account's and the table of mounts: without them nothing could be evicted.
    package var reserveFile: String { configuration + "/reserve" }
    package var policyFile: String { configuration + "/policy.json" }
    package var settingsFile: String { configuration + "/settings.json" }
    package var mountsFile: String { data + "/mounts.json" }
    package var containers: String { data + "/containers" }
    package var server: String { data + "/server" }
    package var serverRecord: String { data + "/embedded-server.json" }
    /// Held by the device service for its life.
    package var serviceLock: String { data + "/service.lock" }
    /// Held by whoever starts or stops something.
    package var startLock: String { data + "/start.lock" }
    package var serviceLog: String { state + "/service.log" }
    package var serverLog: String { state + "/server.log" }
    package static let socketName = "socket"

    /// Makes what is missing, for the user alone.
    package func create() throws(ControlError) {
        for folder in Set([configuration, data, state, runtime]).sorted() {
            try HomeDirectories.makeFolders(folder, mode: 0o700)
        }
    }

    /// `mkdir -p`, but where it fails it leaves nothing behind.
    /// - Returns: what was not there before, from the top down.
    @discardableResult
    package static func makeFolders(_ path: String, mode: UInt32) throws(ControlError) -> [String] {
        if mkdir(path, mode) == 0 { return [path] }
        if errno == EEXIST { return [] }
        guard errno == ENOENT, let slash = path.lastIndex(of: "/"), slash != path.startIndex else {
            throw ControlError(path, "cannot be made: \(systemMessage(errno))")
        }
        let above = try makeFolders(String(path[..<slash]), mode: mode)
        if mkdir(path, mode) == 0 { return above + [path] }
        let code = errno
        if code == EEXIST { return above }
        removeEmptyFolders(above)
        throw ControlError(path, "cannot be made: \(systemMessage(code))")
    }

    /// Takes back what `makeFolders` has made, as far as nothing is in it, and nothing mounted on it.
    package static func removeEmptyFolders(_ made: [String]) {
        for folder in made.reversed() {
            guard rmdir(folder) == 0 else { return }
        }
    }

    private static func absolute(_ path: String) throws(ControlError) -> String {
        var path = path
        while path.count > 1, path.hasSuffix("/") { path.removeLast() }
        if path.hasPrefix("/") { return path }
        guard let buffer = getcwd(nil, 0) else { throw ControlError("UBIQUITY_HOME", systemMessage(errno)) }
        defer { free(buffer) }
        return String(cString: buffer) + "/" + path
    }

    private static func userFolder() throws(ControlError) -> String {
        if let home = variable("HOME") { return home }
        if let entry = getpwuid(getuid()), let folder = entry.pointee.pw_dir { return String(cString: folder) }
        throw ControlError("HOME", "it is not set, and this user has no entry in the password file")
    }

    /// The XDG specification: a relative path there is invalid and ignored.
    private static func xdg(_ name: String) -> String? { variable(name).flatMap { $0.hasPrefix("/") ? $0 : nil } }

    private static func variable(_ name: String) -> String? {
        getenv(name).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
    }
}

/// What the system says about an error number (given positive or negative).
package func systemMessage(_ code: Int32) -> String { String(cString: strerror(abs(code))) }
