import ArgumentParser
import CLinux
import DeviceService
import Glibc
import Logging
import UbiquityControl

/// The device service itself, as `up`, `join` and `mount` start it in the background.
struct DeviceServiceVerb: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "device-service", shouldDisplay: false)

    @Option(help: "Where to tell that it is ready.")
    var readyDescriptor: Int32

    func run() async throws {
        clinux_keep_freed_memory()
        let home = try HomeDirectories.current()
        let log = BoundedLog(path: home.serviceLog)
        log?.adoptStandardOutput()
        let logger = Logger(label: "service") { label in
            let sink = log.map { LineLogHandler.Sink.log($0) } ?? .standardError
            return LineLogHandler(label: label, sink: sink, level: LineLogHandler.requestedLevel() ?? .info)
        }
        // Whoever waits for the report does not wait for what is started here.
        _ = fcntl(readyDescriptor, F_SETFD, FD_CLOEXEC)
        Erasing.removeSetAsideSoon(home)
        try await UbiquityService.run(home: home, readyDescriptor: readyDescriptor, logger: logger)
    }
}
