import ArgumentParser
import DeviceService
import UbiquityControl

struct Config: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show and change the settings of this device.",
        discussion: "Changes count at once.",
        subcommands: [List.self, Get.self, Set.self, Reset.self],
        defaultSubcommand: List.self
    )

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List the settings.")

        @OptionGroup var output: OutputOptions

        func run() throws {
            let file = try SettingsFile.load(try HomeDirectories.current())
            let settings = try file.settings()
            let json = JSONValue.array(
                Setting.allCases.map { setting in
                    .object([
                        ("name", .string(setting.rawValue)), ("value", .string(settings[setting])),
                        ("default", .bool(!file.isSet(setting))), ("meaning", .string(setting.meaning)),
                    ])
                }
            )
            output.print(json) {
                var table = TextTable("SETTING", "VALUE", "MEANING", "")
                for setting in Setting.allCases {
                    let note = file.isSet(setting) ? "set here" : ""
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

        @OptionGroup var output: OutputOptions

        func run() throws {
            let setting = try Setting(named: name)
            let file = try SettingsFile.load(try HomeDirectories.current())
            let value = try file.settings()[setting]
            let json = JSONValue.object([
                ("name", .string(name)), ("value", .string(value)), ("default", .bool(!file.isSet(setting))),
            ])
            output.print(json) { Terminal.write(value) }
        }
    }

    struct Set: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Change a setting.")

        @Argument(help: "The setting's name.")
        var name: String

        @Argument(help: "The new value; a time is a number with s, m or h after it.")
        var value: String

        func run() throws { try Config.change(name, to: value) }
    }

    struct Reset: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Go back to a setting's default.")

        @Argument(help: "The setting's name.")
        var name: String

        func run() throws { try Config.change(name, to: nil) }
    }

    /// A service that runs is told; one that starts reads the file by itself.
    private static func change(_ name: String, to value: String?) throws {
        let home = try HomeDirectories.current()
        // Whoever starts a service, or sets something else, waits.
        let startup = try Startup(home)
        defer { withExtendedLifetime(startup) {} }
        let setting = try Setting(named: name)
        var file = try SettingsFile.load(home)
        try file.set(setting, to: value)
        try file.save(home)
        _ = try startup.connect()?.send(ReloadSettingsRequest())
    }
}
