import DeviceService
import Dispatch
import Glibc
import UbiquityControl
import UbiquityModel

/// Deleting the local copy at sign-out.
///
/// 1. While the service runs, it brings to the cloud what is only here (`check`).
/// 2. It has ended, and the caller holds its lock: nothing is mounted any more, and what was saved until then is seen (`checkUnmounted`).
/// 3. The replicas are renamed (`setAside`): whoever mounts from now on finds nothing of them.
/// 4. The account goes, and then what was set aside; what is left of it by an interruption goes at the next start or sign-out.
enum Erasing {
    /// Such names are no containers'.
    private static let prefix = ".erased-"
    /// Nothing may be only here: neither what waits to be sent, nor what is never sent.
    static func check(_ startup: Startup, _ account: Account) throws {
        let table = try MountTable.load(startup.home)
        for folder in try ContainerFolder.all(startup.home, of: account) where table[folder.info.id.text] == nil {
            throw ControlError(
                folder.info.id.text,
                "it is not mounted, so what is only here cannot be known",
                remedy: "`ubiquity mount \(folder.info.id) DIR` first"
            )
        }
        guard !table.entries.isEmpty else { return }
        _ = try startup.ask(SyncRequest(timeoutSeconds: 60))
        let client = try startup.ensureService().client
        for point in table.entries.map(\.mountPoint) {
            var first: ControlPath?
            var count = 0
            let outcomes = try client.itemStatus(of: [ItemArgument(typed: point, path: point)]) { items in
                for item in items where ["local-only", "waiting", "uploading"].contains(item.state) {
                    if first == nil { first = item.path }
                    count += 1
                }
            }
            if let error = outcomes.compactMap(\.error).first { throw error }
            guard let path = first else { continue }
            let others = count > 1 ? " and \(count - 1) more items are" : " is"
            throw ControlError(
                "\(point)",
                "\(path)\(others) only here",
                remedy: "move them elsewhere, or sign out without --erase"
            )
        }
    }

    /// After everything is unmounted: what programs have saved since `check`.
    static func checkUnmounted(_ home: HomeDirectories, _ account: Account) throws(ControlError) {
        for folder in try ContainerFolder.all(home, of: account) {
            let found = try OnlyHere(in: folder)
            guard let first = found.first else { continue }
            let others = found.count > 1 ? " and \(found.count - 1) more items have" : " has"
            throw ControlError(
                .tryAgain,
                folder.info.id.text,
                "\(first)\(others) changed and not reached the cloud",
                remedy: "run the command again, or sign out without --erase"
            )
        }
    }

    /// On the disk when it returns: a power loss brings no replica back whose account has gone.
    static func setAside(_ home: HomeDirectories, _ account: Account) throws(ControlError) {
        let now = Timestamp.now().nanoseconds
        for (number, folder) in try ContainerFolder.all(home, of: account).enumerated() {
            guard rename(folder.path, "\(home.containers)/\(prefix)\(now)-\(number)") == 0 else {
                throw ControlError(folder.path, "cannot be removed: \(systemMessage(errno))")
            }
            try StateFile.synchronizeFolder(of: folder.path)
        }
    }

    static func removeSetAside(_ home: HomeDirectories) throws(ControlError) {
        for path in whatIsSetAside(home) {
            // Files of 0444 in folders of 0555 go too: rm is careful about links and mounts.
            let status = try Subcommand.run(["rm", "-rf", "--one-file-system", "--", path])
            // Another one may be at it, which a sign-out has outrun.
            guard status == 0 || access(path, F_OK) != 0 else { throw ControlError(path, "cannot be removed") }
        }
    }

    /// Beside the service: nobody waits for it.
    static func removeSetAsideSoon(_ home: HomeDirectories) {
        DispatchQueue.global(qos: .utility).async { try? removeSetAside(home) }
    }

    private static func whatIsSetAside(_ home: HomeDirectories) -> [String] {
        guard let stream = opendir(home.containers) else { return [] }
        defer { closedir(stream) }
        var result = [String]()
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name.hasPrefix(prefix) { result.append("\(home.containers)/\(name)") }
        }
        return result
    }
}
