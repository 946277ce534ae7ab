package import UbiquityControl
internal import UbiquityModel

/// What was set on this device, for all containers: `settings.json`.
///
///     { "format": 1, "settings": { "claim-limit": "2m" } }
///
/// Defaults are not in it, so that a newer version's count. What this version does not know in it stays.
package struct SettingsFile: Sendable, Hashable {
    private static let formatKey = "format"
    private static let settingsKey = "settings"

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
        try StateFile.write(self, to: home.settingsFile)
    }

    /// A value that cannot be one is an error, whoever wrote it there.
    package func settings() throws(ControlError) -> Settings {
        var settings = Settings()
        for setting in Setting.allCases {
            guard let value = values[setting.rawValue] else { continue }
            try settings.set(setting, to: value.string ?? "")
        }
        return settings
    }

    package func isSet(_ setting: Setting) -> Bool { values[setting.rawValue] != nil }

    /// - Parameter text: `nil`: what it is by default.
    /// - Throws: usage, for a value that there is not.
    package mutating func set(_ setting: Setting, to text: String?) throws(ControlError) {
        var values = values
        if let text {
            var checked = Settings()
            try checked.set(setting, to: text)
            values[setting.rawValue] = .string(checked[setting])
        } else {
            values[setting.rawValue] = nil
        }
        fields[Self.settingsKey] = .object(values)
    }

    private var values: [String: JSONContent] { fields[Self.settingsKey]?.object ?? [:] }
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
