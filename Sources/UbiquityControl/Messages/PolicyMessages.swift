/// Which programs may fetch content by reading. Reads the rules from their file again, so that what was edited there counts.
package struct PolicyRequest: ControlRequest {
    package typealias Answer = [PolicyRuleReport]
    package static var verb: String { "policy" }
    package init() {}
}

package enum PolicyAccess: String, Codable, Sendable, CaseIterable { case allow, deny }

package struct PolicyRuleReport: Codable, Sendable {
    /// A name, an absolute path, or `*` and how a name ends.
    package var program: String
    package var access: PolicyAccess
    /// Otherwise somebody has set it.
    package var isDefault: Bool
    /// What a program is that is denied by default: `indexer`, `thumbnailer`, `backup`, `scanner`.
    package var kind: String?

    package init(program: String, access: PolicyAccess, isDefault: Bool, kind: String?) {
        self.program = program
        self.access = access
        self.isDefault = isDefault
        self.kind = kind
    }
}

/// Sets rules, all or none. They count from then on, also for files that are open, and are kept.
package struct SetPolicyRequest: ControlRequest {
    package typealias Answer = Nothing
    package static var verb: String { "policy-set" }

    package var programs: [String]
    /// `nil`: as it is by default.
    package var access: PolicyAccess?

    package init(programs: [String], access: PolicyAccess?) {
        self.programs = programs
        self.access = access
    }
}

/// Takes back everything that was set.
package struct ResetPolicyRequest: ControlRequest {
    package typealias Answer = Nothing
    package static var verb: String { "policy-reset" }
    package init() {}
}
