import ArgumentParser
import UbiquityControl

struct Policy: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Which programs may fetch content by reading it.",
        discussion: """
            Indexers, thumbnailers, backup programs and virus scanners may not: their reads of what is not here fail with ENODATA \
            (No data available), at once, and fetch nothing. A program's children are treated as it is.

            PROGRAM is a name (updatedb), the path of an executable or script (/opt/x/scan), or how names end ('*-thumbnailer'). Of a \
            program in Python, Perl, a shell and the like, the script's name counts. Changes count at once.
            """,
        subcommands: [List.self, Allow.self, Deny.self, Set.self, Reset.self],
        defaultSubcommand: List.self
    )

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List the rules.")

        @OptionGroup var output: OutputOptions

        func run() throws {
            let rules = try connectedService().send(PolicyRequest())
            let json = JSONValue.array(
                rules.map { rule in
                    .object([
                        ("program", .string(rule.program)), ("access", .string(rule.access.rawValue)),
                        ("default", .bool(rule.isDefault)), ("kind", .optional(rule.kind)),
                    ])
                }
            )
            output.print(json) {
                var table = TextTable("PROGRAM", "MAY FETCH", "KIND", "")
                for rule in rules {
                    let access = rule.access == .allow ? "yes" : "no"
                    table.add(rule.program, access, rule.kind ?? "", rule.isDefault ? "" : "set here")
                }
                table.write()
            }
        }
    }

    struct Allow: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Let programs fetch content.")

        @Argument(help: "Names or paths of programs.")
        var programs: [String]

        func run() throws { try Policy.set(programs, .allow) }
    }

    struct Deny: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Keep programs from fetching content.")

        @Argument(help: "Names or paths of programs.")
        var programs: [String]

        func run() throws { try Policy.set(programs, .deny) }
    }

    struct Set: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Say whether a program may fetch content.")

        enum Access: String, ExpressibleByArgument, CaseIterable { case allow, deny, `default` }

        @Argument(help: "Name or path of the program.")
        var program: String

        @Argument(help: "Whether it may.")
        var access: Access

        func run() throws {
            switch access {
            case .allow: try Policy.set([program], .allow)
            case .deny: try Policy.set([program], .deny)
            case .default: try Policy.set([program], nil)
            }
        }
    }

    struct Reset: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Go back to the defaults.")

        @Argument(help: "Names or paths of programs; without any, everything that was set is taken back.")
        var programs: [String] = []

        func run() throws {
            if programs.isEmpty {
                _ = try connectedService().send(ResetPolicyRequest())
            } else {
                try Policy.set(programs, nil)
            }
        }
    }

    private static func set(_ programs: [String], _ access: PolicyAccess?) throws {
        var named = [String]()
        for program in programs { named.append(try name(program)) }
        _ = try connectedService().send(SetPolicyRequest(programs: named, access: access))
    }

    /// The kernel knows executables by where links lead.
    private static func name(_ word: String) throws(ControlError) -> String {
        guard word.contains("/") else { return word }
        let argument = try ItemArgument(word: word)
        return (argument.target ?? argument.path).description
    }
}
