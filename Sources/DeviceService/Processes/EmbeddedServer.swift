internal import CLinux
internal import Glibc
package import UbiquityControl
internal import UbiquityModel

/// The server of a device that has none elsewhere: `ubiquity serve` as a process of its own, with its data below the device's home.
package enum EmbeddedServer {
    /// `embedded-server.json`, which the server writes itself, whatever became of the command that started it: so `stop` ends that
    /// process and no other.
    private struct Record: Codable {
        var format = FormatVersion.configuration
        var process: ProcessIdentity
        var url: String
    }

    /// The address of the running server, which is started if it does not run. Call with the start lock held.
    package static func start(_ home: HomeDirectories) throws(ControlError) -> String {
        if let url = try running(home) { return url }
        let words = [
            "serve", "--embedded", "--data", home.server, "--ready-descriptor", "\(BackgroundProcess.readyDescriptor)",
        ]
        do throws(ControlError) {
            let report = try BackgroundProcess.start(
                words + ["--log", home.serverLog],
                what: "server",
                log: home.serverLog
            ).report
            guard let url = report.url else { throw ControlError("server", "it did not tell its address") }
            return url
        } catch {
            // One that an interrupted command had started may have become ready just now, and be in this one's way.
            if let url = try running(home) { return url }
            throw error
        }
    }

    /// Whether this device has ever had one.
    package static func exists(_ home: HomeDirectories) -> Bool { access(home.server, F_OK) == 0 }

    private static func running(_ home: HomeDirectories) throws(ControlError) -> String? {
        guard let record = try StateFile.read(Record.self, from: home.serverRecord) else { return nil }
        if record.process.isAlive { return record.url }
        // What has just been killed may have the port and the catalogue for another moment.
        _ = record.process.waitForEnd(within: .seconds(10))
        return nil
    }

    /// Called by the server itself, before it says that it is ready.
    package static func record(url: String, _ home: HomeDirectories) throws(ControlError) {
        guard let process = ProcessIdentity.own() else {
            throw ControlError("server", "its own process is not in /proc")
        }
        try StateFile.write(Record(process: process, url: url), to: home.serverRecord, of: home)
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
