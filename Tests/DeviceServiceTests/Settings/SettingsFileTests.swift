import TestSupport
import Testing
import UbiquityControl
import UbiquityModel

@testable import DeviceService

@Suite struct SettingsFileTests {
    struct Span: CustomTestStringConvertible, Sendable {
        var text: String
        var seconds: Int64?
        /// How it is shown.
        var shown = ""
        var testDescription: String { text }
    }

    static let spans = [
        Span(text: "0", seconds: 0, shown: "0s"), Span(text: "45", seconds: 45, shown: "45s"),
        Span(text: "45s", seconds: 45, shown: "45s"), Span(text: "120s", seconds: 120, shown: "2m"),
        Span(text: "90m", seconds: 5400, shown: "90m"), Span(text: "1h", seconds: 3600, shown: "1h"),
        Span(text: "60d", seconds: 5_184_000, shown: "60d"), Span(text: "48h", seconds: 172_800, shown: "2d"),
        Span(text: ""), Span(text: "s"), Span(text: "-1"), Span(text: "+1s"), Span(text: "1.5s"), Span(text: "1 s"),
        Span(text: "ten"), Span(text: "1w"), Span(text: "9223372036854775807h"), Span(text: "٣s"),
    ]

    @Test(arguments: spans)
    func `times are read and shown as people write them`(span: Span) {
        let parsed = TimeSpan.parse(span.text)
        #expect(parsed == span.seconds.map { .seconds($0) })
        if let parsed { #expect(TimeSpan.text(parsed) == span.shown) }
    }

    static let rates: [(text: String, shown: String?)] = [
        ("off", "off"), ("64K", "64K"), ("2M", "2M"), ("2048K", "2M"), ("1.5M", "1536K"), ("1M/10M", "1M/10M"),
        ("off/10M", "off/10M"), ("1M/off", "1M/off"), ("off/off", "off"), ("1g/1G", "1G"), ("100000", "100000"),
        ("63K", nil), ("0", nil), ("-1M", nil), ("fast", nil), ("1M/", nil), ("1M/2M/3M", nil), ("", nil), ("/", nil),
    ]

    @Test(arguments: rates)
    func `rates are read and shown as people write them`(rate: (text: String, shown: String?)) throws {
        var settings = Settings()
        if let shown = rate.shown {
            try settings.set(.bandwidth, to: rate.text)
            #expect(settings[.bandwidth] == shown)
        } else {
            #expect(throws: ControlError.self) { try settings.set(.bandwidth, to: rate.text) }
            #expect(settings == Settings())
        }
    }

    @Test func `what was set comes back, and the defaults are not written`() async throws {
        try await withScratchFolder { folder in
            let home = try HomeDirectories(home: folder)
            #expect(try SettingsFile.load(home).settings() == Settings())
            var file = try SettingsFile.load(home)
            try file.set(.claimLimit, to: "120s")
            try file.save(home)
            file = try SettingsFile.load(home)
            #expect(file.isSet(.claimLimit))
            #expect(try file.settings().claimLimit == .seconds(120))
            #expect(try file.settings()[.claimLimit] == "2m")
            try file.set(.claimLimit, to: nil)
            try file.save(home)
            #expect(try !Files.text(home.settingsFile).contains("claim-limit"))
            #expect(try SettingsFile.load(home).settings() == Settings())
        }
    }

    @Test(arguments: ["never", "2h", "3601"])
    func `a value that there is not changes nothing`(text: String) throws {
        var file = SettingsFile()
        try file.set(.claimLimit, to: "5s")
        let error = #expect(throws: ControlError.self) { try file.set(.claimLimit, to: text) }
        #expect(error?.status == .usage)
        #expect(try file.settings()[.claimLimit] == "5s")
    }

    struct Kept: CustomTestStringConvertible, Sendable {
        var setting: Setting
        var text: String
        /// How it is shown; `nil`: refused.
        var shown: String?
        var testDescription: String { "\(setting.rawValue) \(text)" }
    }

    static let kept = [
        Kept(setting: .download, text: "greedy", shown: "greedy"),
        Kept(setting: .download, text: "on-demand", shown: "on-demand"), Kept(setting: .download, text: "all"),
        Kept(setting: .download, text: ""), Kept(setting: .localLimit, text: "20G", shown: "20G"),
        Kept(setting: .localLimit, text: "1.5G", shown: "1536M"), Kept(setting: .localLimit, text: "1m", shown: "1M"),
        Kept(setting: .localLimit, text: "off", shown: "off"), Kept(setting: .localLimit, text: "0"),
        Kept(setting: .localLimit, text: "1000K"), Kept(setting: .localLimit, text: "much"),
        Kept(setting: .localLimit, text: "-5G"), Kept(setting: .evictAfter, text: "60d", shown: "60d"),
        Kept(setting: .evictAfter, text: "2s", shown: "2s"), Kept(setting: .evictAfter, text: "off", shown: "off"),
        Kept(setting: .savedVersions, text: "off", shown: "off"), Kept(setting: .savedVersions, text: "no"),
        Kept(setting: .evictAfter, text: "0"), Kept(setting: .evictAfter, text: "never"),
    ]

    @Test(arguments: kept)
    func `what stays here is said as people write it`(kept: Kept) throws {
        var settings = Settings()
        if let shown = kept.shown {
            try settings.set(kept.setting, to: kept.text)
            #expect(settings[kept.setting] == shown)
        } else {
            let error = #expect(throws: ControlError.self) { try settings.set(kept.setting, to: kept.text) }
            #expect(error?.status == .usage)
            #expect(settings == Settings())
        }
    }

    @Test func `a container has the device's values but for those of its own`() async throws {
        try await withScratchFolder { folder in
            let home = try HomeDirectories(home: folder)
            var file = SettingsFile()
            try file.set(.localLimit, to: "20G")
            try file.set(.localLimit, to: "5G", of: "Documents")
            try file.set(.download, to: "greedy", of: "Documents")
            #expect(throws: ControlError.self) { try file.set(.metered, to: "on", of: "Documents") }
            try file.save(home)
            file = try SettingsFile.load(home)
            #expect(try file.settings().keeping.limitBytes == 20 << 30)
            #expect(try file.settings(of: "other").keeping == file.settings().keeping)
            #expect(try file.settings(of: "Documents").keeping.limitBytes == 5 << 30)
            #expect(try file.settings(of: "Documents").keeping.isGreedy)
            try file.set(.localLimit, to: nil, of: "Documents")
            #expect(try file.settings(of: "Documents").keeping.limitBytes == 20 << 30)
            try file.set(.download, to: nil, of: "Documents")
            try file.save(home)
            #expect(try !Files.text(home.settingsFile).contains("Documents"))
        }
    }

    @Test func `what a later version wrote stays`() async throws {
        try await withScratchFolder { folder in
            let home = try HomeDirectories(home: folder)
            let text = #"{"format": 1, "later": [1], "settings": {"later": {"up": 1}, "claim-limit": "5s"}}"#
            try Files.write(text, to: home.settingsFile)
            var file = try SettingsFile.load(home)
            try file.set(.claimLimit, to: "6s")
            try file.save(home)
            let written = try JSON(Files.read(home.settingsFile))
            #expect(written["later"]?.elements.count == 1)
            #expect(written["settings"]?["later"]?["up"]?.integer == 1)
            #expect(written["settings"]?["claim-limit"]?.string == "6s")
        }
    }

    @Test(arguments: [
        (#"{"format": 2}"#, "newer"), ("settings:", "damaged"),
        (#"{"format": 1, "settings": {"claim-limit": 5}}"#, "claim-limit"),
    ])
    func `a file that cannot be understood is an error that says so`(text: String, word: String) async throws {
        try await withScratchFolder { folder in
            let home = try HomeDirectories(home: folder)
            try Files.write(text, to: home.settingsFile)
            let error = #expect(throws: ControlError.self) { try SettingsFile.load(home).settings() }
            #expect(error?.description.contains(word) == true)
            #expect(error?.description.contains("sign in") == false)
        }
    }
}
