import ArgumentParser
import CloudClient
import DeviceService
import UbiquityControl

struct SignOut: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Sign this device out.",
        discussion: """
            The documents are no longer reachable on this device: mounts stay only for what programs have open in them. Nothing is \
            deleted; what has not been sent is kept, and sent when the same account signs in again.
            """
    )

    @Flag(help: "Also delete the local copy; refused while something is only here.")
    var erase = false

    func run() async throws {
        let home = try HomeDirectories.current()
        let startup = try Startup(home)
        defer { withExtendedLifetime(startup) {} }
        // By one that did not come to its end.
        try? Erasing.removeSetAside(home)
        guard let account = try Account.load(home) else { throw ControlError.notSignedIn() }
        if erase { try await eraseAll(startup, account) } else { try await leaveAll(startup, account) }
    }

    private func leaveAll(_ startup: Startup, _ account: Account) async throws {
        let left = try startup.askRunning(SignOutRequest())?.answer
        let here = left == nil ? try Self.signOutMounts(startup, account) : 0
        try await Self.end(account, startup.home)
        if let left, left.mounts.isEmpty {
            try startup.askRunning(StopRequest(forgetsMounts: false, refusesWriters: false))?.client.waitForEnd()
        }
        let kept =
            switch (left?.unsent ?? 0, here) {
            case (0, 0): ""
            case (1, _): "; 1 change that has not been sent is kept here"
            case (let count, _) where count > 1: "; \(count) changes that have not been sent are kept here"
            case (_, 1): "; 1 item that is only here is kept"
            case (_, let count): "; \(count) items that are only here are kept"
            }
        Terminal.write("signed out; sign in again to get your documents back\(kept)")
        for point in left?.mounts ?? [] {
            Terminal.write("\(point) stays mounted for what is open there; `ubiquity down \(point)` unmounts it")
        }
    }

    /// What the service would do, if it ran.
    /// - Returns: how many items are only here.
    private static func signOutMounts(_ startup: Startup, _ account: Account) throws(ControlError) -> Int {
        let home = startup.home
        let lock = try startup.withoutService()
        defer { withExtendedLifetime(lock) {} }
        let replicas = try ContainerFolder.all(home, of: account)
        var table = try MountTable.load(home)
        table.signOut(replicas)
        try table.save(home)
        // For the message: what cannot be looked through keeps nobody from signing out.
        return replicas.reduce(0) { $0 + ((try? OnlyHere(in: $1).count) ?? 0) }
    }

    private func eraseAll(_ startup: Startup, _ account: Account) async throws {
        let home = startup.home
        try Erasing.check(startup, account)
        if let client = try startup.connect() {
            let unsent = try client.send(UnsentRequest()).count
            if unsent > 0 {
                throw ControlError(
                    .tryAgain,
                    "sign-out",
                    "\(unsent) changes have not been sent or applied",
                    remedy: "`ubiquity sync`, or sign out without --erase"
                )
            }
            // What is to be erased is looked at once more, and comes back if there is something new in it.
            _ = try client.send(StopRequest(forgetsMounts: false, refusesWriters: true))
            client.waitForEnd()
        }
        // Until the end, so that nothing is mounted in between: not all who start a service hold the start lock.
        var lock: FileLock? = try FileLock(owning: home.serviceLock, patience: .seconds(30))
        do { try Erasing.checkUnmounted(home, account) } catch {
            lock = nil
            _ = try? startup.ensureService()
            throw error
        }
        defer { withExtendedLifetime(lock) {} }
        var table = try MountTable.load(home)
        table.entries = []
        try table.save(home)
        try Erasing.setAside(home, account)
        try await Self.end(account, home)
        try Erasing.removeSetAside(home)
        Terminal.write("signed out; the local copy is deleted")
    }

    private static func end(_ account: Account, _ home: HomeDirectories) async throws {
        // The token is of no use from now on; offline it stays in the list of devices until it is revoked elsewhere.
        try? await AccountCloud.ask("sign-out", evenOffline: true) { (cloud, _) async throws(CloudError) in
            try await cloud.signOut()
        }
        try Account.remove(home)
        if account.serverIsEmbedded { try EmbeddedServer.stop(home) }
    }
}
