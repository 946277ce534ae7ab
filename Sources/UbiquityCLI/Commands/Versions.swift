import ArgumentParser
import CLinux
import Glibc
import UbiquityControl
import UbiquityModel

struct Conflicts: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "List the items with unresolved conflicts.")

    @OptionGroup var output: OutputOptions

    func run() throws {
        let conflicts = try connectedService().send(ConflictsRequest())
        let json = JSONValue.array(
            conflicts.map { conflict in
                .object([
                    ("path", .path(conflict.path)),
                    ("versions", .array(conflict.versions.map { VersionOutput.json($0) })),
                ])
            }
        )
        output.print(json) {
            for conflict in conflicts {
                Terminal.write(ShownPath.text(conflict.path))
                VersionOutput.write(conflict.versions)
            }
        }
    }
}

struct Versions: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "The versions of an item: current, conflicts, saved ones.",
        discussion: "A file that is named like a subcommand is ./show, ./restore, …",
        subcommands: [List.self, Show.self, Restore.self, Resolve.self],
        defaultSubcommand: List.self
    )

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List the versions of an item.")

        @Argument(help: "The item.")
        var path: String

        @OptionGroup var output: OutputOptions

        func run() throws {
            let versions = try connectedService().send(VersionsRequest(path: try ItemArgument(word: path)))
            output.print(.array(versions.map { VersionOutput.json($0) })) { VersionOutput.write(versions) }
        }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print the content of a version.",
            discussion: "A package comes as a tar archive: `ubiquity versions show PATH ID | tar -x`."
        )

        @Argument(help: "The item.")
        var path: String

        @Argument(help: "The version's id, or the beginning of it.")
        var id: String

        func run() throws {
            let client = try connectedService()
            _ = try client.send(VersionContentRequest(path: try ItemArgument(word: path), version: id))
            guard let descriptor = client.takeDescriptor() else { throw ControlError(path, "no content came") }
            defer { close(descriptor) }
            var buffer = [UInt8](repeating: 0, count: 1 << 18)
            var offset: Int64 = 0
            while true {
                let count = clinux_pread(descriptor, &buffer, buffer.count, offset)
                guard count >= 0 else { throw ControlError(path, systemMessage(Int32(count))) }
                if count == 0 || Terminal.failure != 0 { return }
                Terminal.write(Array(buffer[..<Int(count)]), to: STDOUT_FILENO)
                offset += count
            }
        }
    }

    struct Restore: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Make a version the content again.",
            discussion: "What was in the item becomes a saved version. Conflicts stay: `versions resolve` ends them."
        )

        @Argument(help: "The item.")
        var path: String

        @Argument(help: "The version's id, or the beginning of it.")
        var id: String

        func run() throws {
            _ = try connectedService().send(RestoreVersionRequest(path: try ItemArgument(word: path), version: id))
        }
    }

    struct Resolve: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Resolve an item's conflicts.")

        @Argument(help: "The item.")
        var path: String

        @Option(help: "What stays: current, a version's id, or both (each conflict version becomes an item beside it).")
        var keep = "current"

        func run() throws {
            _ = try connectedService().send(ResolveRequest(path: try ItemArgument(word: path), keep: keep))
        }
    }
}

enum VersionOutput {
    static func json(_ version: VersionReport) -> JSONValue {
        .object([
            ("id", .string(version.id)),
            ("kind", .string(version.kind)),
            ("time", .string(Timestamp(nanoseconds: version.edited).text)),
            ("device", .string(version.device)),
            ("size", .integer(version.size)),
            ("name", .path(version.name)),
        ])
    }

    static func write(_ versions: [VersionReport]) {
        var table = TextTable("ID", "TIME", "KIND", "SIZE", "DEVICE")
        for version in versions {
            let time = Timestamp(nanoseconds: version.edited).localText
            table.add(version.id, time, version.kind, ByteCount.text(version.size), version.device)
        }
        table.write()
    }
}
