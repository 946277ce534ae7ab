import DeviceService
import Glibc
import UbiquityControl
import UbiquityModel

/// Deleting the local copy at sign-out.
enum Erasing {
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
        let roots = table.entries.map { ItemArgument(typed: $0.mountPoint, path: $0.mountPoint) }
        for outcome in try startup.ask(ItemStatusRequest(paths: roots)).answer {
            if let error = outcome.error { throw error }
            let only = (outcome.value ?? []).filter { ["local-only", "waiting", "uploading"].contains($0.state) }
            guard let first = only.first else { continue }
            let others = only.count > 1 ? " and \(only.count - 1) more items are" : " is"
            throw ControlError(
                "\(outcome.path)",
                "\(first.path)\(others) only here",
                remedy: "move them elsewhere, or sign out without --erase"
            )
        }
    }

    /// After everything is unmounted: what programs have saved since `check`. If there is anything, the service comes back with it.
    static func checkUnmounted(_ startup: Startup, _ account: Account) throws(ControlError) {
        for folder in try ContainerFolder.all(startup.home, of: account) {
            let found = try OnlyHere(in: folder)
            guard let first = found.first else { continue }
            _ = try? startup.ensureService()
            let others = found.count > 1 ? " and \(found.count - 1) more items have" : " has"
            throw ControlError(
                .tryAgain,
                folder.info.id.text,
                "\(first)\(others) changed and not reached the cloud",
                remedy: "run the command again, or sign out without --erase"
            )
        }
    }

    static func erase(_ home: HomeDirectories, _ account: Account) throws(ControlError) {
        for folder in try ContainerFolder.all(home, of: account) {
            // Files of 0444 in folders of 0555 go too: rm is careful about links and mounts.
            let status = try Subcommand.run(["rm", "-rf", "--one-file-system", "--", folder.path])
            guard status == 0 else { throw ControlError(folder.path, "cannot be removed") }
        }
    }
}
