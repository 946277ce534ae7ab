import ArgumentParser
import DeviceService
import UbiquityControl
import UbiquityModel

struct Config: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show and change the settings of this device.",
        discussion: """
            Changes count at once. What of the content is here (download, local-limit, evict-after) may be set for one container: it
            counts there instead of what is set for the device. What is unsent, open, pinned or claimed never goes by itself.
            """,
        subcommands: [List.self, Get.self, Set.self, Reset.self],
        defaultSubcommand: List.self
    )

    struct Scope: ParsableArguments {
        @Option(help: "For this container alone.", transform: parseContainer)
        var container: ContainerID?

        var name: String? { container?.text }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List the settings.")

        @OptionGroup var scope: Scope
        @OptionGroup var output: OutputOptions

        func run() throws {
            let file = try SettingsFile.load(try HomeDirectories.current())
            let settings = try file.settings(of: scope.name)
            let shown = Setting.allCases.filter { scope.name == nil || $0.isContainers }
            let json = JSONValue.array(
                shown.map { setting in
                    .object([
                        ("name", .string(setting.rawValue)), ("value", .string(settings[setting])),
                        ("default", .bool(!file.isSet(setting, of: scope.name))), ("meaning", .string(setting.meaning)),
                    ])
                }
            )
            output.print(json) {
                var table = TextTable("SETTING", "VALUE", "MEANING", "")
                for setting in shown {
                    let note = file.isSet(setting, of: scope.name) ? "set here" : ""
                    table.add(setting.rawValue, settings[setting], setting.meaning, note)
                }
                table.write()
            }
        }
    }

    struct Get: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Print a setting's value.")

        @Argument(help: "The setting's name.")
        var name: String

        @OptionGroup var scope: Scope
        @OptionGroup var output: OutputOptions

        func run() throws {
            let setting = try Setting(named: name)
            let file = try SettingsFile.load(try HomeDirectories.current())
            let value = try file.settings(of: scope.name)[setting]
            let json = JSONValue.object([
                ("name", .string(name)), ("value", .string(value)),
                ("default", .bool(!file.isSet(setting, of: scope.name))),
            ])
            output.print(json) { Terminal.write(value) }
        }
    }

    struct Set: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Change a setting.")

        @Argument(help: "The setting's name.")
        var name: String

        @Argument(help: "The new value; a time is a number with s, m, h or d after it, a size one with K, M or G.")
        var value: String

        @OptionGroup var scope: Scope

        func run() throws { try Config.change(name, to: value, of: scope.name) }
    }

    struct Reset: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Go back to a setting's default; for a container, to what is set for the device."
        )

        @Argument(help: "The setting's name.")
        var name: String

        @OptionGroup var scope: Scope

        func run() throws { try Config.change(name, to: nil, of: scope.name) }
    }

    /// A service that runs is told; one that starts reads the file by itself.
    private static func change(_ name: String, to value: String?, of container: String?) throws {
        let home = try HomeDirectories.current()
        // Whoever starts a service, or sets something else, waits.
        let startup = try Startup(home)
        defer { withExtendedLifetime(startup) {} }
        let setting = try Setting(named: name)
        var file = try SettingsFile.load(home)
        try file.set(setting, to: value, of: container)
        try file.save(home)
        _ = try startup.connect()?.send(ReloadSettingsRequest())
    }
}
