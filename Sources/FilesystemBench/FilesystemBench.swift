import ArgumentParser

/// `filesystem-bench`: what `Tools/bench filesystem` calls to fill folders, to take one figure, and to print the table.
///
/// The script knows the peers, mounts them and goes round; this program knows nothing of them.
@main
struct BenchCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "filesystem-bench",
        abstract: "Measures a folder; `Tools/bench filesystem` compares several.",
        subcommands: [
            RowsCommand.self, SeedCommand.self, HoldCommand.self, RunCommand.self, TimeCommand.self, TableCommand.self,
        ]
    )
}
