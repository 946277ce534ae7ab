import ArgumentParser

struct Completions: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print the completions of a shell.",
        discussion: "For bash: source <(ubiquity completions bash)"
    )

    enum Shell: String, ExpressibleByArgument, CaseIterable { case bash, zsh, fish }

    @Argument(help: "The shell.")
    var shell: Shell

    func run() throws {
        let script =
            switch shell {
            case .bash: UbiquityCommand.completionScript(for: .bash)
            case .zsh: UbiquityCommand.completionScript(for: .zsh)
            case .fish: UbiquityCommand.completionScript(for: .fish)
            }
        Terminal.write(script)
    }
}
