import ArgumentParser
import CloudClient
import DeviceService
import UbiquityControl

struct SignOut: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Sign this device out.",
        discussion: """
            The documents are no longer reachable on this device. Nothing is deleted; what has not been sent is kept, and sent \
            when the same account signs in again.
            """
    )

    @Flag(help: "Also delete the local copy; refused while something is only here.")
    var erase = false

    func run() async throws {
        let home = try HomeDirectories.current()
        let startup = try Startup(home)
        defer { withExtendedLifetime(startup) {} }
        guard let account = try Account.load(home) else { throw ControlError.notSignedIn() }
        if erase { try Erasing.check(startup, account) }
        var unsent = 0
        if let client = try startup.connect() {
            unsent = try client.send(UnsentRequest()).count
            if erase, unsent > 0 {
                throw ControlError(
                    .tryAgain,
                    "sign-out",
                    "\(unsent) changes have not been sent or applied",
                    remedy: "`ubiquity sync`, or sign out without --erase"
                )
            }
            // What is to be erased is looked at once more, and comes back if there is something new in it.
            _ = try client.send(StopRequest(forgetsMounts: !erase, refusesWriters: true))
            client.waitForEnd()
        }
        if erase { try Erasing.checkUnmounted(startup, account) }
        // The token is of no use from now on; offline it stays in the list of devices until it is revoked elsewhere.
        try? await AccountCloud.ask("sign-out") { (cloud, _) async throws(CloudError) in try await cloud.signOut() }
        // Nothing of this account comes back under another one, not even an import that was begun.
        var table = try MountTable.load(home)
        table.entries = []
        try table.save(home)
        try Account.remove(home)
        if account.serverIsEmbedded { try EmbeddedServer.stop(home) }
        if erase {
            try Erasing.erase(home, account)
            Terminal.write("signed out; the local copy is deleted")
            return
        }
        let kept = unsent > 0 ? "; \(unsent) changes that have not been sent are kept here" : ""
        Terminal.write("signed out; sign in again to get your documents back\(kept)")
    }
}
