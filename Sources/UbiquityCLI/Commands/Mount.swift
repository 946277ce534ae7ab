import ArgumentParser
import DeviceService
import Glibc
import Logging
import UbiquityControl

struct MountVerb: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "mount", abstract: "Mount a container.")

    @Argument(help: "The container.")
    var container: String

    @Argument(help: "Where it appears; made if it does not exist.")
    var dir: String

    @Flag(help: "Run the device service in this terminal instead of the background.")
    var foreground = false

    @Option(
        name: .customShort("o"),
        help: "Mount options, with commas between them: `show_versions`, or those of FUSE."
    )
    var options: [String] = []

    func run() async throws {
        let home = try HomeDirectories.current()
        try await Mounting.at(dir, imports: false, home) { point in try await mount(at: point, home) }
    }

    private func mount(at point: ControlPath, _ home: HomeDirectories) async throws {
        let request = MountRequest(
            container: container,
            mountPoint: point,
            createsContainer: false,
            imports: false,
            options: options.flatMap { $0.split(separator: ",").map(String.init) }
        )
        guard foreground else {
            try Mounting.mount(request, try Startup(home))
            return
        }
        // Nobody else starts or stops something until it is mounted, as for a service in the background.
        var startup: Startup? = try Startup(home)
        if let error = try startup?.ensureServer() { Terminal.complain("\(error)") }
        Erasing.removeSetAsideSoon(home)
        let logger = Logger(label: "service") { label in
            LineLogHandler(label: label, sink: .standardError, level: LineLogHandler.requestedLevel() ?? .info)
        }
        try await UbiquityService.run(home: home, readyDescriptor: nil, logger: logger, mounting: request) { answer in
            withExtendedLifetime(startup) {}
            startup = nil
            Terminal.write("\(answer.container) mounted at \(answer.mountPoint)")
        }
    }
}

struct Unmount: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Unmount a container.")

    @Argument(help: "Where it is mounted.")
    var dir: String

    func run() throws {
        let point = try MountPoint.existing(ArgumentBytes.decode(dir))
        _ = try connectedService().send(UnmountRequest(mountPoint: point))
    }
}
