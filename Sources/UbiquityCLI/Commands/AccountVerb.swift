import ArgumentParser
import CatalogModel
import CloudServer
import UbiquityControl
import UbiquityModel

struct AccountVerb: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "account",
        abstract: "The accounts of a server, on the server's own data.",
        subcommands: [Add.self, List.self, Remove.self]
    )

    struct Add: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Make an account, and print the code for its first device."
        )

        @Argument(help: "The account's name.")
        var name: String

        @Option(help: "How much it may store, such as 20G.", transform: parseSize)
        var quota: Int64?

        @OptionGroup var server: ServerDataOptions
        @OptionGroup var output: OutputOptions

        func run() async throws {
            let data = try server.folder(try HomeDirectories.current())
            let invitation = try await ServerAccounts.add(name, quota: quota, data: data)
            let json = JSONValue.object([
                ("name", .string(name)), ("quota", quota.map { .integer($0) } ?? .null),
                ("code", .string(invitation.code)),
                ("url", .optional(invitation.url)), ("expires", .string(invitation.expires.text)),
            ])
            output.print(json) {
                let url = invitation.url ?? "URL"
                Terminal.write("ubiquity join \(url) \(invitation.code) DIR")
                if Terminal.errorsAreTerminal { Terminal.note("good once, until \(invitation.expires.localText)") }
            }
        }
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List the accounts.")

        @OptionGroup var server: ServerDataOptions
        @OptionGroup var output: OutputOptions

        func run() async throws {
            let accounts = try await ServerAccounts.list(data: try server.folder(try HomeDirectories.current()))
            let json = JSONValue.array(
                accounts.map { account in
                    .object([
                        ("name", .string(account.name)), ("quota", account.quota.map { .integer($0) } ?? .null),
                        ("used", .integer(account.used)), ("devices", .count(account.devices)),
                    ])
                }
            )
            output.print(json) {
                var table = TextTable("NAME", "USED", "QUOTA", "DEVICES")
                for account in accounts {
                    let quota = account.quota.map { ByteCount.text($0) } ?? "none"
                    table.add(account.name, ByteCount.text(account.used), quota, "\(account.devices)")
                }
                table.write()
            }
        }
    }

    struct Remove: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Remove an account, with its devices and all that it stores."
        )

        @Argument(help: "The account's name.")
        var name: String

        @Flag(help: "Do not ask.")
        var yes = false

        @OptionGroup var server: ServerDataOptions

        func run() async throws {
            let data = try server.folder(try HomeDirectories.current())
            if !yes { try Terminal.confirm("Remove the account \(name), its devices and everything that it stores?") }
            try await ServerAccounts.remove(name, data: data)
        }
    }
}

@Sendable private func parseSize(_ text: String) throws -> Int64 {
    guard let size = ByteCount.parse(text) else { throw ValidationError("\"\(text)\" is no size, such as 500M or 20G") }
    return size
}
