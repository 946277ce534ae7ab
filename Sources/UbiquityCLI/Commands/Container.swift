import ArgumentParser
import CloudClient
import DeviceService
import UbiquityControl
import UbiquityModel

struct Container: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "The account's containers.",
        subcommands: [List.self, Create.self, Remove.self, Packages.self],
        defaultSubcommand: List.self
    )

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List the containers that this device may use.")

        @OptionGroup var output: OutputOptions

        func run() async throws {
            let containers = try await AccountCloud.ask("container") { (cloud, _) async throws(CloudError) in
                try await cloud.containers().sorted { $0.id < $1.id }
            }
            let table = try MountTable.load(try HomeDirectories.current())
            func mountPoint(_ container: ContainerInfo) -> String? { table[container.id.text]?.mountPoint.description }
            let json = JSONValue.array(
                containers.map { container in
                    .object([
                        ("id", .string(container.id.text)), ("layout", .string(container.layout.rawValue)),
                        ("case-insensitive", .bool(container.isCaseInsensitive)),
                        ("read-only", .bool(container.isReadOnly)),
                        ("mount-point", .optional(mountPoint(container))),
                    ])
                }
            )
            output.print(json) {
                var lines = TextTable("ID", "LAYOUT", "ACCESS", "MOUNTED AT")
                for container in containers {
                    let access = container.isReadOnly ? "read" : "read, write"
                    lines.add(container.id.text, container.layout.rawValue, access, mountPoint(container) ?? "")
                }
                lines.write()
            }
        }
    }

    struct Create: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Make a container.")

        @Argument(help: "Its name, such as org.example.notes.", transform: parseContainer)
        var id: ContainerID

        @Option(help: "drive: all are documents (as in Documents). app: documents lie in Documents/, the rest is data.")
        var layout: Layout?

        @Flag(help: "No two names in a folder that differ only in case.")
        var caseInsensitive = false

        enum Layout: String, ExpressibleByArgument, CaseIterable { case drive, app }

        func run() async throws {
            let layout = layout ?? (id == .documents ? .drive : .app)
            _ = try await AccountCloud.ask(id.text) { (cloud, _) async throws(CloudError) in
                try await cloud.createContainer(
                    id,
                    layout: layout == .drive ? .drive : .app,
                    isCaseInsensitive: caseInsensitive
                )
            }
        }
    }

    struct Remove: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Remove a container and everything in it, for all devices."
        )

        @Argument(help: "The container.", transform: parseContainer)
        var id: ContainerID

        @Flag(help: "Do not ask.")
        var yes = false

        func run() async throws {
            if let entry = try MountTable.load(try HomeDirectories.current())[id.text] {
                throw ControlError(
                    id.text,
                    "it is mounted at \(entry.mountPoint)",
                    remedy: "`ubiquity unmount \(entry.mountPoint)` first"
                )
            }
            if !yes {
                try Terminal.confirm("Remove the container \(id) with all its documents and versions, for all devices?")
            }
            try await AccountCloud.ask(id.text) { (cloud, _) async throws(CloudError) in
                try await cloud.removeContainer(id)
            }
        }
    }
}
