import ArgumentParser

struct RowsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rows",
        abstract: "Print what `run` measures, one row a line."
    )

    func run() {
        for row in Row.allCases { print(row.rawValue) }
    }
}
