import ArgumentParser
import Glibc

struct RunCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run",
        abstract: "Take one figure in a seeded folder: its kind, and microseconds per operation or MiB."
    )

    @Argument(help: "What to measure.")
    var row: Row

    @Argument(help: "The folder.")
    var folder: String

    @OptionGroup var sizes: Sizes

    func run() throws {
        // Paths are relative, so that how deep the folder lies does not count.
        _ = try check("chdir", folder, chdir(folder))
        print(try row.measure(sizes))
    }
}
