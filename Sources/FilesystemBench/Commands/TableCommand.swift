import ArgumentParser
import Glibc

struct TableCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "table",
        abstract: "Print the table of all figures: lines `ROW PEER KIND MICROSECONDS` on standard input."
    )

    @Option(help: "The peer that the others are compared with.")
    var native = "native"

    @Option(help: "The peer that the mean of the metadata rows is compared with.")
    var against: String

    func run() {
        var results = Results()
        while let line = readLine() { results.add(line) }
        print(Table(results, native: native).text)
        print(Means(results, against: against).text)
    }
}
