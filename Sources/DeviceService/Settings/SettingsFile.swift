package import UbiquityControl
internal import UbiquityModel

/// What was set on this device, for all containers and for single ones: `settings.json`.
///
///     { "format": 1, "settings": { "local-limit": "20G" }, "containers": { "Documents": { "download": "greedy" } } }
///
/// Defaults are not in it, so that a newer version's count. What this version does not know in it stays.
package struct SettingsFile: Sendable, Hashable {
    private static let formatKey = "format"
    private static let settingsKey = "settings"
    private static let containersKey = "containers"

    private var fields: [String: JSONContent]

    init() { fields = [Self.formatKey: .integer(Int64(FormatVersion.configuration))] }

    package static func load(_ home: HomeDirectories) throws(ControlError) -> SettingsFile {
        do throws(ControlError) {
            return try StateFile.read(SettingsFile.self, from: home.settingsFile) ?? SettingsFile()
        } catch {
            guard error.remedy?.contains("sign in") == true else { throw error }
            throw ControlError(
                error.status,
                error.what,
                error.why,
                remedy: "mend it, or remove it to have the defaults"
            )
        }
    }

    package func save(_ home: HomeDirectories) throws(ControlError) {
        try home.create()
        try StateFile.write(self, to: home.settingsFile, of: home)
    }

    /// A value that cannot be one is an error, whoever wrote it there.
    /// - Parameter container: for which they count; `nil`: for those that have none of their own.
    package func settings(of container: String? = nil) throws(ControlError) -> Settings {
        var settings = Settings()
        for setting in Setting.allCases {
            let own = setting.isContainers ? container.flatMap { values(of: $0)[setting.rawValue] } : nil
            guard let value = own ?? values(of: nil)[setting.rawValue] else { continue }
            try settings.set(setting, to: value.string ?? "")
        }
        return settings
    }

    /// - Parameter container: whether that container has a value of its own.
    package func isSet(_ setting: Setting, of container: String? = nil) -> Bool {
        values(of: container)[setting.rawValue] != nil
    }

    /// - Parameter text: `nil`: what it is by default; for a container what it is for the device.
    /// - Throws: usage, for a value that there is not, and for a setting that no container has.
    package mutating func set(
        _ setting: Setting,
        to text: String?,
        of container: String? = nil
    ) throws(ControlError) {
        guard container == nil || setting.isContainers else {
            throw ControlError(
                .usage,
                setting.rawValue,
                "no container has this of its own",
                remedy: "set it without --container"
            )
        }
        var values = values(of: container)
        if let text {
            var checked = Settings()
            try checked.set(setting, to: text)
            values[setting.rawValue] = .string(checked[setting])
        } else {
            values[setting.rawValue] = nil
        }
        if let container {
            var containers = containers
            containers[container] = values.isEmpty ? nil : .object(values)
            fields[Self.containersKey] = containers.isEmpty ? nil : .object(containers)
        } else {
            fields[Self.settingsKey] = .object(values)
        }
    }

    private func values(of container: String?) -> [String: JSONContent] {
        guard let container else { return fields[Self.settingsKey]?.object ?? [:] }
        return containers[container]?.object ?? [:]
    }

    private var containers: [String: JSONContent] { fields[Self.containersKey]?.object ?? [:] }
}

extension SettingsFile: Codable {
    package init(from decoder: any Decoder) throws {
        fields = try decoder.singleValueContainer().decode([String: JSONContent].self)
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(fields)
    }
}
