import TestSupport
import Testing
import UbiquityControl

@testable import DeviceService

@Suite struct PolicyFileTests {
    @Test func `what was set comes back, and the defaults are not written`() async throws {
        try await withScratchFolder { folder in
            let home = try HomeDirectories(home: folder)
            #expect(try PolicyFile.load(home).policy == MaterializationPolicy())
            var file = PolicyFile()
            file.set(.allow, for: "restic")
            file.set(.deny, for: "cat")
            file.set(.allow, for: "cat")
            file.set(.deny, for: "tac")
            file.set(nil, for: "tac")
            file.set(nil, for: "never set")
            try file.save(home)
            #expect(try PolicyFile.load(home).policy.own == ["restic": .allow, "cat": .allow])
            #expect(try !Files.text(home.policyFile).contains("updatedb"))
        }
    }

    @Test func `what a later version wrote stays`() async throws {
        try await withScratchFolder { folder in
            let home = try HomeDirectories(home: folder)
            let text = """
                {"format": 1, "later": {"a": [1, 2.5, null, true]}, "rules": [
                  {"program": "x", "access": "allow", "note": "why"}, {"program": "y", "access": "ask"}, {"group": "z"}
                ]}
                """
            try Files.write(text, to: home.policyFile)
            var file = try PolicyFile.load(home)
            #expect(file.policy.own == ["x": .allow])
            file.set(.deny, for: "x")
            file.set(.deny, for: "w")
            try file.save(home)
            file = try PolicyFile.load(home)
            #expect(file.policy.own == ["x": .deny, "w": .deny])
            let written = try JSON(Files.read(home.policyFile))
            #expect(written["later"]?["a"]?.elements.count == 4)
            let rules = try #require(written["rules"]).elements
            #expect(rules.first { $0["program"]?.string == "x" }?["note"]?.string == "why")
            file.reset()
            try file.save(home)
            let rest = try #require(try JSON(Files.read(home.policyFile))["rules"]).elements
            #expect(rest.count == 2, "what is not understood is nobody's to take back")
        }
    }

    @Test(arguments: [(#"{"format": 2, "rules": []}"#, "newer"), ("rules:", "damaged")])
    func `a file that cannot be understood is an error that says so`(text: String, word: String) async throws {
        try await withScratchFolder { folder in
            let home = try HomeDirectories(home: folder)
            try Files.write(text, to: home.policyFile)
            let error = #expect(throws: ControlError.self) { try PolicyFile.load(home) }
            #expect(error?.description.contains(word) == true)
            #expect(error?.description.contains("sign in") == false)
        }
    }
}
