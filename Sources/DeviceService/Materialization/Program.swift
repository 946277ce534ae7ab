/// A process as the policy looks at it: by what it runs, not by what it was called with.
package struct Program: Hashable, Sendable {
    /// What an interpreter runs.
    package enum Script: Hashable, Sendable {
        /// The process is no interpreter, or one without a script: an interactive shell, `python3 -c`.
        case none
        /// It is an interpreter whose command line nobody has read yet.
        case unread
        /// As its command line says it: a path, a module, a plugin.
        case named(String)
    }

    /// The path of the executable; `nil` where the system does not show it (another user's process).
    package var executable: String?
    /// What the kernel calls it, at most 15 bytes: the executable's name, or the script's if that was started by its own name.
    package var commandName: String
    package var script: Script

    package init(executable: String?, commandName: String, script: Script = .none) {
        self.executable = executable
        self.commandName = commandName
        self.script = script
    }

    /// What rules may call it, the most telling first: a script says more than its interpreter, a path more than a name.
    package var names: [String] {
        var result = [String]()
        if case .named(let script) = script { result += Self.names(of: script) }
        if let executable { result += Self.names(of: executable) }
        return result
    }

    /// A relative path says only its last component: whose folder it starts in is not known.
    private static func names(of path: String) -> [String] {
        let name = name(of: path)
        return path.hasPrefix("/") ? [path, name] : [name]
    }

    static func name(of path: String) -> String { path.split(separator: "/").last.map(String.init) ?? path }
}
