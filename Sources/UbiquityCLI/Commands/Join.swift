import ArgumentParser
import CloudClient
import DeviceService
import UbiquityControl

struct Join: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Sign this device in with an invitation, and mount.",
        discussion: "`ubiquity invite`, on a device that is signed in, prints the line to type here."
    )

    @Argument(help: "The server's address.")
    var url: String

    @Argument(help: "The invitation's code: good once, for 15 minutes.")
    var code: String

    @Argument(help: "Where the folder appears; made if it does not exist.")
    var dir: String

    @Flag(name: .customLong("import"), help: "Move what is in DIR into the container first.")
    var imports = false

    func run() async throws {
        let home = try HomeDirectories.current()
        let startup = try Startup(home)
        defer { withExtendedLifetime(startup) {} }
        try await Mounting.at(dir, imports: imports, home) { point in
            try await signIn(startup)
            let request = MountRequest(container: nil, mountPoint: point, createsContainer: true, imports: imports)
            try Mounting.mount(request, startup)
        }
    }

    private func signIn(_ startup: Startup) async throws {
        if let account = try Account.load(startup.home) {
            // The same line once more, after something went wrong: the code is used up, and not needed.
            guard account.credentials.url == url || account.credentials.url + "/" == url else {
                throw ControlError(
                    "join",
                    "this device is signed in to \(account.credentials.url) as \(account.credentials.account)",
                    remedy: "`ubiquity sign-out` first"
                )
            }
        } else {
            try await SigningIn.join(url: url, code: code, deviceName: nil, startup)
        }
    }
}
