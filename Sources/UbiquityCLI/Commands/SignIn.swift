import ArgumentParser
import CloudClient
import DeviceService
import Glibc
import UbiquityControl

struct SignIn: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Sign this device in.",
        discussion: """
            What was mounted when the same account was signed out is mounted again; nothing else is. `ubiquity mount CONTAINER DIR` \
            mounts then.
            """
    )

    @Argument(help: "The server's address.")
    var url: String

    @Option(help: "The account that the code must belong to.")
    var account: String?

    @Option(help: "The invitation's code; asked for on a terminal.")
    var code: String?

    @Option(help: "What other devices call this one.")
    var deviceName: String?

    func run() async throws {
        let home = try HomeDirectories.current()
        let startup = try Startup(home)
        defer { withExtendedLifetime(startup) {} }
        if let present = try Account.load(home) {
            throw ControlError(
                "account",
                "this device is signed in to \(present.credentials.url) as \(present.credentials.account)",
                remedy: "`ubiquity sign-out` first"
            )
        }
        try await SigningIn.join(url: url, code: try typedCode(), deviceName: deviceName, startup, expecting: account)
        try Mounting.mountAgain(startup)
    }

    private func typedCode() throws -> String {
        if let code { return code }
        guard isatty(STDIN_FILENO) == 1, Terminal.errorsAreTerminal else {
            throw ControlError(
                .usage,
                "sign-in",
                "--code is missing",
                remedy: "`ubiquity invite`, on a device that is signed in, prints one"
            )
        }
        Terminal.write(Array("code: ".utf8), to: STDERR_FILENO)
        return readLine() ?? ""
    }
}
