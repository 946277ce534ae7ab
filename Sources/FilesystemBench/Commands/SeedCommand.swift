import ArgumentParser
import Glibc

struct SeedCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "seed",
        abstract: "Fill a folder with what the rows need; the same bytes in every run."
    )

    @Argument(help: "The folder.")
    var folder: String

    @Argument(help: "What to make.")
    var parts: [Seed]

    @OptionGroup var sizes: Sizes

    func run() throws {
        _ = try check("chdir", folder, chdir(folder))
        for part in parts { try part.make(sizes) }
    }
}
