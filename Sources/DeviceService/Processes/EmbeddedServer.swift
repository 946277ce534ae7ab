internal import CLinux
internal import Glibc
package import UbiquityControl
internal import UbiquityModel

/// The server of a device that has none elsewhere: `ubiquity serve` as a process of its own, with its data below the device's home.
package enum EmbeddedServer {
    /// `embedded-server.json`: the process that `start` made, so that `stop` ends that one and no other.
    private struct Record: Codable {
        var format = FormatVersion.configuration
        var process: ProcessIdentity
        var url: String
    }

    /// The address of the running server, which is started if it does not run. Call with the start lock held.
    package static func start(_ home: HomeDirectories) throws(ControlError) -> String {
        if let record = try StateFile.read(Record.self, from: home.serverRecord), record.process.isAlive {
            return record.url
        }
        let words = [
            "serve", "--embedded", "--data", home.server, "--ready-descriptor", "\(BackgroundProcess.readyDescriptor)",
        ]
        let (process, report) = try BackgroundProcess.start(
            words + ["--log", home.serverLog],
            what: "server",
            log: home.serverLog
        )
        guard let url = report.url else { throw ControlError("server", "it did not tell its address") }
        try StateFile.write(Record(process: process, url: url), to: home.serverRecord)
        return url
    }

    /// Ends it, if it runs. It loses nothing at any signal; the milder one lets it answer what it has begun.
    package static func stop(_ home: HomeDirectories) throws(ControlError) {
        guard let record = try StateFile.read(Record.self, from: home.serverRecord) else { return }
        if !record.process.end(with: SIGTERM, within: .seconds(10)) {
            _ = record.process.end(with: SIGKILL, within: .seconds(5))
        }
        try StateFile.remove(home.serverRecord)
    }
}
