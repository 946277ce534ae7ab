import ArgumentParser
import CLinux
import DeviceService
import Glibc
import UbiquityControl

struct Identity: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Tell whether this device is signed in.",
        discussion: """
            Prints a token that stays the same as long as the same account stays signed in on this device, and says nothing about \
            the account. Exit code 1 when signed out.
            """
    )

    @Flag(help: "Print the state now and each change of it, one JSON object a line.")
    var watch = false

    @OptionGroup var output: OutputOptions

    func run() throws {
        let home = try HomeDirectories.current()
        if watch { try follow(home) }
        let token = try Account.load(home)?.identity
        guard token != nil || output.json else {
            throw ControlError(
                "identity",
                "this device is not signed in",
                remedy: "`ubiquity up DIR` or `ubiquity sign-in URL`"
            )
        }
        output.print(Self.json(token)) { Terminal.write(token ?? "") }
        if token == nil { throw Ended(status: .failed) }
    }

    private static func json(_ token: String?) -> JSONValue {
        .object([("signed-in", .bool(token != nil)), ("token", .optional(token))])
    }

    /// Ends with the program.
    private func follow(_ home: HomeDirectories) throws -> Never {
        try home.create()
        let watcher = clinux_watch_folder(home.configuration)
        guard watcher >= 0 else { throw ControlError("identity", systemMessage(watcher)) }
        var last: String?
        var isFirst = true
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let token = try Account.load(home)?.identity
            if isFirst || token != last { Terminal.write(Self.json(token).text) }
            (last, isFirst) = (token, false)
            if read(watcher, &buffer, buffer.count) <= 0, errno != EINTR {
                throw ControlError("identity", systemMessage(errno))
            }
        }
    }
}
