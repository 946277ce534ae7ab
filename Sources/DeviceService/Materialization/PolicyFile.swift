internal import UbiquityControl
internal import UbiquityModel

/// What was set of the policy, for all containers of this device: `policy.json`.
///
///     { "format": 1, "rules": [ { "program": "restic", "access": "allow" } ] }
///
/// The defaults are not in it, so that a newer version's count. What this version does not know in it stays: fields, and rules with
/// another `access`.
struct PolicyFile: Sendable, Hashable {
    private static let formatKey = "format"
    private static let rulesKey = "rules"
    private static let programKey = "program"
    private static let accessKey = "access"

    private var fields: [String: JSONContent]

    init() { fields = [Self.formatKey: .integer(Int64(FormatVersion.configuration))] }

    static func load(_ home: HomeDirectories) throws(ControlError) -> PolicyFile {
        do throws(ControlError) {
            return try StateFile.read(PolicyFile.self, from: home.policyFile) ?? PolicyFile()
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

    func save(_ home: HomeDirectories) throws(ControlError) {
        try home.create()
        try StateFile.write(self, to: home.policyFile, of: home)
    }

    var policy: MaterializationPolicy {
        var own = [String: MaterializationPolicy.Access]()
        for rule in rules {
            guard let (program, access) = Self.understood(rule) else { continue }
            own[program] = access
        }
        return MaterializationPolicy(own: own)
    }

    /// - Parameter access: `nil`: what it is by default.
    mutating func set(_ access: MaterializationPolicy.Access?, for program: String) {
        var rules = rules
        let index = rules.firstIndex { $0.object?[Self.programKey]?.string == program }
        switch (access, index) {
        case (let access?, let index?):
            var rule = rules[index].object ?? [:]
            rule[Self.accessKey] = .string(access.rawValue)
            rules[index] = .object(rule)
        case (let access?, nil):
            rules.append(.object([Self.programKey: .string(program), Self.accessKey: .string(access.rawValue)]))
        case (nil, _):
            rules.removeAll { $0.object?[Self.programKey]?.string == program }
        }
        fields[Self.rulesKey] = .array(rules)
    }

    /// Takes back all that was set.
    mutating func reset() {
        fields[Self.rulesKey] = .array(rules.filter { Self.understood($0) == nil })
    }

    private var rules: [JSONContent] { fields[Self.rulesKey]?.array ?? [] }

    private static func understood(_ rule: JSONContent) -> (String, MaterializationPolicy.Access)? {
        guard let rule = rule.object, let program = rule[programKey]?.string,
            let access = rule[accessKey]?.string.flatMap({ MaterializationPolicy.Access(rawValue: $0) })
        else { return nil }
        return (program, access)
    }
}

extension PolicyFile: Codable {
    init(from decoder: any Decoder) throws {
        fields = try decoder.singleValueContainer().decode([String: JSONContent].self)
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(fields)
    }
}
