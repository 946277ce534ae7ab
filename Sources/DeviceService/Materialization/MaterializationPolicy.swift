/// Which programs may fetch content by reading: what looks at every file, unasked, must not pull the whole cloud down.
///
/// A rule names a program: by its name (`updatedb`), by the path of its executable or script (`/opt/x/bin/scan`), or by how its name
/// ends (`*-thumbnailer`). A program's children are what it is, unless a rule says otherwise of one of them: looking from the process
/// that reads to its ancestors, the first for which there is a rule decides. Who meets no rule may.
package struct MaterializationPolicy: Sendable, Hashable {
    package enum Access: String, Sendable, Hashable, CaseIterable { case allow, deny }

    package struct Rule: Sendable, Hashable {
        package var program: String
        package var access: Access
        /// Of a program that is known without anybody having said so.
        package var kind: Kind?
        /// Somebody has said so.
        package var isOwn: Bool
    }

    /// What was found about a process and its ancestors.
    package enum Verdict: Sendable, Hashable {
        case allowed
        /// By this rule.
        case denied(rule: String)
        /// It depends on the script of an interpreter.
        case unread
    }

    /// What was set, by program.
    package let own: [String: Access]
    /// The rules about endings of names, the longest first.
    private let endings: [String]

    /// - Parameter own: what was set, by program; it goes before the defaults.
    package init(own: [String: Access] = [:]) {
        self.own = own
        endings = Set(own.keys).union(Self.defaults.keys).filter { $0.hasPrefix("*") }.sorted {
            ($1.utf8.count, $0) < ($0.utf8.count, $1)
        }
    }

    /// What is in force, by name.
    package var rules: [Rule] {
        Set(own.keys).union(Self.defaults.keys).sorted().map { program in
            let kind = Self.defaults[program]
            return Rule(program: program, access: own[program] ?? .deny, kind: kind, isOwn: own[program] != nil)
        }
    }

    /// - Parameters:
    ///   - line: the process that reads, its parent, and so on.
    ///   - isFinal: no script will be read any more: what is not known does not decide.
    package func verdict(on line: [Program], isFinal: Bool) -> Verdict {
        for program in line {
            if program.script == .unread, !isFinal { return .unread }
            guard let rule = rule(for: program) else { continue }
            return rule.access == .allow ? .allowed : .denied(rule: rule.program)
        }
        return .allowed
    }

    private func rule(for program: Program) -> (program: String, access: Access)? {
        // The kernel's name for it is the best that there is of a script.
        if program.script == .unread, let rule = rule(forCommandName: program.commandName) { return rule }
        for name in program.names {
            if let access = access(of: name) { return (name, access) }
        }
        return program.executable == nil ? rule(forCommandName: program.commandName) : nil
    }

    /// What a rule says of exactly this path or name, or of names that end like it.
    private func access(of name: String) -> Access? {
        if let access = own[name] { return access }
        if Self.defaults[name] != nil { return .deny }
        guard !name.hasPrefix("/") else { return nil }
        let ending = endings.first { name.hasSuffix($0.dropFirst()) }
        return ending.map { own[$0] ?? .deny }
    }

    /// The kernel keeps no more than the first bytes of a name: a name of that length may be longer.
    private func rule(forCommandName name: String) -> (program: String, access: Access)? {
        if let access = access(of: name) { return (name, access) }
        guard name.utf8.count >= Self.commandNameLength else { return nil }
        return rules.first { $0.program.utf8.starts(with: name.utf8) }.map { ($0.program, $0.access) }
    }

    private static let commandNameLength = 15
}
