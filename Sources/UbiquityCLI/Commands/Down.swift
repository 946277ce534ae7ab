import ArgumentParser
import DeviceService
import UbiquityControl

struct Down: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Unmount, and stop what `up` or `join` started.",
        discussion: "Nothing is lost: what has not been sent is sent after the next `up`."
    )

    @Argument(help: "One mount; without it all. The service ends with the last one.")
    var dir: String?

    func run() throws {
        let home = try HomeDirectories.current()
        let startup = try Startup(home)
        defer { withExtendedLifetime(startup) {} }
        let point = try dir.map { try MountPoint.existing(ArgumentBytes.decode($0)) }
        if let point {
            if let (_, answer) = try startup.askRunning(UnmountRequest(mountPoint: point)) {
                guard answer.remaining == 0 else { return }
            } else {
                try forget(point, startup)
                guard try MountTable.load(home).entries.isEmpty else { return }
            }
        }
        if let (client, _) = try startup.askRunning(StopRequest(forgetsMounts: true, refusesWriters: true)) {
            client.waitForEnd()
        } else {
            try forget(nil, startup)
            guard try MountTable.load(home).entries.isEmpty else { return }
        }
        try EmbeddedServer.stop(home)
    }

    /// The service is dead: its mounts are too, and are taken away.
    private func forget(_ point: ControlPath?, _ startup: Startup) throws {
        let home = startup.home
        let lock = try startup.withoutService()
        defer { withExtendedLifetime(lock) {} }
        var table = try MountTable.load(home)
        let concerned = table.entries.filter { point == nil || $0.mountPoint == point }
        guard point == nil || !concerned.isEmpty else {
            throw ControlError("\(point.map(\.description) ?? "")", "nothing of this device is mounted there")
        }
        for entry in concerned {
            while (try? MountPoint.condition(of: entry.mountPoint)) == .dead { try MountPoint.detach(entry.mountPoint) }
            if !entry.isImporting { table[entry.container] = nil }
        }
        try table.save(home)
    }
}
