import ArgumentParser
import UbiquityControl
import UbiquityModel

struct Deleted: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "What was deleted, for 30 days; and deletions that are held.",
        subcommands: [List.self, Restore.self, Confirm.self, Undo.self],
        defaultSubcommand: List.self
    )

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List what can be brought back.")

        @OptionGroup var output: OutputOptions

        func run() throws {
            let items = try connectedService().send(DeletedRequest())
            let json = JSONValue.array(
                items.map { item in
                    .object([
                        ("id", .string(item.id)), ("container", .string(item.container)), ("path", .string(item.path)),
                        ("kind", .string(item.kind)), ("size", .integer(item.size)),
                        ("deleted", .string(Timestamp(nanoseconds: item.deleted).text)),
                        ("device", .string(item.device)),
                    ])
                }
            )
            output.print(json) {
                var table = TextTable("ID", "DELETED", "DEVICE", "SIZE", "PATH")
                for item in items {
                    let time = Timestamp(nanoseconds: item.deleted).localText
                    let size = item.kind == "file" ? ByteCount.text(item.size) : item.kind
                    table.add(item.id, time, item.device, size, "\(item.container)/\(item.path)")
                }
                table.write()
            }
        }
    }

    struct Restore: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Bring deleted items back, with their versions.")

        @Argument(help: "Their ids, or the beginnings of them.")
        var ids: [String]

        func run() throws { try conclude(try connectedService().send(UndeleteRequest(items: ids))) }
    }

    struct Confirm: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Send the deletions that are held.")

        func run() throws { _ = try connectedService().send(HeldDeletionsRequest(confirms: true)) }
    }

    struct Undo: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Bring back what the held deletions removed.")

        func run() throws { _ = try connectedService().send(HeldDeletionsRequest(confirms: false)) }
    }
}
