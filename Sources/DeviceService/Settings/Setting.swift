package import CloudClient
package import UbiquityControl
package import UbiquityModel

/// What a person can set for this device, or for a container on it (`ubiquity config`).
package enum Setting: String, Sendable, CaseIterable {
    /// How long an open waits for another's explicit claim; then it is EBUSY.
    case claimLimit = "claim-limit"
    /// How many bytes a second travel at most.
    case bandwidth
    /// Whether what nobody has asked for is held back.
    case metered
    /// Whether content comes before somebody asks for it.
    case download
    /// How much content stays.
    case localLimit = "local-limit"
    /// How long content stays that nobody opens.
    case evictAfter = "evict-after"
    /// Whether the cloud keeps what is overwritten here.
    case savedVersions = "saved-versions"

    package var meaning: String {
        switch self {
        case .claimLimit: "how long opening a file waits for another's claim"
        case .bandwidth: "how much of the link is taken: a second's bytes up/down"
        case .metered:
            "whether nothing is fetched ahead: never (off), always (on), on battery or a link that costs (auto)"
        case .download: "what comes here: all (greedy), or what is opened or pinned (on-demand)"
        case .localLimit: "how much content of a container stays here; what was used least recently goes"
        case .savedVersions: "whether what is overwritten here is kept as a saved version (on), or not (off)"
        case .evictAfter: "how long content stays that nobody opens (greedy: for ever)"
        }
    }

    /// Whether a container may have a value of its own.
    package var isContainers: Bool {
        switch self {
        case .claimLimit, .bandwidth, .metered: false
        case .download, .localLimit, .evictAfter, .savedVersions: true
        }
    }

    /// - Throws: usage, for a name that there is not.
    package init(named name: String) throws(ControlError) {
        guard let setting = Setting(rawValue: name) else {
            throw ControlError(.usage, name, "there is no such setting", remedy: "`ubiquity config list` shows all")
        }
        self = setting
    }
}

/// The values of all settings, as they are in force.
package struct Settings: Sendable, Hashable {
    package var claimLimit = Patience.limit
    package var bandwidth = BandwidthLimits()
    package var thrift = Thrift.auto
    package var keeping = KeepingRules()

    package init() {}

    /// As `set` takes it.
    package subscript(setting: Setting) -> String {
        switch setting {
        case .claimLimit: TimeSpan.text(claimLimit)
        case .bandwidth: bandwidth.text
        case .metered: thrift.rawValue
        case .download: keeping.isGreedy ? "greedy" : "on-demand"
        case .localLimit: ByteSize.text(keeping.limitBytes)
        case .savedVersions: keeping.discardsFormer ? "off" : "on"
        case .evictAfter: keeping.unusedLimit.map { TimeSpan.text($0) } ?? "off"
        }
    }

    /// - Throws: usage, with the values that there are; nothing is changed then.
    package mutating func set(_ setting: Setting, to text: String) throws(ControlError) {
        switch setting {
        case .claimLimit:
            guard let span = TimeSpan.parse(text), span <= Self.longestClaimLimit else {
                throw Self.error(setting, text, "a time from 0 to 1h is needed, such as 45s or 2m")
            }
            claimLimit = span
        case .bandwidth:
            guard let limits = BandwidthLimits(text: text) else {
                let wanted =
                    "a rate from 64K on is needed, such as 2M, one for each direction, such as 1M/10M or off/10M, or off"
                throw Self.error(setting, text, wanted)
            }
            bandwidth = limits
        case .metered:
            guard let thrift = Thrift(rawValue: text) else {
                throw Self.error(setting, text, "auto, on or off is needed")
            }
            self.thrift = thrift
        case .download:
            guard ["greedy", "on-demand"].contains(text) else {
                throw Self.error(setting, text, "greedy or on-demand is needed")
            }
            keeping.isGreedy = text == "greedy"
        case .localLimit:
            let limit = ByteCount.parse(text)
            guard text == "off" || limit ?? 0 >= Self.leastLocalLimit else {
                throw Self.error(setting, text, "a size from 1M on is needed, such as 20G, or off")
            }
            keeping.limitBytes = limit
        case .savedVersions:
            guard ["on", "off"].contains(text) else { throw Self.error(setting, text, "on or off is needed") }
            keeping.discardsFormer = text == "off"
        case .evictAfter:
            let span = TimeSpan.parse(text)
            guard text == "off" || span ?? .zero > .zero else {
                throw Self.error(setting, text, "a time is needed, such as 60d or 12h, or off")
            }
            keeping.unusedLimit = span
        }
    }

    /// Programs that wait longer look hung.
    private static let longestClaimLimit = Duration.seconds(3600)
    /// With less, what is read would go before it was read to its end.
    private static let leastLocalLimit: Int64 = 1 << 20

    private static func error(_ setting: Setting, _ text: String, _ wanted: String) -> ControlError {
        ControlError(.usage, setting.rawValue, "it cannot be \"\(text)\"", remedy: wanted)
    }
}
