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
        let outcomes = try client.send(ItemStatusRequest(paths: try ItemArgument.all(paths)))
        let items = outcomes.flatMap { $0.value ?? [] }
        output.print(.array(items.map { ItemStatusOutput.json($0) })) { ItemStatusOutput.write(items) }
        try conclude(outcomes)
    }
}
