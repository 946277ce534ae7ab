import ArgumentParser
import DeviceService
import UbiquityControl

struct Up: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Mount a synchronised folder on this machine.",
        discussion: """
            Starts a server on this machine if this device is not signed in anywhere, makes the container Documents if there is \
            none, mounts it at DIR and goes to the background. A second call is harmless, and repairs what has died.
            """
    )

    @Argument(help: "Where the folder appears; made if it does not exist.")
    var dir: String

    @Flag(name: .customLong("import"), help: "Move what is in DIR into the container first.")
    var imports = false

    func run() async throws {
        let home = try HomeDirectories.current()
        let startup = try Startup(home)
        defer { withExtendedLifetime(startup) {} }
        try await Mounting.at(dir, imports: imports, home) { point in
            if try Account.load(home) == nil {
                try Mounting.refuseOthers(at: point, home)
                try await SigningIn.embedded(startup)
            }
            let request = MountRequest(container: nil, mountPoint: point, createsContainer: true, imports: imports)
            try Mounting.mount(request, startup)
        }
    }
}
