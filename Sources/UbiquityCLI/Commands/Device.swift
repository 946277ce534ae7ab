import ArgumentParser
import CloudClient
import CloudProtocol
import UbiquityControl
import UbiquityModel

struct Device: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "The account's devices.",
        subcommands: [List.self, Revoke.self],
        defaultSubcommand: List.self
    )

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List the devices.")

        @OptionGroup var output: OutputOptions

        func run() async throws {
            let devices = try await AccountCloud.ask("device") { (cloud, _) async throws(CloudError) in
                try await cloud.devices()
            }
            let json = JSONValue.array(
                devices.map { device in
                    .object([
                        ("name", .string(device.name)), ("id", .string(device.id.description)),
                        ("joined", .string(device.joined.text)), ("last-seen", .string(device.lastSeen.text)),
                        ("revoked", .bool(device.isRevoked)), ("current", .bool(device.isCurrent)),
                    ])
                }
            )
            output.print(json) {
                var table = TextTable("NAME", "JOINED", "LAST SEEN", "")
                for device in devices {
                    let mark = device.isRevoked ? "revoked" : device.isCurrent ? "this device" : ""
                    table.add(device.name, device.joined.localText, device.lastSeen.localText, mark)
                }
                table.write()
            }
        }
    }

    struct Revoke: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Remove a device from the account.",
            discussion: "It keeps what it has, and gets and sends nothing more."
        )

        @Argument(help: "The device's name.")
        var name: String

        func run() async throws {
            try await AccountCloud.ask(name) { (cloud, _) async throws(CloudError) in
                try await cloud.revoke(deviceNamed: name)
            }
        }
    }
}
