internal import Synchronization
internal import UbiquityControl

extension UbiquityService {
    nonisolated func policyRules() async throws(ControlError) -> [PolicyRuleReport] {
        try await changePolicy { _ in false }.rules.map { rule in
            PolicyRuleReport(
                program: rule.program,
                access: rule.access == .allow ? .allow : .deny,
                isDefault: !rule.isOwn,
                kind: rule.kind?.rawValue
            )
        }
    }

    nonisolated func setPolicy(_ request: SetPolicyRequest) async throws(ControlError) {
        for program in request.programs { try Self.check(program) }
        let access: MaterializationPolicy.Access? =
            switch request.access {
            case .allow: .allow
            case .deny: .deny
            case nil: nil
            }
        _ = try await changePolicy { file in
            for program in request.programs { file.set(access, for: program) }
            return true
        }
    }

    nonisolated func resetPolicy() async throws(ControlError) {
        _ = try await changePolicy { file in
            file.reset()
            return true
        }
    }

    /// What is in the file counts from then on, whoever has written it there.
    /// - Parameter change: whether it has changed anything.
    private nonisolated func changePolicy(
        _ change: @escaping @Sendable (inout PolicyFile) -> Bool
    ) async throws(ControlError) -> MaterializationPolicy {
        let (home, gate) = (home, gate)
        return try await blocking { () throws(ControlError) in
            try gate.update { () throws(ControlError) in
                var file = try PolicyFile.load(home)
                if change(&file) { try file.save(home) }
                return file.policy
            }
        }
    }

    /// A rule that can never apply is a slip of the pen.
    private static func check(_ program: String) throws(ControlError) {
        let isPath = program.hasPrefix("/")
        let name = program.hasPrefix("*") ? program.dropFirst() : program[...]
        guard !name.isEmpty, program.utf8.count <= 4096, !name.contains("*"), isPath || !program.contains("/"),
            !program.hasSuffix("/"), !program.unicodeScalars.contains(where: { $0.value < 0x20 })
        else {
            throw ControlError(
                .usage,
                "policy",
                "\"\(program)\" is neither a program's name nor its absolute path, nor * and how a name ends"
            )
        }
    }
}
