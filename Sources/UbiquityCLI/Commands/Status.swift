import ArgumentParser
import UbiquityControl

struct Status: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show how all is, or the state of items.",
        discussion: "A folder's status lists everything in it."
    )

    @Argument(help: "Items; without any, the service itself.")
    var paths: [String] = []

    @OptionGroup var output: OutputOptions

    func run() throws {
        let client = try connectedService()
        if paths.isEmpty {
            let report = try client.send(StatusRequest())
            output.print(ServiceStatus.json(report)) { ServiceStatus.write(report) }
            return
        }
        var list = ItemStatusOutput(json: output.json)
        let outcomes = try client.itemStatus(of: paths) { list.write($0) }
        list.end()
        try conclude(outcomes)
    }
}
